"""The page about what to give a cluster: derived from the last run of `make bench-growth`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from generation.benchmarkhistory import Run, runs
from generation.markdown import NOTE, block, table
from snaploom.policy.acceleration import off_heap_mebibytes

PAGE = "how-to/size-a-cluster.md"
"""Below `docs/`."""
TEXT = Path(__file__).with_name("clustersizes.md.in")
"""What people write of the page, with the places of what is generated."""
SECTION, NATIVE, JOINS = "Growth", "Native", "Joins"
MEBI, GIBI = 1 << 20, 1 << 30
CORES = 4
"""Of an executor: enough that its tasks share what is broadcast."""
FRACTION = 0.6
"""Spark's `spark.memory.fraction`: what of a heap is for sorts, joins and caches."""
RESERVED = 300 * MEBI
"""What Spark keeps of a heap before it takes the fraction."""
SKEWED, SKEW_FACTOR = 256 * MEBI, 5
"""Bytes of a partition, and how many times the median, from which on Spark splits one: its
`spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes` and `skewedPartitionFactor`."""
BUSY = 0.6
"""Share of the time in which cores compute. An assumption: what stores and networks take is not
measured here."""
SPARE = 1.5
"""How much more memory and disk is given than the formula asks for."""
SIZES_KEPT = 2000
"""Partitions up to which Spark keeps a byte for each block, by its
`spark.shuffle.minNumPartitionsToHighlyCompress`; beyond them it is a bit."""
RETAINED = 100_000
"""Tasks that a driver keeps, by Spark's `spark.ui.retainedTasks`."""


@dataclass(frozen=True)
class Measured:
    """What the benchmark measured at its largest scale factor."""

    scale_factor: str
    rows: float
    """Millions."""
    processor: float
    """Processor seconds of executors for a million rows."""
    read: float
    """Bytes of source files a row."""
    shuffled: float
    """Bytes of all shuffles a row."""
    largest: float
    """Bytes of the largest shuffle a row."""
    spilled: float
    """Bytes spilled to disk a row."""
    written: float
    """Bytes of published files a row."""
    expansion: float
    """Bytes of execution memory for each byte that a task reads of a shuffle."""
    resident: float
    """MiB that an executor's process had at most, with a heap of 2,048 MiB."""
    driver: float
    """MiB of the driver's live heap."""
    task_memory: float
    """KiB that the driver keeps of a task."""
    task_time: float
    """Processor milliseconds of the driver for a task."""


_NAMES = {
    "rows": "million rows",
    "processor": "processor seconds per million rows, executor",
    "read": "bytes read a row",
    "shuffled": "bytes of shuffles a row",
    "largest": "bytes of the largest shuffle a row",
    "spilled": "bytes spilled to disk a row",
    "written": "bytes written a row",
    "expansion": "execution memory by byte of shuffle",
    "resident": "executor of 2048m, peak resident, MiB",
    "driver": "driver of 512m, live heap, MiB",
}
"""Figures of a scale factor, without its name."""


@dataclass(frozen=True)
class Cluster:
    """What is chosen for a number of rows."""

    rows: float
    executors: int
    split: int
    """Bytes of a source file that one task reads."""
    partition: int
    """Bytes of a shuffle that one task reads. More rows have larger ones: each task that reads
    files writes a block for each of them, and Spark keeps where it is."""


CLUSTERS = (
    Cluster(1e9, 10, 128 * MEBI, 128 * MEBI),
    Cluster(1e11, 200, 512 * MEBI, 256 * MEBI),
)
"""What the page has examples of."""


@dataclass(frozen=True)
class Sizes:
    """What follows for a cluster."""

    reads: int
    """Tasks that read the sources."""
    partitions: int
    """Of a shuffle."""
    tasks: int
    """Of a run, about."""
    blocks: float
    """Bytes of the driver for where blocks of the largest shuffle are."""
    hours: float
    executor_heap: int
    """Bytes."""
    executor_native: int
    """Bytes of native memory; none without the accelerator."""
    executor_disk: float
    """Bytes."""
    driver_heap: int
    """Bytes."""
    split_share: float
    """Share of the rows from which on Spark splits the partition of one key."""
    driver_minutes: float
    """Of its processor."""
    published: float
    """Bytes."""


def measured(run: Run) -> Measured:
    """The figures of the largest scale factor of a run.

    Args:
        run: of the benchmark of growth.

    Raises:
        KeyError: it lacks a figure.
    """
    factors = {
        found[1] for name in run.values if (found := re.match(r"SF ([0-9.]+), ", name)) is not None
    }
    largest = max(factors, key=float)
    return Measured(
        largest,
        **{key: run.values[f"SF {largest}, {name}"] for key, name in _NAMES.items()},
        # Differences of two measurements: less than nothing is noise.
        task_memory=max(run.values["driver, KiB kept of a task"], 0.0),
        task_time=max(run.values["driver, processor milliseconds a task"], 0.0),
    )


