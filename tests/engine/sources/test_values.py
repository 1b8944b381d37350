"""Values of text come through as they are written, or one error names file, line and field."""

import json
import random

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import functions as sf
from support.declared.sources import NOW, files, reader, rows_at

from snaploom.errors import SourceNotReadable
from snaploom.models.allowances import NO_ALLOWANCES
from snaploom.sources.files.values import Writing, text_loss
from snaploom.sources.readers import located
from snaploom.spark.failures import translate
from snaploom.spark.types import SIMPLE

pytestmark = [pytest.mark.spark, pytest.mark.long]


def fields(**types):
    return [
        {"name": name, "dataType": kind if isinstance(kind, dict) else {kind: {}}}
        for name, kind in types.items()
    ]


DECIMAL = {"decimal": {"precision": 3, "scale": 2}}
CHANGED = [
    (DECIMAL, "1.239"),
    (DECIMAL, "1.2e-3"),
    ("double", "1e400"),
    ("double", "1e-400"),
    ("double", "9007199254740993"),
    ("double", "12345678901234567.5"),
    ("float", "16777217"),
    ("float", "1e39"),
    ("timestamp", "2024-05-01T10:00:00.1234567"),
    ("timestamp", "1714550400000"),
    ("timestampNtz", "2024-05-01 10:00:00.1234567"),
    ("date", "2024-05-01 10:30:00"),
]
KEPT = {
    "decimal": (DECIMAL, ["1.23", "1.230", "-1", "0.123e1", ".5", "0"]),
    "double": (
        "double",
        ["0.1", "1e300", "1e23", "9007199254740992", "1180591620717411303424", "-0.0", "5e-324",
         "123456789012.123456789", "6.02214076e23"],
    ),
    "float": ("float", ["0.1", "16777216", "1e38", "3.4028235e38", "0.30000001192"]),
    "timestamp": ("timestamp", ["2024-05-01T10:00:00.123456Z", "2024-05-01 10:00:00.1234560"]),
    "date": ("date", ["2024-05-01", "2024-05-01T00:00:00"]),
}  # fmt: skip


def written(folder, data_format, value):
    """A file whose second record has the value, between two that have none."""
    if data_format == "csv":
        text = f"k,v\na,\nb,{value}\nc,\n"
    else:
        is_text = any(sign in value for sign in "-:T") and "e" not in value
        shown = json.dumps(value) if is_text else value.replace(".5", "0.5", value == ".5")
        text = f'{{"k": "a"}}\n\n{{"k": "b", "v": {shown}}}\n'
    (folder / f"a.{data_format}").write_text(text)
    return {"formatOptions": {"header": "true"}} if data_format == "csv" else {}


@pytest.mark.parametrize("data_format", ["csv", "json"])
@pytest.mark.parametrize(("kind", "value"), CHANGED)
def test_a_value_that_its_declared_type_changes_is_refused(
    spark, tmp_path, data_format, kind, value
):
    options = written(tmp_path, data_format, value)
    schema = fields(k="string", v=kind)

    with pytest.raises(SourceNotReadable, match="a value of v would change") as caught:
        reader(spark, files(data_format, tmp_path / "*", schemaFields=schema, **options)).read(NOW)

    assert str(caught.value.found).startswith(f"{value} in line 3 of file:/")
    assert str(caught.value.found).endswith(f"a.{data_format}")
    assert "PERMISSIVE" in str(caught.value.hint)


@pytest.mark.parametrize("name", KEPT)
def test_values_that_a_declared_type_holds_are_read(spark, tmp_path, name):
    kind, values = KEPT[name]
    (tmp_path / "a.csv").write_text("".join(f"{value}\n" for value in values))
    source = reader(spark, files("csv", tmp_path / "*", schemaFields=fields(v=kind)))
    assert len(rows_at(source, NOW)) == len(values)


def test_a_text_of_json_that_is_no_day_is_no_date(spark, tmp_path):
    (tmp_path / "a.json").write_text('{"d": "7"}\n')
    with pytest.raises(SourceNotReadable, match="a value of d would change"):
        reader(spark, files("json", tmp_path / "*", schemaFields=fields(d="date"))).read(NOW)


