"""What the page about sizes derives follows from what was measured."""

import re
from dataclasses import replace

import pytest
import yaml
from generation.benchmarkhistory import Run, benchmark_pages, picture, runs
from generation.clustersizes import (
    CLUSTERS,
    GIBI,
    MEBI,
    SECTION,
    Cluster,
    Measured,
    accelerated_share,
    example,
    measured,
    sizes,
)
from support.documentation.pages import REPOSITORY

from snaploom.models.run import RunSettings
from snaploom.policy.pods import refusals

ONE = Measured(
    scale_factor="1",
    rows=6.0,
    processor=36.0,
    read=50.0,
    shuffled=200.0,
    largest=100.0,
    spilled=10.0,
    written=70.0,
    expansion=4.0,
    resident=2500.0,
    driver=100.0,
    task_memory=10.0,
    task_time=2.0,
)
BILLION = Cluster(1e9, 10, 128 * MEBI, 128 * MEBI)


def test_sizes_follow_from_what_was_measured() -> None:
    found = sizes(ONE, BILLION)
    assert found.hours == pytest.approx(1000 * 36 / (10 * 4 * 0.6) / 3600)
    assert found.partitions == 746  # 100 bytes of 10^9 rows, in pieces of 128 MiB
    assert found.reads == 373  # half of it
    assert found.tasks == 373 + 2 * 746
    assert found.executor_disk == pytest.approx(210 * 1e9 / 10 * 1.5)
    assert found.executor_heap == 6 * GIBI  # 1.5 x (4 x 128 MiB x 4 / 0.6 + 300 MiB)
    assert found.split_share == pytest.approx(5 * 128 * MEBI / 1e11)
    assert found.driver_minutes == pytest.approx((373 + 2 * 746) * 2 / 60_000)


def test_the_accelerator_takes_less_time_and_as_much_memory_again() -> None:
    plain, native = sizes(ONE, BILLION), sizes(ONE, BILLION, 0.5)
    assert native.hours == pytest.approx(plain.hours / 2)
    assert (plain.executor_native, native.executor_native) == (0, native.executor_heap)
    assert replace(native, hours=plain.hours, executor_native=0) == plain


def test_the_share_of_the_accelerator_is_that_of_a_job_without() -> None:
    by_hand = "ratio to hand-written with Spark's defaults"
    native = run(**{f"one accelerated snapshot, processor, {by_hand}": 0.4})
    assert accelerated_share(native, run(**{f"one snapshot, {by_hand}": 0.8})) == 0.5


def test_more_rows_need_more_tasks_and_disk_and_no_larger_executor() -> None:
    here, there = sizes(ONE, BILLION), sizes(ONE, replace(BILLION, rows=1e11))
    assert there.partitions == pytest.approx(100 * here.partitions, rel=0.01)
    assert there.executor_disk == pytest.approx(100 * here.executor_disk)
    assert there.executor_heap == here.executor_heap


def test_the_driver_keeps_no_more_tasks_than_spark_retains() -> None:
    large = sizes(replace(ONE, task_memory=100.0), replace(BILLION, rows=1e11))
    assert large.tasks > 100_000
    without = (100 * MEBI + large.blocks) * 1.5
    assert without < large.driver_heap <= without + 100_000 * 100 * 1024 * 1.5 + GIBI


@pytest.mark.parametrize("cluster", CLUSTERS, ids=lambda cluster: f"{cluster.rows:g}")
def test_the_examples_ask_for_what_was_derived(cluster: Cluster) -> None:
    found = sizes(measured(last_run()), cluster)
    run = RunSettings.model_validate(yaml.safe_load(example(cluster, found))["spec"]["run"])
    assert refusals(run.spark) == ()
    assert run.spark.spark_conf["spark.sql.shuffle.partitions"] == str(found.partitions)
    assert run.spark.executor.instances == cluster.executors


def test_a_run_without_a_figure_is_refused() -> None:
    whole = last_run()
    values = {name: value for name, value in whole.values.items() if "spilled" not in name}
    with pytest.raises(KeyError, match="bytes spilled"):
        measured(whole.model_copy(update={"values": values}))


def last_run() -> Run:
    return [run for run in runs() if run.section == SECTION][-1]


# The docs show the figures of benchmarks, and draw how they have changed.


def run(**values: float) -> Run:
    goals = {"share": "<= 0.5", "recall": ">= 0.9", "runs": "= 30"}
    goals = {name: goal for name, goal in goals.items() if name in values}
    return Run(
        section="S", command="c", time="t", commit="c", machine="m", values=values, goals=goals
    )


def test_a_value_beyond_its_goal_is_marked() -> None:
    drawn = picture([run(share=0.4), run(share=0.6, recall=0.9, runs=31)])
    assert re.findall(r'class="(value[^"]*)"[^>]*>([^<]*)', drawn) == [
        ("value missed", "0.6"),
        ("value", "0.9"),
        ("value missed", "31"),
    ]


def test_a_line_has_a_point_for_each_run_with_a_value() -> None:
    drawn = picture([run(share=0.5, recall=1.0), run(recall=0.9), run(share=0.25, recall=0.9)])
    share, recall = re.findall(r'points="([^"]*)"', drawn)
    assert [len(points.split()) for points in (share, recall)] == [2, 3]
    (x1, y1), (x2, y2) = (map(float, point.split(",")) for point in share.split())
    assert x1 < x2
    assert y1 < y2  # half the value is nearer to the bottom


def test_every_section_with_goals_has_a_picture() -> None:
    sections = {run.section for run in runs() if run.goals}
    page = benchmark_pages()["benchmarks.md"]
    listed = {line.removeprefix("## ") for line in page.splitlines() if line[:3] == "## "}
    assert listed - {"Skipping beside peers"} == sections


def test_every_benchmark_is_run_by_one_command() -> None:
    makefile = (REPOSITORY / "Makefile").read_text("utf-8")
    (listed,) = re.findall(r"^BENCHMARKS := (.*)$", makefile, re.MULTILINE)
    assert set(listed.split()) == set(re.findall(r"^bench-(\w+):", makefile, re.MULTILINE))
