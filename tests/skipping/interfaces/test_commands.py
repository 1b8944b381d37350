"""`snaploom index ...` on real files, and what it refuses."""

import json
import shutil
import subprocess
import sys

import pytest
from support.skipping.fakeopensearch import FakeOpenSearch, serving
from support.skipping.indexinterfaces import DAYS, Lake, command, printed

from snaploom.cli.main import run_command
from snaploom.models.skippingindex import IndexState
from snaploom.skipping.spark.interfaces.enable import disable, enable

BLOCKED = """
import sys
for name in ("pyspark", "py4j"):
    sys.modules[name] = None
from snaploom.cli.main import run_command
sys.exit(run_command(sys.argv[1:]))
"""


def test_an_index_lives_through_commands(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("build", lake, "-i", "price MIN_MAX, name VALUE_SET(5)") == 0
    captured = capsys.readouterr()
    assert "3 new" in captured.out
    assert "3 of 3 files read" in captured.err
    lake.add("2024-01-04", 5)
    assert command("describe", lake, "-o", "json") == 0
    document = printed(capsys.readouterr().out)
    assert document["state"] == "active"
    assert document["lastUsed"] is None
    assert document["files"] == {"indexed": len(DAYS), "stale": 0, "missing": 1, "gone": 0}
    assert [(index["known"], index["unknown"]) for index in document["indexes"]] == [(3, 0), (3, 0)]
    assert command("refresh", lake) == 0
    assert "1 new, 0 changed, 0 removed, 3 unchanged" in capsys.readouterr().out
    assert command("compact", lake) == 0
    assert len(lake.state().segments) == 1
    assert command("drop", lake) == 0
    assert command("vacuum", lake) == 0
    assert not lake.state().segments


def test_explain_shows_which_files_a_query_reads(spark, lake, capsys):
    assert command("build", lake, "-i", "price MIN_MAX") == 0
    capsys.readouterr()
    query = f"SELECT * FROM parquet.`{lake.data}` WHERE price = 25"
    assert run_command(["index", "explain", query, "--location", lake.base, "-o", "json"]) == 0
    (relation,) = json.loads(capsys.readouterr().out)
    assert (relation["files"], relation["kept_files"]) == (len(DAYS), 1)
    disable(spark)


def test_stats_show_how_queries_of_sessions_used_indexes(spark, lake, capsys):
    assert run_command(["index", "apply", "-f", str(lake.declare())]) == 0
    enable(spark, lake.base)
    for low in (0, 25):
        assert spark.read.parquet(lake.data).where(f"price >= {low}").count() == 30 - low
    disable(spark)
    capsys.readouterr()
    assert run_command(["index", "stats", lake.base, "-o", "json"]) == 0
    (index,) = json.loads(capsys.readouterr().out)
    used = index["usage"]
    assert (used["sessions"], used["reads"], used["served"]) == (1, 2, 1)
    assert (used["files"], used["droppedFiles"]) == (6, 2)
    assert 0 < used["droppedBytes"] < used["bytes"]
    assert run_command(["index", "stats", "-f", str(lake.folder / "of-lake.yaml")]) == 0
    assert "2 of 6 dropped" in capsys.readouterr().out
    assert command("describe", lake, "--offline", "-o", "json") == 0
    assert printed(capsys.readouterr().out)["lastUsed"] == used["lastUsed"]


def test_list_counts_files_where_it_is_asked_to(lake, capsys):
    other = lake.folder / "other"
    shutil.copytree(lake.data, other)
    place = ("--location", lake.base, "-i", "price MIN_MAX")
    for folder in (lake.data, str(other)):
        assert run_command(["index", "build", folder, *place]) == 0
    shutil.rmtree(other)
    lake.add("2024-01-04", 5)
    capsys.readouterr()
    assert run_command(["index", "list", lake.base, "--files", "-o", "json"]) == 0
    listed = {each["uri"]: each for each in json.loads(capsys.readouterr().out)}
    here, gone = listed[f"file:{lake.data}"], listed[f"file:{other}"]
    assert here["files"] == {"indexed": 3, "stale": 0, "missing": 1, "gone": 0}
    assert here["ageSeconds"] >= 0
    assert gone["files"] is None
    assert "cannot be listed" in gone["message"]
    assert run_command(["index", "list", lake.base, "--files"]) == 0
    captured = capsys.readouterr()
    assert "3 indexed, 1 missing" in captured.out
    assert "cannot be listed" in captured.err


def test_a_cluster_is_listed_and_keeps_no_notes_about_queries(lake, capsys):
    with serving(FakeOpenSearch()) as port:
        cluster = f"opensearch://127.0.0.1:{port}"
        place = (lake.data, "--location", cluster)
        assert run_command(["index", "build", *place, "-i", "price MIN_MAX"]) == 0
        capsys.readouterr()
        assert run_command(["index", "list", cluster, "-o", "json"]) == 0
        (listed,) = json.loads(capsys.readouterr().out)
        assert (listed["rows"], listed["form"], listed["lastUsed"]) == (3, "OPENSEARCH", None)
        assert run_command(["index", "stats", cluster, "-o", "json"]) == 0
        assert json.loads(capsys.readouterr().out)[0]["usage"] is None
        assert run_command(["index", "stats", cluster]) == 0
        assert "not recorded" in capsys.readouterr().out


def test_what_needs_only_the_store_needs_no_spark(lake: Lake) -> None:
    assert command("create", lake, "-i", "price MIN_MAX") == 0
    place = (lake.data, "--location", lake.base)
    for arguments in (
        ("list", lake.base),
        ("stats", lake.base),
        ("describe", *place, "--offline"),
        ("recover", *place),
        ("drop", *place),
        ("vacuum", *place),
    ):
        done = subprocess.run(
            [sys.executable, "-c", BLOCKED, "index", *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (arguments, done.stderr)
    assert lake.state().phase is IndexState.EMPTY
    assert lake.state().definition is None


def test_a_table_is_found_by_its_name(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("create", lake, "-i", "price MIN_MAX") == 0
    assert run_command(["index", "list", lake.base]) == 0
    assert f"file:{lake.data}" in capsys.readouterr().out
    assert run_command(["index", "drop", "no_such_table", "--location", lake.base]) == 1
    assert "nothing about no_such_table" in capsys.readouterr().err


@pytest.mark.parametrize("damage", ["{", '{"format": 99}'])
def test_an_unreadable_index_is_shown_by_some_commands_and_refused_by_others(lake, capsys, damage):
    assert command("create", lake, "-i", "price MIN_MAX") == 0
    (state,) = (lake.folder / "indexes").rglob("manifest/*.json")
    state.chmod(0o644)
    state.write_text(damage)
    for arguments in (("describe",), ("describe", "--offline")):
        capsys.readouterr()
        assert command(*arguments[:1], lake, "-o", "json", *arguments[1:]) == 0
        assert printed(capsys.readouterr().out)["state"] == "unreadable"
    assert run_command(["index", "list", lake.base]) == 0
    assert "unreadable" in capsys.readouterr().out
    for name in ("refresh", "drop", "recover", "compact"):
        assert command(name, lake) == 1
        message = capsys.readouterr().err
        assert "error IndexUnreadable" in message
        assert "Traceback" not in message


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("create", "{data}", "--location", "{base}"), 2, "no index type is given"),
        (("create", "{data}", "-i", "price MIN_MAX"), 2, "no index location is given"),
        (("create", "{data}", "--location", "{base}", "-i", "price MNI_MAX"), 2, "write MIN_MAX"),
        (("create", "{data}", "--location", "{base}", "-i", "price"), 2, "type of the index"),
        (("create", "{data}", "--location", "{base}", "-i", "prize MIN_MAX"), 2, "column prize"),
        (("create", "{data}", "--location", "{base}", "-i", "person MIN_MAX"), 2, "struct"),
        (
            ("create", "{data}", "--location", "{base}", "-i", "price BLOOM_FILTER(fpp=2)"),
            2,
            "between 0 and 1",
        ),
        (
            ("create", "{data}/none", "--location", "{base}", "-i", "price MIN_MAX"),
            2,
            "cannot be read as parquet",
        ),
        (("create", "no_table", "--location", "{base}", "-i", "a MIN_MAX"), 2, "is no table"),
        (("refresh", "{data}", "--location", "{base}"), 1, "there is no skipping index"),
        (("drop", "{data}", "--location", "{base}"), 1, "there is no skipping index"),
        (("describe", "{data}", "--location", "{base}"), 1, "there is no skipping index"),
        (("describe", "{data}", "--location", "{base}", "--conf", "x"), 2, "name=value"),
        (("describe", "t", "--location", "{base}", "--option", "a=b"), 2, "not to tables"),
        (("apply", "-f", "{data}"), 2, "no resource of snaploom.io"),
        (("list", "{base}/none"), 2, "there is no such location"),
        (("stats", "{base}/none"), 2, "there is no such location"),
        (("stats",), 2, "no index is named"),
        (("stats", ""), 2, "there is no such location"),
        (("create", "", "--location", "{base}", "-i", "price MIN_MAX"), 2, "no target is given"),
        (
            ("create", "{data}", "--location", "", "-i", "price MIN_MAX"),
            2,
            "no index location is given",
        ),
        (("explain", "SELECT 1", "--location", "{base}/none"), 2, "there is no such location"),
        (("polish", "{data}"), 2, "polish"),
    ],
)
def test_wrong_input_is_one_message(lake, capsys, arguments, code, text):
    filled = [argument.format(data=lake.data, base=lake.base) for argument in arguments]
    assert run_command(["index", *filled]) == code
    message = capsys.readouterr().err
    assert text in message
    assert "Traceback" not in message
    assert not lake.state().exists
