"""A snapshot has rows of one moment of its sources, whenever these are replaced during the run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from support.declared.declarations import document
from support.weaving.loom import Loom, Woven, ids

import snaploom
from snaploom.engine import hadoopfiles
from snaploom.engine.sources.opened import Sources
from snaploom.jobs.runevents import Event, SnapshotStarted
from snaploom.jobs.weaving import preparation, snapshot, snapshotsahead
from snaploom.jobs.weaving.runoptions import RunOptions
from snaploom.jobs.weaving.snapshot import MOST_WEAVINGS
from snaploom.models.report import RunPhase
from snaploom.planning.selection import Selection
from snaploom.storage.writeridentity import CrashPoint

pytestmark = pytest.mark.spark

STAGES = ("listing", "planned", "read", "writing", "written", "looked", "promoted")
"""Of a run, in their order: sources are listed at the first, and look as they were at `looked`."""
Act = Callable[[], None]


@dataclass
class Stages:
    """What is done when a run reaches a stage for the first time."""

    acts: dict[str, list[Act]] = field(default_factory=dict)
    is_repeated: bool = False

    def at(self, stage: str, act: Act) -> None:
        self.acts.setdefault(stage, []).append(act)

    def reach(self, stage: str) -> None:
        for act in self.acts.get(stage, []) if self.is_repeated else self.acts.pop(stage, []):
            act()

    def weave(self, spark: SparkSession, loom: Loom, **settings: Any) -> Woven:
        points = {CrashPoint.BEFORE_STAGING: "read", CrashPoint.AFTER_STAGING: "looked"}
        points |= {CrashPoint.DURING_PROMOTION: "promoted"}

        def listen(event: Event) -> None:
            if isinstance(event, SnapshotStarted):
                self.reach("planned")

        with self._around(preparation, "_listing", None, "listing"), self._around(
            snapshot, "write_frame", "writing", "written"
        ), self._around(snapshotsahead, "write_frame", "writing", "written"):
            return loom.weave(
                spark, reached=lambda point: self.reach(points.get(point, "")), emit=listen,
                **settings,
            )  # fmt: skip

    @contextmanager
    def _around(self, module: Any, name: str, before: str | None, after: str) -> Iterator[None]:
        original = getattr(module, name)

        def wrapped(*given: Any, **named: Any) -> Any:
            self.reach(before or "")
            result = original(*given, **named)
            self.reach(after)
            return result

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, name, wrapped)
            yield


def rows(version: str, *numbers: int) -> list[dict[str, Any]]:
    return [{**row, "version": version} for row in ids(*numbers or (1, 2))]


def replace(loom: Loom, source: str, day: int = 1, version: str = "new") -> None:
    """Put a file of the same length and time in the place of one."""
    path = loom.place / "sources" / source / f"2024-01-{day:02d}" / "part.parquet"
    before = path.stat()
    other = path.with_name(".other")
    pq.write_table(pq.read_table(loom.write("elsewhere", day, rows(version))), other)
    assert other.stat().st_size == before.st_size
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(path)


@pytest.fixture
def loom(tmp_path: Path) -> Loom:
    """Orders and customers of one day, of which every row names its version."""
    loom = Loom(tmp_path)
    for source in ("order", "customer"):
        loom.write(source, 1, rows("old"))
    loom.sources = ["order"]
    loom.join("customer")
    return loom


def versions(spark: SparkSession, loom: Loom, child: str = "customer") -> set[tuple[str, ...]]:
    """Versions that stand in one row together."""
    found = snaploom.read(spark, loom.uri).selectExpr(
        "snapshot_epoch", "data.version", f"{child}.data.version AS other"
    )
    return {(row[1], row[2]) for row in found.collect()}


@pytest.mark.parametrize(("first", "then"), [*combinations_with_replacement(STAGES, 2)])
def test_sources_replaced_at_any_stage_are_published_of_one_moment(
    spark, loom, first, then
) -> None:
    stages = Stages()
    stages.at(first, partial(replace, loom, "customer"))
    stages.at(then, partial(replace, loom, "order"))
    woven = stages.weave(spark, loom)
    assert woven.report.phase is RunPhase.SUCCEEDED, woven.report.message
    assert not stages.acts
    order, customer = ("old" if stage in ("looked", "promoted") else "new" for stage in (then, first))
    assert versions(spark, loom) == {(order, customer)}
    assert loom.is_clean()
