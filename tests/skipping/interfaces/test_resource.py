"""`snaploom index apply`: indexes become what resources declare, and stay so."""

from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import SparkSession
from support.skipping.indexinterfaces import DAYS, Lake, by_sql, command, printed

from snaploom import skipping
from snaploom.cli.main import run_command
from snaploom.errors import IndexAlreadyExists, IndexOwned
from snaploom.skipping.lifecycle.alteration import Alteration
from snaploom.skipping.spark.interfaces import enable
from snaploom.skipping.statements.syntax import PathName


def apply(lake: Lake, *arguments: str, **spec: object) -> int:
    return run_command(["index", "apply", "-f", str(lake.declare(**spec)), *arguments])


def test_applying_twice_changes_nothing(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    assert apply(lake) == 0
    assert "create MIN_MAX(price)" in capsys.readouterr().out
    before = lake.state()
    assert before.may_skip
    assert apply(lake, refresh={"mode": "FULL"}) == 0
    assert "refresh mode FULL, was AUTO" in capsys.readouterr().out
    after = lake.state()
    assert apply(lake, refresh={"mode": "FULL"}) == 0
    assert capsys.readouterr().out == "SkippingIndex/of-lake: nothing to do.\n"
    assert lake.state() == after
    assert after.segments == before.segments


def test_what_changed_is_altered_and_only_that(lake, capsys):
    apply(lake, indexes=[{"type": "MIN_MAX", "column": "price"}])
    lake.add("2024-01-04", 9)
    wanted = [
        {"type": "VALUE_SET", "column": "name", "parameters": {"limit": "20"}},
        {"type": "PARTITION", "column": "day"},
    ]
    capsys.readouterr()
    assert apply(lake, "--dry-run", "-o", "json", indexes=wanted, enabled=False) == 0
    planned = printed(capsys.readouterr().out)["done"]
    assert planned == [
        "alter: add VALUE_SET(name)",
        "alter: add PARTITION(day)",
        "alter: drop MIN_MAX(price)",
        "alter: disable",
        "refresh INCREMENTAL: 1 new, 0 changed, 0 removed, 3 unchanged",
    ]
    assert [index.label for index in lake.definition().indexes] == ["MIN_MAX(price)"]
    assert apply(lake, indexes=wanted, enabled=False) == 0
    labels = [index.label for index in lake.definition().indexes]
    assert labels == ["VALUE_SET(name)", "PARTITION(day)"]
    capsys.readouterr()
    assert command("describe", lake, "-o", "json") == 0
    files = printed(capsys.readouterr().out)["files"]
    assert files == {"indexed": len(DAYS) + 1, "stale": 0, "missing": 0, "gone": 0}


def test_an_owned_index_is_refreshed_and_described_by_others_and_not_changed(spark, lake, capsys):
    apply(lake)
    path = f"parquet.`{lake.data}`"
    enable.sql(spark, f"REFRESH SKIPPING INDEX ON {path} FULL")
    assert enable.sql(spark, f"DESC SKIPPING INDEX ON {path}").count() == 1
    for statement in (
        "DROP SKIPPING INDEX ON {}",
        "ALTER SKIPPING INDEX ON {} WITH (enabled=true)",
    ):
        with pytest.raises(IndexOwned, match="SkippingIndex/of-lake"):
            enable.sql(spark, statement.format(path))
    assert command("drop", lake) == 1
    assert "SkippingIndex/of-lake" in capsys.readouterr().err
    declared = str(lake.declare())
    assert run_command(["index", "drop", "of-lake", "-f", declared]) == 0
    assert not lake.state().exists


def test_a_resource_takes_over_what_was_made_by_hand(spark, lake, capsys):
    by_sql(spark, lake)
    assert apply(lake) == 0
    assert "owned by SkippingIndex/of-lake from now on" in capsys.readouterr().out
    assert lake.definition().owner == "SkippingIndex/of-lake"


def test_two_resources_do_not_share_an_index(lake, capsys):
    apply(lake)
    assert apply(lake, name="other") == 1
    assert "owned by SkippingIndex/of-lake" in capsys.readouterr().err


def test_every_finding_about_a_resource_is_reported_with_its_line(lake, capsys):
    wrong = [
        {"type": "MIN_MAX", "column": "prize"},
        {"type": "PARTITION", "column": "price"},
        {"type": "MIN_MAX", "column": "day"},
    ]
    assert apply(lake, indexes=wrong, where="price > 3") == 2
    errors = capsys.readouterr().err
    assert errors.count("error SL186") == 3
    for path in ("spec.indexes[0]", "spec.indexes[1]", "spec.where"):
        assert path in errors
    assert "of-lake.yaml:" in errors
    assert "there is no column prize" in errors
    assert not lake.state().exists


OWNER = "SkippingIndex/of-lake"
Act = Callable[[SparkSession, Lake], object]


@pytest.fixture
def owned(spark: SparkSession, lake: Lake) -> Iterator[Lake]:
    assert run_command(["index", "apply", "-f", str(lake.declare())]) == 0
    yield lake
    assert lake.definition().owner == OWNER


def statement(text: str) -> Act:
    return lambda spark, lake: enable.sql(spark, text.format(f"parquet.`{lake.data}`"))


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
def test_commands_follow_the_same_rule(owned, tmp_path, capsys, name, more, code):
    metadata = str(tmp_path / "metadata")
    assert command("export", owned, metadata) == 0
    capsys.readouterr()
    assert command(name, owned, *(each.format(metadata=metadata) for each in more)) == code
    assert (OWNER in capsys.readouterr().err) == bool(code)


def test_what_its_owner_dropped_is_vacuumed_by_its_owner(lake, capsys):
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