def test_a_value_inside_arrays_structs_and_maps_is_found(spark, tmp_path):
    (tmp_path / "a.json").write_text('{"s": {"l": [1.5, 1e400]}}\n{"m": {"x": 2.001}}\n')
    of_list = {"array": {"elementType": {"double": {}}}}
    inner = {"struct": {"fields": fields(l=of_list)}}
    of_map = {"map": {"keyType": {"string": {}}, "valueType": DECIMAL}}

    for schema, path, line in (
        (fields(s=inner), "s.l[]", 1),
        (fields(m=of_map), "m{value}", 2),
    ):
        with pytest.raises(SourceNotReadable) as caught:
            reader(spark, files("json", tmp_path / "*", schemaFields=schema)).read(NOW)
        assert f"a value of {path} would change" in str(caught.value)
        assert f"line {line} of" in str(caught.value.found)


def test_a_value_in_a_record_of_several_lines_is_named_without_a_line(spark, tmp_path):
    (tmp_path / "a.csv").write_text('"two\nlines",1e400\n')
    schema = fields(t="string", v="double")
    with pytest.raises(SourceNotReadable) as caught:
        reader(spark, files("csv", tmp_path / "*", schemaFields=schema)).read(NOW)
    assert "1e400 in" in str(caught.value.found)


def test_a_long_value_is_shown_in_part(spark, tmp_path):
    (tmp_path / "a.csv").write_text(f"{'9' * 5000}\n")
    with pytest.raises(SourceNotReadable) as caught:
        reader(spark, files("csv", tmp_path / "*", schemaFields=fields(v="double"))).read(NOW)
    assert f"{'9' * 80}… in" in str(caught.value.found)


def test_mode_permissive_reads_values_as_spark_does(spark, tmp_path):
    (tmp_path / "a.csv").write_text("1.239\n")
    lax = {"schemaFields": fields(v=DECIMAL), "formatOptions": {"mode": "PERMISSIVE"}}
    assert [
        str(row[0]) for row in rows_at(reader(spark, files("csv", tmp_path / "*", **lax)), NOW)
    ] == ["1.24"]


@pytest.mark.parametrize(
    ("data_format", "text"),
    [
        ("csv", "007\n"),
        ("xml", "<r><o><c>007</c></o></r>"),
    ],
)
def test_leading_zeros_of_an_inferred_number_are_refused(spark, tmp_path, data_format, text):
    (tmp_path / f"a.{data_format}").write_text(text)
    options = {"rowTag": "o"} if data_format == "xml" else {"inferSchema": "true"}
    with pytest.raises(SourceNotReadable, match="would change") as caught:
        reader(spark, files(data_format, tmp_path / "*", formatOptions=options)).read(NOW)
    assert "007" in str(caught.value.found)


XML = {"formatOptions": {"rowTag": "o"}}


def test_an_element_of_xml_that_stands_twice_is_refused_where_one_value_is_declared(
    spark, tmp_path
):
    (tmp_path / "a.xml").write_text('<r><o i="1"><c>1</c><c>2</c></o></r>')
    one = fields(_i="long", c="long")
    with pytest.raises(SourceNotReadable, match="a value of c would change"):
        reader(spark, files("xml", tmp_path / "*", schemaFields=one, **XML)).read(NOW)
    many = fields(_i="long", c={"array": {"elementType": {"long": {}}}})
    assert rows_at(reader(spark, files("xml", tmp_path / "*", schemaFields=many, **XML)), NOW) == [
        (1, [1, 2])
    ]


def test_xml_of_single_elements_is_read(spark, tmp_path):
    (tmp_path / "a.xml").write_text(
        '<r><o i="1"><c u="kg">1.5</c><s><t>x</t></s></o><o i="2"><s/></o></r>'
    )
    read = rows_at(reader(spark, files("xml", tmp_path / "*", **XML)), NOW)
    assert [row[0] for row in read] == [1, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1}\n{"a": 2}\n', "more than one value"),
        ('{\n"a": 1, "a": 2}\n', "twice"),
    ],
)
def test_a_multiline_json_file_is_checked_as_a_line_is(spark, tmp_path, text, message):
    (tmp_path / "a.json").write_text(text)
    whole = {"formatOptions": {"multiLine": "true"}}
    with pytest.raises(SourceNotReadable, match=message) as caught:
        reader(spark, files("json", tmp_path / "*", **whole)).read(NOW)
    assert "a.json" in str(caught.value.found)

    (tmp_path / "a.json").write_text('[{"a": 1},\n{"a": 2}]')
    assert rows_at(reader(spark, files("json", tmp_path / "*", **whole)), NOW) == [(1,), (2,)]


