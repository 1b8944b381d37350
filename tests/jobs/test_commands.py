"""What a run prints and leaves behind, and the same through spark-submit (rule W33)."""

import json
import sys
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
import yaml
from support.declared.declarations import document, simple, spoilt
from support.documentation.commands import DEADLINE, end, snaploom_command, start, wait_until
from support.weaving.loom import OUTPUT, Loom, ids

import snaploom.run.submit
from snaploom.skipping.lifecycle.description import list_indexes
from snaploom.skipping.stores.catalog import open_base

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]

AT = "2024-01-20T00:00:00Z"
SUBMIT = str(Path(snaploom.run.submit.__file__))
SPARK_SUBMIT = str(Path(sys.executable).with_name("spark-submit"))


@pytest.fixture
def loom(tmp_path: Path) -> Loom:
    loom = Loom(tmp_path)
    for day in (1, 2):
        loom.write("order", day, ids(*range(day)))
    return loom


def run(*arguments: str, folder: Path, **environment: str) -> tuple[int, str, str]:
    return end(snaploom_command(*arguments, folder=folder, environment=environment), folder)


def spark_submit(*arguments: str, folder: Path) -> tuple[int, str, str]:
    command = [SPARK_SUBMIT, "--master", "local[2]", SUBMIT, *arguments]
    return end(start(command, folder, {"PYSPARK_PYTHON": sys.executable}), folder)


def reports_in(out: str) -> list[dict]:
    """The Reports among what `spark-submit` prints: it merges both streams of the program."""
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


def test_run_prints_its_own_lines_only_and_leaves_nothing_beside_the_output(loom, tmp_path) -> None:
    model = str(loom.save())
    code, out, err = run("run", OUTPUT, "-f", model, "--now", AT, folder=tmp_path / "run")
    assert code == 0, err
    lines = [line.split(" in ")[0] for line in err.splitlines()]
    assert lines == [
        "wide: 2 snapshots due, 0 joins each",
        "snapshot 1 of 2: 2024-01-01T00:00:00Z",
        "published 2024-01-01T00:00:00Z: 1 rows",
        "snapshot 2 of 2: 2024-01-02T00:00:00Z",
        "published 2024-01-02T00:00:00Z: 2 rows",
    ]
    assert "published to" in out
    assert list((tmp_path / "run/cwd").iterdir()) == []


def test_java_that_cannot_start_is_one_clear_error(loom, tmp_path) -> None:
    arguments = ["run", OUTPUT, "-f", str(loom.save()), "-o", "json"]
    code, out, err = run(*arguments, folder=tmp_path / "run", JAVA_HOME="/nowhere")
    assert code == 1
    assert err.startswith("error SparkNotStarted")
    assert len(err.splitlines()) == 5
    assert "/nowhere/bin/java" in err
    assert "Traceback" not in err
    assert json.loads(out)["phase"] == "FAILED"
    assert not loom.out.exists()


def test_spark_that_refuses_its_settings_is_one_clear_error(loom, tmp_path) -> None:
    loom.spec["run.spark"] = {"sparkConf": {"spark.master": "nonsense"}}
    model, allowed = str(loom.save()), "sparkConf=spark.master"
    code, _, err = run("run", OUTPUT, "-f", model, "--allow", allowed, folder=tmp_path / "run")
    assert code == 1
    assert "error SparkNotStarted" in err
    assert "found:    Master must" in err
    assert len(err.splitlines()) == 5


def test_spark_submit_weaves_every_output_of_the_files(loom, tmp_path) -> None:
    first, second = loom.documents(), tmp_path / "second.yaml"
    output = spoilt(first[-1], "spec.outputFolder.folderUri", f"file://{tmp_path}/other/")
    output["metadata"]["name"] = "other"
    second.write_text(json.dumps(output))
    files = [str(loom.save()), str(second)]
    code, out, err = spark_submit("--config", *files, "--now", AT, folder=tmp_path / "run")
    assert code == 0, err
    reports = reports_in(out)
    assert [(r["output"], r["phase"], len(r["snapshots"])) for r in reports] == [
        ("wide", "SUCCEEDED", 2),
        ("other", "SUCCEEDED", 2),
    ]
    assert "published 2024-01-02T00:00:00Z: 2 rows" in out
    assert reports[0]["session"]["spark.sql.session.timeZone"] == "UTC"