def accelerated_share(native: Run, joins: Run) -> float:
    """The processor time of a run with the accelerator, as a share of one without.

    Both were held against the same job by hand with Spark's defaults, each in a run of its own.

    Raises:
        KeyError: one of them lacks a figure.
    """
    by_hand = "ratio to hand-written with Spark's defaults"
    ours = native.values[f"one accelerated snapshot, processor, {by_hand}"]
    return ours / joins.values[f"one snapshot, {by_hand}"]


def sizes(one: Measured, cluster: Cluster, share: float | None = None) -> Sizes:
    """What a number of rows needs, if each costs what was measured.

    Args:
        one: what was measured.
        cluster: what was chosen.
        share: `accelerated_share`; omitted, there is no accelerator.
    """
    cores = cluster.executors * CORES
    reads = ceil(one.read * cluster.rows / cluster.split)
    partitions = max(ceil(one.largest * cluster.rows / cluster.partition), 2 * cores)
    tasks = reads + ceil(one.shuffled / one.largest * partitions)
    executor = CORES * cluster.partition * one.expansion / FRACTION + RESERVED
    blocks = reads * partitions * (1 if partitions <= SIZES_KEPT else 1 / 8)
    heap = _whole_gibibytes(executor * SPARE)
    driver = one.driver * MEBI + one.task_memory * 1024 * min(tasks, RETAINED) + blocks
    return Sizes(
        reads=reads,
        partitions=partitions,
        tasks=tasks,
        blocks=blocks,
        hours=one.processor * (share or 1) * cluster.rows / 1e6 / (cores * BUSY) / 3600,
        executor_heap=heap,
        executor_native=0 if share is None else off_heap_mebibytes(f"{heap // MEBI}m") * MEBI,
        executor_disk=(one.shuffled + one.spilled) * cluster.rows / cluster.executors * SPARE,
        # What is broadcast passes through it, and it has 2 GiB at least for that.
        driver_heap=max(_whole_gibibytes(driver * SPARE), 2 * GIBI),
        split_share=max(SKEWED, SKEW_FACTOR * cluster.partition) / (one.largest * cluster.rows),
        driver_minutes=one.task_time * tasks / 60_000,
        published=one.written * cluster.rows,
    )


def example(cluster: Cluster, found: Sizes) -> str:
    """The `run.spark` of an OutputDataset."""
    disk = ceil(found.executor_disk / GIBI)
    return f"""# Part of an OutputDataset
spec:
  run:
    spark:
      driver: {{cores: 2, memory: {found.driver_heap // GIBI}g}}
      executor:
        instances: {cluster.executors}
        cores: {CORES}
        memory: {found.executor_heap // GIBI}g
      sparkConf:
        spark.sql.files.maxPartitionBytes: {cluster.split // MEBI}m
        spark.sql.shuffle.partitions: "{found.partitions}"
      podTemplate:
        volumes:
          - name: spark-local-dir-1
            emptyDir: {{sizeLimit: {disk}Gi}}
        volumeMounts:
          - {{name: spark-local-dir-1, mountPath: /var/data/spark}}
"""


def sizes_page() -> str:
    """The page.

    Raises:
        KeyError: the last run of the benchmark lacks a figure.
    """
    run = [run for run in runs() if run.section == SECTION][-1]
    one = measured(run)
    native, joins = ([run for run in runs() if run.section == each][-1] for each in (NATIVE, JOINS))
    share = accelerated_share(native, joins)
    derived = [(each, sizes(one, each, way)) for each in CLUSTERS for way in (None, share)]
    first = f"For {_shown(CLUSTERS[0])}; for more, with the figures of their column:"
    yaml = block("yaml", example(*derived[0]))
    return NOTE + TEXT.read_text("utf-8").format(
        machine=run.machine,
        scale_factor=one.scale_factor,
        million_rows=f"{one.rows:.1f}",
        measured=table(["", "measured", "value"], _measured_rows(one)),
        chosen=table(["chosen", *map(_shown, CLUSTERS)], _chosen_rows()),
        derived=table(
            ["derived", "formula", *(f"{_shown(each)}{way}" for each in CLUSTERS for way in _WAYS)],
            _derived_rows(derived),
        ),
        share=f"{share:.2f}",
        examples=f"{first}\n\n{yaml}",
        keys=table(["keys", *_KEYS.values()], _key_rows(run)),
        wide=table(["", *_models(run)], _wide_rows(run)),
    )


_WAYS = ("", ", with Comet")
"""Without the accelerator, and with it."""


def _shown(cluster: Cluster) -> str:
    return f"10^{len(f'{cluster.rows:.0f}') - 1} rows"


def _measured_rows(one: Measured) -> list[list[str]]:
    return [
        ["c", "processor seconds of executors for a million rows", f"{one.processor:g}"],
        ["r", "bytes of source files a row", f"{one.read:g}"],
        ["s", "bytes of all shuffles a row", f"{one.shuffled:g}"],
        ["l", "bytes of the largest shuffle a row", f"{one.largest:g}"],
        ["p", "bytes spilled to disk a row", f"{one.spilled:g}"],
        ["w", "bytes of published files a row", f"{one.written:g}"],
        ["e", "bytes of memory that a task needs for a byte of shuffle", f"{one.expansion:g}"],
        [
            "",
            "MiB of an executor's process, at most, with a heap of 2,048 MiB",
            f"{one.resident:g}",
        ],
        ["d", "MiB of the driver's heap that are in use", f"{one.driver:g}"],
        ["t", "KiB of the driver's heap for each task", f"{one.task_memory:g}"],
        ["m", "processor milliseconds of the driver for each task", f"{one.task_time:g}"],
    ]


