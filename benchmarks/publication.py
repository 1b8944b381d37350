"""The log against the length of its history, on local disk: `make bench-publication`.

For histories of 10 to 100,000 snapshots, each with an entry of its own in the log: opening the
folder cold, publishing one more snapshot (staging, promotion, commit), and the checkpoint that
every 64th commit writes besides. Everything that planning asks of a folder counts as opening.
"""

import argparse
import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from time import perf_counter

from figures import Figure, publish

from snaploom.files.objectstore import ObjectStore
from snaploom.files.stores import open_store
from snaploom.models.common import EpochNanos, format_instant, now
from snaploom.models.report import JoinMeasure, SourceSnapshot
from snaploom.output import publication
from snaploom.output.checkpoints import CHECKPOINT_EVERY, write_checkpoint
from snaploom.output.entries import (
    FileRecord,
    FolderIdentity,
    FolderSettings,
    ModelNode,
    Publish,
    SnapshotRecord,
    format_entry,
)
from snaploom.output.folder import Folder, Run, open_folder, prepare_folder
from snaploom.output.layout import content_hash, manifest_key, new_run_id
from snaploom.output.state import FolderState, fold
from snaploom.run.weaving.preflight import published_state

LENGTHS = (10, 100, 1_000, 10_000, 100_000)
REPEATS = 5
HOUR = 3600 * 10**9
SETTINGS = FolderSettings(
    data_format="PARQUET",
    data_compression="SNAPPY",
    partition_field_name="hour",
    timestamp_format="UNIX_MILLISECONDS",
    output_timezone="",
)
IDENTITY = FolderIdentity(output="wide", root="orders")
CHILDREN = ("customer", "part", "supplier")
MODEL = (
    ModelNode(field_name="", parent="", source="orders"),
    *(ModelNode(field_name=n, parent="", source=n, relationship=n) for n in CHILDREN),
)
SCHEMA = '{"type":"struct","fields":[]}'


def main() -> None:
    """Measure every length and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    arguments = parser.parse_args()
    figures = [figure for length in arguments.lengths for figure in measure(length)]
    publish("Publication", "make bench-publication", figures)


def measure(length: int) -> Iterator[Figure]:
    """Figures of one length on local disk."""
    with tempfile.TemporaryDirectory(prefix="snaploom-bench-") as place:
        yield from measure_log(open_store(place, create=True), length, f"{length:,} snapshots")


def measure_log(store: ObjectStore, length: int, name: str) -> Iterator[Figure]:
    """Figures of one length in a folder that is unused."""
    run = Run(new_run_id(now()), "bench", now)
    write_history(prepare_folder(store, SETTINGS, IDENTITY, run), run, length)
    seconds = statistics.median(timed(lambda: opened(store)) for _ in range(REPEATS))
    yield Figure.at_most(f"{name}, opened cold, seconds", seconds, 1.0)
    folder = open_folder(store)
    folder.log.read()
    published = [timed(partial(publish_one, folder, run, length + at)) for at in range(REPEATS)]
    yield Figure.at_most(f"{name}, one more published, seconds", max(published), 1.0)
    marked = timed(lambda: write_checkpoint(store, folder.log.read()))
    yield Figure.at_most(f"{name}, checkpoint of a commit, seconds", marked, 1.0)


def opened(store: ObjectStore) -> None:
    """From nothing to what planning knows of the folder, and the newest record."""
    state = open_folder(store).log.read()
    published_state(store, state)
    assert state.snapshots[-1].files


def publish_one(folder: Folder, run: Run, number: int) -> None:
    """Publish one file as a snapshot."""

    def write(uri: str) -> publication.WriteResult:
        folder.store.put(f"{uri.removeprefix(folder.store.uri)}part-0.parquet", b"PAR1")
        return publication.WriteResult(rows=1, schema=SCHEMA)

    target = publication.SnapshotTarget(hour(number), f"hour={number}", "plan", MODEL)
    outcome = publication.publish(folder, run, target, write, lambda state, record: None)
    assert isinstance(outcome, publication.Published)


def write_history(folder: Folder, run: Run, length: int) -> None:
    """Entries as publications write them, and the checkpoint that the last of them would leave."""
    state, entries = folder.log.read(), []
    for number in range(length):
        entry = published(run, number, state.next_seq + number, two_files(run, number))
        folder.store.put(manifest_key(entry.seq), format_entry(entry))
        entries.append(entry)
    last = length - length % CHECKPOINT_EVERY
    if last:
        reached: FolderState = fold(state, entries[: last - 1])
        write_checkpoint(folder.store, reached)
    folder.log.read()


def two_files(run: Run, number: int) -> Iterator[FileRecord]:
    """Files that are in the entry and nowhere else."""
    for part in range(2):
        key = f"data/hour={number}/{run.run_id}-0123abcd-{part:05d}.snappy.parquet"
        yield FileRecord(path=key, bytes=10**8)


def published(run: Run, number: int, seq: int, files: Iterable[FileRecord]) -> Publish:
    """The entry of a snapshot with four sources and three joins."""
    record = SnapshotRecord(
        time=hour(number),
        partition=f"hour={number}",
        seq=seq,
        run_id=run.run_id,
        created_at=hour(number),
        plan_hash=content_hash(b"plan"),
        schema_hash=content_hash(b"schema"),
        model_hash=content_hash(b"model"),
        rows=1_000_000,
        sources=tuple(
            SourceSnapshot(
                field_name=name,
                source=name or "orders",
                time=format_instant(hour(number)),
                fingerprint=content_hash(name.encode()),
            )
            for name in ("", *CHILDREN)
        ),
        joins=tuple(
            JoinMeasure(child=name, in_=10**6, out=10**6, matched=10**6, null_keys=0)
            for name in CHILDREN
        ),
        files=tuple(files),
        tool_version="bench",
        spark_version="4.3.0",
    )
    return Publish(
        seq=seq, run_id=run.run_id, written_at=hour(number), tool_version="bench",
        snapshot=record, model=MODEL,
    )  # fmt: skip


def hour(number: int) -> EpochNanos:
    """Snapshot time number `number`."""
    return EpochNanos(1_577_836_800 * 10**9 + number * HOUR)


def timed(work: Callable[[], None]) -> float:
    """Seconds of a call."""
    started = perf_counter()
    work()
    return perf_counter() - started


if __name__ == "__main__":
    main()