def test_outputs_at_a_time_have_each_their_report_and_wait_for_what_they_read(loom, tmp_path):
    raws = loom.documents()
    reading = spoilt(raws[0], "metadata.name", "woven")
    data = f"{loom.uri}data/"
    reading["spec"]["hdfsLike"] |= {
        "sourceUriGlobs": [f"{data}*/*.parquet"],
        "sourceUriPrefix": f"{data}snapshot_epoch={{epoch:LONG}}/",
        "snapshot": {"fromFieldValue": {"fieldName": "epoch", "timeFormat": "UNIX_MILLISECONDS"}},
    }
    outputs = []
    for name, root in (("after", "woven"), ("beside", "order")):
        output = spoilt(raws[-1], "spec.outputFolder.folderUri", f"file://{tmp_path}/{name}/")
        output["metadata"]["name"] = name
        output["spec"]["dataModel"]["rootDataSource"]["dataSource"] = root
        outputs.append(output)
    file = tmp_path / "all.yaml"
    file.write_text(yaml.safe_dump_all([*outputs, reading, *raws]), "utf-8")
    arguments = ["run", "--all", "--parallel", "2", "-f", str(file), "--now", AT, "-o", "json"]
    code, out, err = run(*arguments, folder=tmp_path / "run")
    assert code == 0, err
    assert [(r["output"], len(r["snapshots"])) for r in json.loads(out)] == [
        ("after", 2),
        ("beside", 2),
        ("wide", 2),
    ]
    lines = err.splitlines()
    assert "beside: published" in err
    ends = [i for i, line in enumerate(lines) if line.startswith("wide: published")]
    begins = [i for i, line in enumerate(lines) if line.startswith("after: 2 snapshots due")]
    assert max(ends) < min(begins)


def test_spark_submit_ends_with_the_exit_codes_of_run(loom, tmp_path) -> None:
    loom.join("nothing")
    loom.others[0]["dataSource"] = "misspelt"
    code, out, err = spark_submit("--config", str(loom.save()), folder=tmp_path / "run")
    assert code == 2
    assert [report["phase"] for report in reports_in(out)] == ["FAILED"]
    assert "misspelt" in out
    assert "Traceback" not in out + err


def index_of(loom: Loom, name: str, target: dict, **refresh: str) -> dict:
    return document(
        "SkippingIndex",
        name,
        {
            "target": target,
            "store": {"parquet": {"location": str(loom.place / "indexes" / name)}},
            "indexes": [{"type": "MIN_MAX", "column": refresh.pop("column")}],
            "refresh": refresh,
        },
    )


def test_spark_submit_refreshes_the_indexes_of_the_files(loom, tmp_path) -> None:
    orders = {"path": {"uri": f"file://{tmp_path}/sources/order", "format": "parquet"}}
    orders["path"]["options"] = {"recursiveFileLookup": "true"}
    loom.more += [
        index_of(
            loom, "of-wide", {"outputDataset": OUTPUT}, column="data.id", trigger="ON_PUBLISH"
        ),
        index_of(loom, "of-order", orders, column="id"),
        index_of(loom, "broken", orders, column="no_such_column"),
    ]
    arguments = ["--config", str(loom.save()), "--now", AT]
    code, out, err = spark_submit(*arguments, folder=tmp_path / "run")
    assert code == 2, out + err
    assert [(report["output"], report["phase"]) for report in reports_in(out)] == [
        ("wide", "SUCCEEDED"),
        ("SkippingIndex/of-order", "SUCCEEDED"),
        ("SkippingIndex/broken", "FAILED"),
    ]
    assert "no_such_column" in out
    for name in ("of-wide", "of-order"):
        (described,) = list_indexes([open_base(str(tmp_path / "indexes" / name))])
        assert (described.rows, described.state.may_skip) == (2, True)


def slow_loom(loom: Loom) -> Loom:
    loom.root = "slow"
    loom.sources.append("slow")
    slow = "aggregate(sequence(1, 20000), 0L, (total, x) -> total + x)"
    loom.more.append(simple("slow", f"SELECT id, {slow} AS x FROM c", source="order"))
    loom.write("order", 1, pa.table({"id": pa.array(range(1_000_000))}))
    return loom


def is_writing(loom: Loom) -> bool:
    return any(loom.out.glob("data/.staging/**/*.parquet"))


def test_spark_that_dies_during_a_run_is_reported_and_leaves_the_folder_clean(loom, tmp_path):
    arguments = ["run", OUTPUT, "-f", str(slow_loom(loom).save()), "--now", AT, "-o", "json"]
    process = snaploom_command(*arguments, folder=tmp_path / "run")
    wait_until(lambda: is_writing(loom), process)
    psutil.Process(process.pid).children()[0].kill()
    code, out, err = end(process, tmp_path / "run")
    assert code == 1
    assert "Spark's JVM was killed" in json.loads(out)["message"]
    assert "Traceback" not in err
    assert loom.data_files() == set()


def test_spark_submit_that_is_terminated_leaves_the_folder_clean(loom, tmp_path) -> None:
    files = ["--config", str(slow_loom(loom).save()), "--now", AT]
    command = [SPARK_SUBMIT, "--master", "local[2]", SUBMIT, *files]
    process = start(command, tmp_path / "run", {"PYSPARK_PYTHON": sys.executable})
    wait_until(lambda: is_writing(loom), process)
    children = psutil.Process(process.pid).children(recursive=True)
    process.terminate()
    assert end(process, tmp_path / "run")[0] == 143
    psutil.wait_procs(children, DEADLINE)
    assert loom.data_files() == set()