def _chosen_rows() -> list[list[str]]:
    return [
        ["executors x", *(f"{one.executors}" for one in CLUSTERS)],
        ["cores of each k", *(f"{CORES}" for _ in CLUSTERS)],
        ["bytes of files for a task b", *(f"{one.split // MEBI} MiB" for one in CLUSTERS)],
        ["bytes of a shuffle for a task q", *(f"{one.partition // MEBI} MiB" for one in CLUSTERS)],
        ["share of time in which cores compute u", *(f"{BUSY:g}, assumed" for _ in CLUSTERS)],
        ["to spare v", *(f"{SPARE:g}, assumed" for _ in CLUSTERS)],
    ]


def _derived_rows(derived: Sequence[tuple[Cluster, Sizes]]) -> list[list[str]]:
    lines: list[tuple[str, str, Callable[[Sizes], str]]] = [
        ("tasks that read", "N r / b", lambda one: f"{one.reads:,}"),
        ("partitions of a shuffle P", "N l / q, at least 2 x k", lambda one: f"{one.partitions:,}"),
        ("tasks of a run T", "N r / b + P s / l", lambda one: f"{one.tasks:,}"),
        (
            "where blocks of the largest shuffle are B",
            f"P N r / b bytes, beyond {SIZES_KEPT:,} partitions bits",
            lambda one: f"{one.blocks / MEBI:.1f} MiB",
        ),
        (
            "hours",
            "N c / 10^6 / (x k u) / 3600, with Comet times a",
            lambda one: f"{one.hours:.1f}",
        ),
        (
            "heap of an executor",
            f"v (k q e / {FRACTION:g} + {RESERVED // MEBI} MiB)",
            lambda one: f"{one.executor_heap // GIBI} GiB",
        ),
        (
            "native memory of an executor",
            "with Comet as much as its heap",
            lambda one: f"{one.executor_native // GIBI} GiB" if one.executor_native else "none",
        ),
        (
            "disk of an executor",
            "v N (s + p) / x",
            lambda one: f"{one.executor_disk / GIBI:,.0f} GiB",
        ),
        (
            "heap of the driver",
            f"v (d + t min(T, {RETAINED:,}) + B), at least 2 GiB",
            lambda one: f"{one.driver_heap // GIBI} GiB",
        ),
        (
            "minutes of the driver's processor",
            "T m",
            lambda one: f"{one.driver_minutes:.1f}",
        ),
        (
            "share of one key that Spark splits",
            "max(256 MiB, 5 q) / (N l)",
            lambda one: f"{one.split_share:.2%}",
        ),
        ("size of the output", "N w", lambda one: f"{one.published / GIBI:,.0f} GiB"),
    ]
    rows = []
    for what, how, show in lines:
        cells = [show(found) for _, found in derived]
        pairs = zip(cells[::2], cells[1::2], strict=True)
        shown = ((plain, "" if native == plain else native) for plain, native in pairs)
        rows.append([what, how, *(cell for pair in shown for cell in pair)])
    return rows


_KEYS = {
    "processor seconds, ratio to even keys": "processor seconds, ratio to even keys",
    "bytes of the largest task / of the median one": "bytes, largest task / median",
    "run time of the longest task / of the median one": "run time, longest task / median",
    "partitions split": "partitions that Spark split",
}
"""Figures of a case of keys, and what a column is called."""
_CASES = {
    "even keys": "as they are in TPC-H",
    "one key": "one key in 10 % of the rows, not split",
    "one key, split": "one key in 10 % of the rows, split",
    "NULL keys": "NULL in 30 % of the rows",
}


def _key_rows(run: Run) -> list[list[str]]:
    return [
        [shown, *(f"{run.values[f'{case}, {figure}']:g}" for figure in _KEYS)]
        for case, shown in _CASES.items()
    ]


_WIDE = (
    "processor seconds, ratio to hand-written",
    "Snaploom, processor seconds",
    "by hand, processor seconds",
    "Snaploom, executor, peak resident, MiB",
    "by hand, executor, peak resident, MiB",
    "Snaploom, operators without generated code",
    "by hand, operators without generated code",
    "Snaploom, times that generated code was given up",
    "by hand, times that generated code was given up",
)
"""Figures of a wide or deep model."""


def _models(run: Run) -> list[str]:
    end = f", {_WIDE[0]}"
    return [name.removesuffix(end) for name in run.values if name.endswith(end)]


def _wide_rows(run: Run) -> list[list[str]]:
    return [
        [figure, *(f"{run.values[f'{model}, {figure}']:g}" for model in _models(run))]
        for figure in _WIDE
    ]


def _whole_gibibytes(size: float) -> int:
    return ceil(size / GIBI) * GIBI