SCORES = [
    {"name": "id", "dataType": "integer"},
    {"name": "score", "dataType": "double"},
    {"name": "name", "dataType": "string"},
]


def located_failure(spark, data_format, path, **declared):
    read = reader(spark, files(data_format, path, **declared)).read(NOW)
    with pytest.raises((PySparkException, Py4JError)) as caught:
        read.frame.collect()
    return located(translate(caught.value), [read], spark, NO_ALLOWANCES)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("id,score,name\n1,2.5,a\n2,n/a,b\n3,n/a,c\n", 3),
        ("name,new,score,id\na,,2.5,1\nb,,1,2\nb,,n/a,2\n", 4),
        ('id,score,name\n1,2.5,"a\nb"\n2,n/a,"c\nd"\n', 4),
    ],
)
def test_a_value_of_csv_that_is_no_number_is_named_with_column_and_line(
    spark, tmp_path, content, line
):
    (tmp_path / "a b.csv").write_text(content)
    options = {"header": "true"}
    error = located_failure(
        spark, "csv", tmp_path / "*", formatOptions=options, schemaFields=SCORES
    )
    assert error.message == "a value of score is no double"
    assert error.found.startswith(f"n/a in line {line} of file:/")
    assert error.found.endswith("a b.csv")
    assert "n/a is no value in any column" in error.hint


@pytest.mark.parametrize("value", ['"n/a"', "[1]", "{}"])
def test_a_value_of_json_that_is_no_number_is_named_with_field_and_line(spark, tmp_path, value):
    (tmp_path / "a.json").write_text(f'{{"id": 1, "score": 2}}\n{{"score": {value}, "id": 2}}\n')
    error = located_failure(spark, "json", tmp_path / "*", schemaFields=SCORES)
    assert error.message == "a value of score is no double"
    assert "in line 2 of file:/" in error.found
    assert "nullValue" not in error.hint


def test_a_record_that_is_cut_short_is_named_by_its_line(spark, tmp_path):
    (tmp_path / "a.csv").write_text("1,2,a\n2\n")
    error = located_failure(spark, "csv", tmp_path / "*", schemaFields=SCORES)
    assert error.message == "a record cannot be read"
    assert error.found.startswith("2 in line 2 of ")


def test_a_long_value_is_cut_and_a_secret_is_not_shown(spark, tmp_path):
    secret = "postgresql://ada:hunter2@db/shop" + "x" * 200
    (tmp_path / "a.csv").write_text(f"1,{secret},a\n")
    error = located_failure(spark, "csv", tmp_path / "*", schemaFields=SCORES)
    assert error.message == "a value of score is no double"
    assert "hunter2" not in str(error)
    assert "x" * 90 not in str(error)


HARMLESS = {
    "float": ("0123456789.9", 12), "double": ("0123456789.9e-", 24),
    "timestamp": ("01259-:. TZ", 24), "date": ("0129- T:Z", 14),
}  # fmt: skip


@pytest.mark.parametrize("kind", HARMLESS)
def test_no_harmless_text_is_lost(spark, kind):
    chance = random.Random(11)
    letters, most = HARMLESS[kind]
    texts = ["".join(chance.choices(letters, k=chance.randint(1, most))) for _ in range(6000)]
    texts += [f"{chance.randint(0, 10 ** chance.randint(1, 10))}.{'9' * chance.randint(0, 9)}"
              f"{chance.randint(0, 10 ** chance.randint(0, 20))}" for _ in range(6000)]  # fmt: skip
    texts += [f"{chance.random()!r}e-{chance.randint(0, 99):02}" for _ in range(1000)]
    days = [f"20{chance.randint(10, 99)}-0{chance.randint(1, 9)}-1{n % 9}" for n in range(500)]
    texts += days + [f"{day} 1{n % 9}:00:00.{n}" for n, day in enumerate(days)]
    loss = text_loss(SIMPLE[kind], Writing(False, False, False, False))
    text = sf.col("text")
    frame = spark.createDataFrame([(one,) for one in texts], "text string")
    harmless = frame.where(text.rlike(f"^{loss.harmless}\\z"))
    assert harmless.count() > 300
    assert harmless.where(loss.is_lost(text)).head() is None
