"""Time to plan models with many sources: validation, join tree, and the plan of a backlog."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

from figures import Figure

from snaploom.models.common import (
    DataType,
    Empty,
    EpochNanos,
    LocalDateTime,
    ObjectMeta,
    Resource,
    TimeOffset,
    parse_instant,
)
from snaploom.models.datarelationship import (
    DataRelationship,
    DataRelationshipSpec,
    KeyComponent,
    KeyField,
    Representation,
)
from snaploom.models.datasource import (
    DataSource,
    DataSourceSpec,
    FromReadTime,
    HdfsLike,
    SnapshotSettings,
)
from snaploom.models.outputdataset import (
    DataModel,
    FromInterval,
    HivePartitioned,
    OtherDataSource,
    OutputDataset,
    OutputDatasetSpec,
    OutputFolder,
    RootDataSource,
    SnapshotFilter,
    SnapshotFormat,
    UsedRelationship,
)
from snaploom.plan.bundles import bundle_for
from snaploom.plan.intervals import SourceSnapshots
from snaploom.plan.plan import PublishedState, plan_offline, plan_run
from snaploom.plan.tree import join_graph, plan_tree
from snaploom.validate.validator import validate

SNAPSHOTS = 30
DAY = 86_400 * 10**9
START = parse_instant("2024-01-01T00:00:00Z")
LONG = DataType(long=Empty())


def startup_figure() -> Figure:
    """Seconds until `snaploom --help` has answered: what everybody waits for."""
    program = Path(sys.executable).with_name("snaploom")
    taken = []
    for _ in range(7):
        started = perf_counter()
        subprocess.run([program, "--help"], capture_output=True, check=True)
        taken.append(perf_counter() - started)
    return Figure.at_most("snaploom --help, seconds", median(taken), 0.3)


def planning_figures() -> list[Figure]:
    """Seconds to validate and plan 10, 100 and 1,000 sources with a backlog of 30 snapshots."""
    figures = []
    for sources, relationships in ((10, 3), (100, 30), (1000, 300)):
        seconds = min(_measure(sources, relationships) for _ in range(3))
        name = f"planning {sources} sources x {relationships} relationships, seconds"
        limit = 2.0 if sources == 1000 else 0.5
        figures.append(Figure.at_most(name, seconds, limit))
    dense = min(_measure_dense(1000, 300) for _ in range(5))
    return [
        *figures,
        Figure.at_most(
            "join tree, 300 relationships over 1000 sources, processor seconds", dense, 0.25
        ),
    ]


def _measure(sources: int, relationships: int) -> float:
    resources = declared_model(sources, relationships)
    times = [EpochNanos(START + day * DAY) for day in range(SNAPSHOTS)]
    offered = {f"s{i}": SourceSnapshots.of(times) for i in range(sources)}
    started = perf_counter()
    findings = validate(resources)
    bundle = bundle_for("OutputDataset", "wide", resources)
    plan = plan_run(plan_offline(bundle), offered, PublishedState(), EpochNanos(times[-1] + 1))
    seconds = perf_counter() - started
    assert not any(finding.is_error for finding in findings), findings[:3]
    assert plan.snapshots is not None
    assert len(plan.snapshots) == SNAPSHOTS
    assert len(plan.tree.joins) == sources - 1
    return seconds


def _measure_dense(sources: int, relationships: int) -> float:
    """Processor seconds for the join tree, where every relationship joins all sources."""
    names = [f"s{i}" for i in range(sources)]
    resources = model_of(sources, [names] * relationships, "/data")
    bundle = bundle_for("OutputDataset", "wide", resources)
    started = process_time()
    tree = plan_tree(join_graph(bundle.output.spec.data_model, bundle.data_relationships))
    seconds = process_time() - started
    assert len(tree.joins) == sources - 1
    return seconds


def declared_model(sources: int, relationships: int) -> list[Resource]:
    """Relationship j joins source j with a run of sources of its own: wide, and three deep."""
    groups: list[list[str]] = [[] for _ in range(relationships)]
    for i in range(1, sources):
        groups[(i - 1) % relationships].append(f"s{i}")
    heads = [0 if j == 0 else int(groups[(j - 1) // 2][0][1:]) for j in range(relationships)]
    members = [[f"s{head}", *group] for head, group in zip(heads, groups, strict=True)]
    return model_of(sources, members, "/data")


def model_of(sources: int, members: Sequence[Sequence[str]], data: str) -> list[Resource]:
    """Sources `s0`, the root, and others with files below a folder.

    Args:
        sources: how many.
        members: the sources that each relationship joins, the one nearest to the root first.
        data: path of the folder; the output's is `wide` in it.
    """
    return [
        *(_source(f"s{i}", data) for i in range(sources)),
        *(_relationship(f"r{j}", names) for j, names in enumerate(members)),
        _output(sources, len(members), data),
    ]


def _source(name: str, data: str) -> DataSource:
    files = HdfsLike(
        format="parquet",
        source_uri_globs=(f"file://{data}/{name}/*.parquet",),
        snapshot=SnapshotSettings(from_read_time=FromReadTime()),
    )
    return DataSource(metadata=ObjectMeta(name=name), spec=DataSourceSpec(hdfs_like=files))


def _relationship(name: str, members: Sequence[str]) -> DataRelationship:
    key = KeyComponent(fields_=(KeyField(field_name=f"{name}_id", data_type=LONG),))
    written = Representation(data_sources=tuple(members), join_key=(key,))
    return DataRelationship(
        metadata=ObjectMeta(name=name), spec=DataRelationshipSpec(representations=(written,))
    )


def _output(sources: int, relationships: int, data: str) -> OutputDataset:
    start = LocalDateTime(
        year=2024, month=1, day=1, hour=0, minute=0, second=0, nano=0, timezone="UTC"
    )
    interval = FromInterval(interval_start_date=start, interval_length=TimeOffset(day=1))
    model = DataModel(
        root_data_source=RootDataSource(
            data_source="s0", snapshot_filter=SnapshotFilter(from_interval=interval)
        ),
        other_data_sources=tuple(
            OtherDataSource(data_source=f"s{i}", field_name=f"s{i}") for i in range(1, sources)
        ),
        data_relationships=tuple(
            UsedRelationship(name=f"r{j}", anti_priority=j + 1) for j in range(relationships)
        ),
        max_depth=32,
    )
    folder = OutputFolder(
        folder_uri=f"file://{data}/wide/",
        snapshot_format=SnapshotFormat(hive_partitioned=HivePartitioned()),
    )
    return OutputDataset(
        metadata=ObjectMeta(name="wide"),
        spec=OutputDatasetSpec(data_model=model, output_folder=folder),
    )
