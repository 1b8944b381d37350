"""Runs over few bytes have a JVM that is fitted to little work; wherever it is unknown, not."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from support.declared.declarations import document
from support.weaving.loom import NOW, OUTPUT, START, Loom, ids

from snaploom.files.stores import open_store
from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.common import parse_instant
from snaploom.models.run import RunSettings
from snaploom.plan.bundle import Bundle
from snaploom.run.declarations import read_declarations
from snaploom.run.published import content
from snaploom.run.published.outputcheck import CheckRequest
from snaploom.run.runevents import Interruption
from snaploom.run.session import spark as sessions
from snaploom.run.session.classarchive import JAVA_VARIABLES, SMALL_BYTES, VARIABLE
from snaploom.run.session.jvm import SparkNotStarted
from snaploom.run.session.providers import with_drivers
from snaploom.run.weaving.preflight import PlanRequest
from snaploom.run.weaving.requests import RunRequest
from snaploom.run.weaving.runs import preview, weave_outputs

pytestmark = [pytest.mark.spark, pytest.mark.long]

MORE = pa.table({"id": [1], "text": [os.urandom(SMALL_BYTES // 2)]})
"""Two snapshots of it are too much."""


@dataclass
class Asked:
    """Whether a session was asked for little work, which there never is."""

    is_small: list[bool] = field(default_factory=list)

    def session(
        self, name: str, run: RunSettings, allow: Allowances, /, *, is_small: bool = False
    ) -> SparkSession:
        self.is_small.append(is_small)
        raise SparkNotStarted("no Java")

    def run(self, *bundles: Bundle) -> list[bool]:
        moment, interruption = parse_instant(NOW), Interruption()
        with pytest.raises(SparkNotStarted):
            weave_outputs(
                RunRequest(bundles, moment, lambda event: None, interruption),
                open_session=self.session,
            )
        return self.is_small


@pytest.fixture
def loom(tmp_path: Path) -> Loom:
    """Two days of orders, with customers."""
    loom = Loom(tmp_path)
    loom.join("customer")
    for day in (1, 2):
        loom.write("order", day, ids(*range(day)))
        loom.write("customer", day, ids(0))
    return loom


def through_a_query(loom: Loom) -> None:
    query = {"dataSource": "customer", "alias": "c", "dataQuery": "SELECT id FROM c"}
    loom.more.append(document("DataSource", "client", {"simpleVirtual": query}))
    loom.join("client")


def beside_what_is_not_due(loom: Loom) -> None:
    interval = "dataModel.rootDataSource.snapshotFilter.fromInterval"
    loom.spec[f"{interval}.intervalStartDate"] = {**START, "day": 2}
    for day in (10, 11):  # of no order
        loom.write("customer", day, MORE)


def snapshot_in_a_column(loom: Loom) -> None:
    source = loom._source("customer")
    files = source["spec"]["hdfsLike"]
    del files["sourceUriPrefix"]
    files["snapshot"]["fromFieldValue"]["fieldName"] = "date"
    loom.more.append(source)
    for day in (1, 2):
        loom.write("customer", day, [{"id": 0, "date": f"2024-01-{day:02d}"}])


def as_it_is(loom: Loom) -> None:
    """Two days."""


LITTLE = (as_it_is, through_a_query, beside_what_is_not_due, snapshot_in_a_column)


@pytest.mark.parametrize("change", LITTLE)
def test_run_over_few_bytes_is_small(loom: Loom, change: Callable[[Loom], None]) -> None:
    change(loom)
    assert Asked().run(loom.bundle()) == [True]


def with_more(loom: Loom) -> None:
    for day in (1, 2):
        loom.write("order", day, MORE)


def with_more_in_a_child_of_one_day(loom: Loom) -> None:
    loom.write("customer", 1, pa.table({"id": [0], "text": [os.urandom(SMALL_BYTES)]}))


def with_a_lost_file(loom: Loom) -> None:
    loom.write("customer", 2, ids(0)).write_bytes(b"")


def joined_with_a_table(loom: Loom) -> None:
    spec = {
        "format": "delta",
        "sourceUriGlobs": ["file:///nothing/"],
        "snapshot": {"fromReadTime": {}},
    }
    loom.more.append(document("DataSource", "table", {"hdfsLike": spec}))
    loom.join("table")


MUCH = (with_more, with_more_in_a_child_of_one_day, with_a_lost_file, joined_with_a_table)


@pytest.mark.parametrize("change", MUCH)
def test_run_over_more_bytes_or_unknown_ones_is_not_small(loom, change):
    change(loom)
    assert Asked().run(loom.bundle()) == [False]


def test_runs_of_several_outputs_are_not_small(loom: Loom) -> None:
    assert Asked().run(loom.bundle(), loom.bundle()) == [False]


def test_plan_of_few_bytes_is_small(loom: Loom) -> None:
    asked = Asked()
    with pytest.raises(SparkNotStarted):
        preview(PlanRequest(loom.bundle(), parse_instant(NOW)), open_session=asked.session)
    assert asked.is_small == [True]


@pytest.mark.parametrize(("limit", "expected"), [(SMALL_BYTES, True), (1, False)])
def test_check_of_few_published_bytes_is_small(spark, loom, monkeypatch, limit, expected):
    loom.weave(spark)
    monkeypatch.setattr(content, "SMALL_BYTES", limit)
    state, asked = loom.state(), Asked()
    store = open_store(loom.uri, create=False)
    times = [record.time for record in state.snapshots]
    request = CheckRequest(store, state, times)
    with pytest.raises(SparkNotStarted):
        content.check_content(request, print, Interruption(), asked.session)
    assert asked.is_small == [expected]


@pytest.mark.parametrize("is_kept", [False, True])
def test_session_that_is_kept_is_made_for_any_work(loom, monkeypatch, is_kept):
    found: list[bool] = []
    monkeypatch.setattr(sessions, "build_session", lambda *_, is_small: found.append(is_small))
    opened = with_drivers(read_declarations([loom.save()]), is_kept=is_kept)
    opened(OUTPUT, RunSettings(), NO_ALLOWANCES, is_small=True)
    assert found == [not is_kept]


SESSION = """
import json, sys
from snaploom.run.session.spark import build_session
from snaploom.models.run import RunSettings

spark = build_session("small", RunSettings(), is_small=sys.argv[1] == "small")
bean = spark._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()
print(json.dumps({"options": list(bean.getInputArguments()), "rows": spark.range(9).count()}))
"""


@pytest.mark.slow
@pytest.mark.parametrize("work", ["small", "any"])
def test_jvm_of_small_work_has_one_compiler(work: str) -> None:
    environment = {k: v for k, v in os.environ.items() if k not in JAVA_VARIABLES}
    environment[VARIABLE] = "off"  # a JVM that ends would write an archive for seconds
    command: Sequence[str] = [sys.executable, "-c", SESSION, work]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert found["rows"] == 9
    assert ("-XX:TieredStopAtLevel=1" in found["options"]) == (work == "small")
