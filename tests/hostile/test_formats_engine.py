"""Formats and options through which a source would reach out: nothing is written, nobody called.

The readers are opened without validation, as from a Bundle that somebody else made.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.declared.sources import NOW, files, reader, rows_at
from support.hostile.foldermutations import Outside, foreign_type
from support.hostile.folderoperations import parquet
from support.hostile.listener import Listener, listening

from snaploom.cli.index.describe import counted
from snaploom.errors import FormatNotAllowed, SnaploomError, SourceSchemaInvalid, TargetNotIndexable
from snaploom.models.allowances import Allowances
from snaploom.policy.fileformats import AVRO_CLASS, BUILT_IN
from snaploom.policy.formatfaults import REFUSED, format_findings, source_place
from snaploom.skipping.core.definition import ReaderFingerprint, SkippingDefinition, Target
from snaploom.skipping.lifecycle.description import Description
from snaploom.skipping.spark.interfaces.manage import SkippingIndexes
from snaploom.skipping.spark.targets.targetlookup import open_path
from snaploom.skipping.statements.syntax import PathName, StorePlace
from snaploom.skipping.stores.port import NOTHING

pytestmark = pytest.mark.spark

DERBY = "org.apache.derby.iapi.jdbc.AutoloadedDriver"
OPTIONS = {
    "csv": "catalyst.csv.CSVOptions",
    "json": "catalyst.json.JSONOptions",
    "xml": "catalyst.xml.XmlOptions",
    "avro": "avro.AvroOptions",
    "parquet": "execution.datasources.parquet.ParquetOptions",
    "orc": "execution.datasources.orc.OrcOptions",
    "text": "execution.datasources.text.TextOptions",
}
"""Spark's objects that know the names of a format's options."""
OF_FILES = ("IGNORE_CORRUPT_FILES", "IGNORE_MISSING_FILES")
SINCE_4_3 = ("ARCHIVE_PATH_FILTER", "IGNORED_PATH_SEGMENT_REGEX")


@pytest.fixture
def listener() -> Iterator[Listener]:
    with listening() as listener:
        yield listener


def derby(folder: Path, listener: Listener) -> tuple[str, dict[str, str]]:
    url = f"jdbc:derby:{folder}/canary;create=true"
    table = "(SELECT 1 AS a FROM sysibm.sysdummy1) t"
    return "jdbc", {"url": url, "driver": DERBY, "dbtable": table, "password": "hunter2"}


def h2(folder: Path, listener: Listener) -> tuple[str, dict[str, str]]:
    url = f"jdbc:h2:mem:x;INIT=CALL FILE_WRITE('x', '{folder}/canary')"
    return "jdbc", {"url": url, "driver": "org.h2.Driver", "dbtable": "(SELECT 1 AS a) t"}


def jdbc_by_class(folder: Path, listener: Listener) -> tuple[str, dict[str, str]]:
    _, options = derby(folder, listener)
    return "org.apache.spark.sql.execution.datasources.jdbc.JdbcRelationProvider", options


def xsd(folder: Path, listener: Listener) -> tuple[str, dict[str, str]]:
    (folder / "a.xsd").write_text(f'<!DOCTYPE s SYSTEM "{listener.url}"><s/>')
    return "xml", {"rowTag": "o", "rowValidationXSDPath": f"{folder}/a.xsd"}


def avro_schema(folder: Path, listener: Listener) -> tuple[str, dict[str, str]]:
    return "avro", {"AVROSCHEMAURL": listener.url}


def socket_source(folder: Path, listener: Listener) -> tuple[str, dict[str, str]]:
    return "socket", {"host": "127.0.0.1", "port": str(listener.port)}


def key_service(folder: Path, listener: Listener) -> tuple[str, dict[str, str]]:
    return "parquet", {"parquet.crypto.factory.class": "org.example.Factory"}


def endpoint(folder: Path, listener: Listener) -> tuple[str, dict[str, str]]:
    return "parquet", {"fs.s3a.endpoint": listener.url}


def codec(folder: Path, listener: Listener) -> tuple[str, dict[str, str]]:
    return "csv", {"compression": "org.example.Codec"}


def place(folder: Path, listener: Listener) -> tuple[str, dict[str, str]]:
    return "text", {"path": "/etc/passwd"}


def base_path(folder: Path, listener: Listener) -> tuple[str, dict[str, str]]:
    return "parquet", {"basePath": listener.url}


Attack = Callable[[Path, Listener], tuple[str, dict[str, str]]]
ATTACKS: tuple[Attack, ...] = (
    derby, h2, jdbc_by_class, xsd, avro_schema, socket_source, key_service, endpoint, codec, place,
    base_path,
)  # fmt: skip


def prepare(spark: SparkSession, folder: Path, data_format: str) -> None:
    """A file that a source of the format could be about."""
    if data_format in ("avro", "parquet"):
        named = AVRO_CLASS if data_format == "avro" else data_format
        spark.range(1).coalesce(1).write.format(named).save(f"{folder}/data")
    else:
        (folder / "data").mkdir()
        (folder / "data" / "a").write_text("<r><o><id>1</id></o></r>")


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_source_reaches_nothing_by_its_format(spark, tmp_path, listener, attack):
    data_format, options = attack(tmp_path, listener)
    prepare(spark, tmp_path, data_format)
    source = reader(spark, files(data_format, tmp_path / "data/*", formatOptions=options))
    with pytest.raises(FormatNotAllowed) as caught:
        rows_at(source, NOW)
    assert "--allow" in str(caught.value) or data_format == "csv"
    assert not (tmp_path / "canary").exists()
    assert listener.heard == []


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_index_reaches_nothing_by_the_format_of_its_target(spark, tmp_path, listener, attack):
    data_format, options = attack(tmp_path, listener)
    prepare(spark, tmp_path, data_format)
    subject = PathName(data_format, f"{tmp_path}/data", tuple(options.items()))
    with pytest.raises(FormatNotAllowed):
        SkippingIndexes(spark, allow=Allowances()).target(subject)
    assert not (tmp_path / "canary").exists()
    assert listener.heard == []


@pytest.mark.parametrize("attack", [derby, avro_schema], ids=lambda attack: attack.__name__)
def test_stored_index_reaches_nothing_by_the_format_of_its_files(spark, tmp_path, listener, attack):
    data_format, options = attack(tmp_path, listener)
    prepare(spark, tmp_path, data_format)
    target = Target(f"{tmp_path}/data", format=data_format, options=tuple(options.items()))
    definition = SkippingDefinition(target, ReaderFingerprint(data_format), ())
    stored = Description("file:///indexes", replace(NOTHING, definition=definition))
    found = counted(stored, StorePlace(f"{tmp_path}/indexes"), (), Allowances())
    assert "may" in found.problem
    assert not (tmp_path / "canary").exists()
    assert listener.heard == []


@pytest.mark.parametrize("legacy", ["true", "false"])
@pytest.mark.parametrize("scheme", ["network", "file"])
def test_xml_data_fetches_nothing(spark, tmp_path, listener, legacy, scheme):
    (tmp_path / "other").write_text("CANARY")
    uri = listener.url if scheme == "network" else f"file://{tmp_path}/other"
    entity = f'<!DOCTYPE r [<!ENTITY e SYSTEM "{uri}">]>'
    (tmp_path / "a.xml").write_text(f"{entity}<r><o><a>&e;</a></o></r>")
    options = {"rowTag": "o", "useLegacyXMLParser": legacy}
    source = reader(spark, files("xml", tmp_path / "a.xml", formatOptions=options))
    with pytest.raises(SnaploomError) as caught:
        rows_at(source, NOW)
    assert "CANARY" not in str(caught.value)
    assert listener.heard == []


@pytest.mark.parametrize("data_format", OPTIONS)
def test_every_option_that_spark_knows_is_judged(spark: SparkSession, data_format: str) -> None:
    known = set(spark_object(spark, OPTIONS[data_format]).getAllOptions().mkString(" ").split())
    judged = {*BUILT_IN[data_format].options, *REFUSED}
    assert {option.casefold() for option in known} <= {option.casefold() for option in judged}


def test_every_option_of_files_that_spark_knows_is_judged(spark: SparkSession) -> None:
    found = spark_object(spark, "catalyst.FileSourceOptions")
    names = {method.getName() for method in found.getClass().getMethods()}
    constants = [name for name in (*OF_FILES, *SINCE_4_3) if name in names]
    assert {str(getattr(found, name)()) for name in constants} <= {
        *BUILT_IN["text"].options,
        *REFUSED,
    }


def test_options_of_the_list_are_read_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x;'a'\ny;'b'\n")
    options = {"sep": ";", "QUOTE": "'", "pathGlobFilter": "*.csv", "modifiedAfter": "2020-01-01"}
    source = reader(spark, files("CSV", tmp_path / "*", formatOptions=options))
    assert rows_at(source, NOW) == [("x", "a"), ("y", "b")]


def test_avro_is_read_by_its_name_and_not_by_its_class() -> None:
    (fault,) = format_findings(AVRO_CLASS, {}, Allowances(), source_place(""))
    assert "write `avro`" in fault.hint
    assert format_findings("Avro", {}, Allowances(), source_place("")) == ()


def spark_object(spark: SparkSession, name: str):  # type: ignore[no-untyped-def]
    """Scala's object of a name below `org.apache.spark.sql`."""
    java = spark._jvm.java.lang  # type: ignore[union-attr]
    loader = java.Thread.currentThread().getContextClassLoader()
    found = java.Class.forName(f"org.apache.spark.sql.{name}$", True, loader)
    return found.getField("MODULE$").get(None)


@pytest.fixture
def hostile_footer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file whose footer names a class, in a module that records its import."""
    monkeypatch.syspath_prepend(str(tmp_path))
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.parquet").write_bytes(parquet(foreign_type(Outside(tmp_path, ""))))
    return folder


@pytest.mark.parametrize("settings", [{}, {"formatOptions": {"mergeSchema": "true"}}])
def test_class_in_a_footer_of_a_source_is_not_loaded(spark, hostile_footer, settings):
    source = reader(spark, files("parquet", hostile_footer / "*.parquet", **settings))
    with pytest.raises(SourceSchemaInvalid, match="not a schema"):
        rows_at(source, NOW)
    assert not hostile_footer.with_name("imported").exists()


def test_class_in_a_footer_of_an_indexed_folder_is_not_loaded(spark, hostile_footer):
    with pytest.raises(TargetNotIndexable, match="does not read"):
        open_path(spark, str(hostile_footer), "parquet")
    assert not hostile_footer.with_name("imported").exists()
