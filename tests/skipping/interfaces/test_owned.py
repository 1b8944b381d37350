"""Rule S26: others read an index that a resource owns, keep it fresh, and change nothing."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.skipping.indexinterfaces import Lake, command

from snaploom import skipping
from snaploom.cli.main import run_command
from snaploom.errors import IndexAlreadyExists, IndexOwned
from snaploom.skipping.lifecycle.alteration import Alteration
from snaploom.skipping.spark.interfaces import sqlfrontend
from snaploom.skipping.statements.syntax import PathName

OWNER = "SkippingIndex/of-lake"
Act = Callable[[SparkSession, Lake], object]


@pytest.fixture
def owned(spark: SparkSession, lake: Lake) -> Iterator[Lake]:
    assert run_command(["index", "apply", "-f", str(lake.declare())]) == 0
    yield lake
    assert lake.definition().owner == OWNER


def statement(text: str) -> Act:
    return lambda spark, lake: sqlfrontend.sql(spark, text.format(f"parquet.`{lake.data}`"))


def verb(name: str, *arguments: object) -> Act:
    def act(spark: SparkSession, lake: Lake) -> object:
        builder = skipping.skipping_index(spark, lake.base).on_path(lake.data)
        return getattr(builder.add_min_max("price"), name)(*arguments)

    return act


def altered(spark: SparkSession, lake: Lake) -> object:
    indexes = skipping.skipping_indexes(spark, lake.base)
    return indexes.alter(PathName("parquet", lake.data), Alteration(enabled=False))


REFUSED: tuple[Act, ...] = (
    statement("CREATE SKIPPING INDEX ON {} (price MIN_MAX)"),
    statement("ALTER SKIPPING INDEX ON {} WITH (enabled = false)"),
    statement("DROP SKIPPING INDEX ON {}"),
    verb("create"),
    verb("build"),
    verb("drop"),
    altered,
)
ALLOWED: tuple[Act, ...] = (
    statement("REFRESH SKIPPING INDEX ON {} FULL"),
    statement("DESCRIBE SKIPPING INDEX ON {}"),
    statement("RECOVER SKIPPING INDEX ON {}"),
    statement("CREATE SKIPPING INDEX IF NOT EXISTS ON {} (name VALUE_SET)"),
    verb("refresh"),
    verb("describe"),
    verb("recover"),
    verb("usage"),
)


@pytest.mark.parametrize("act", REFUSED)
def test_others_do_not_change_it(spark: SparkSession, owned: Lake, act: Act) -> None:
    before = owned.state()
    with pytest.raises((IndexOwned, IndexAlreadyExists), match=OWNER):
        act(spark, owned)
    assert owned.state() == before


@pytest.mark.parametrize("act", ALLOWED)
def test_others_describe_and_refresh_it(spark: SparkSession, owned: Lake, act: Act) -> None:
    declared = owned.definition()
    act(spark, owned)
    assert owned.definition() == declared
    assert owned.state().may_skip


@pytest.mark.parametrize(
    ("name", "more", "code"),
    [
        ("create", ("-i", "price MIN_MAX"), 1),
        ("build", ("-i", "price MIN_MAX"), 1),
        ("drop", (), 1),
        ("import", ("{metadata}",), 1),
        ("refresh", (), 0),
        ("recover", (), 0),
        ("compact", (), 0),
        ("describe", (), 0),
    ],
)
def test_commands_follow_the_same_rule(
    owned: Lake,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    more: tuple[str, ...],
    code: int,
) -> None:
    metadata = str(tmp_path / "metadata")
    assert command("export", owned, metadata) == 0
    capsys.readouterr()
    assert command(name, owned, *(each.format(metadata=metadata) for each in more)) == code
    assert (OWNER in capsys.readouterr().err) == bool(code)


def test_what_its_owner_dropped_is_vacuumed_by_its_owner(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    declared = str(lake.declare())
    for name in ("apply", "drop"):
        names = ("of-lake",) if name == "drop" else ()
        assert run_command(["index", name, *names, "-f", declared]) == 0
    assert command("vacuum", lake) == 1
    assert OWNER in capsys.readouterr().err
    assert run_command(["index", "vacuum", "of-lake", "-f", declared]) == 0


def test_enabling_changes_no_setting_of_other_sources(spark: SparkSession, lake: Lake) -> None:
    before = spark.conf.getAll
    skipping.enable(spark, lake.base)
    assert spark.conf.getAll == before
    skipping.disable(spark)
