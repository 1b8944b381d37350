"""Snapshots of a source of very many files, listed from their paths: `make bench-enumeration`.

Files lie in folders of a thousand, on a local disk and in a bucket of a real S3 server. Listed are
their snapshots, which is all that planning needs of such a source, as `plan` and `run` do before
Spark is started, and a second time as the next run does. Beside it stands a plain listing by eight
threads, a folder each, into a sorted list of path, length and time, with the day out of each path.
Each runs in a process of its own, which reports its peak memory. What was listed is looked at once
more before a snapshot is published: that of one snapshot, and that of a source which is read whole.
"""

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from time import perf_counter

import obstore
from figures import Figure, publish
from obstore.store import S3Store
from support.declared.declarations import Raw
from support.declared.sources import READ_TIME, a_bundle, by_field, files
from support.servers.s3servers import BUCKET, environment_of, running_versitygw

from snaploom.files.listed import NoOtherFiles
from snaploom.models.datasource import HdfsLike
from snaploom.sources.files.buckets import BucketFiles
from snaploom.sources.files.snapshots import FileListing, path_snapshots
from snaploom.sources.sourcefiles import ReadFiles, SourceFiles, listed_without_spark

FILES = 1_000_000
IN_A_FOLDER = 1_000
FIRST_DAY = 946_684_800  # 2000-01-01, seconds since 1970
DAY = 86_400
STORES = ("local disk", "bucket")
THREADS = 8
"""Of the plain listing, as many as ours has."""

LOOKS = ("one snapshot", "all files")
"""What is listed, and looked at again."""

Measured = dict[str, float]


def main() -> None:
    """Make the files, list them, and write the figures; with `--once` list them in this process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--store", choices=STORES, action="append")
    parser.add_argument("--once", nargs=2, metavar=("WHO", "URI"))
    arguments = parser.parse_args()
    if arguments.once:
        who, uri = arguments.once
        print(json.dumps(measured(who, uri)))
        return
    figures = [
        figure for store in arguments.store or STORES for figure in compared(store, arguments.files)
    ]
    publish("Enumeration", "make bench-enumeration", figures)


def compared(store: str, count: int) -> Iterator[Figure]:
    """Both ways in one store, and ours with a tenth of the files."""
    with made(store, count // 10) as uri:
        few = once("ours", uri)
    with made(store, count) as uri:
        ours, hand, again = once("ours", uri), once("hand", uri), once("ours", uri)
        looks = {who: once(who, uri) for who in LOOKS}
    for each in (ours, hand, again):
        if each["snapshots"] != -(-count // IN_A_FOLDER):
            sys.exit(f"{each['snapshots']} snapshots of {count} files")
    text = f"{count:,} files, {store}"
    for what in ("seconds", "processor seconds"):
        yield Figure(f"{text}, {what}, Snaploom", round(ours[what], 2))
        yield Figure(f"{text}, {what}, plain listing by {THREADS} threads", round(hand[what], 2))
        yield Figure.at_most(f"{text}, {what}, ratio", ours[what] / hand[what], 1.2)
        yield Figure.at_most(f"{text}, {what}, second run, ratio", again[what] / hand[what], 0.1)
    for who, look in looks.items():
        yield Figure(f"{text}, {who}, listing, seconds", round(look["listing"], 3))
        yield Figure(f"{text}, {who}, look before publication, seconds", round(look["look"], 3))
    yield Figure(
        f"{count // 10:,} files, {store}, peak memory, MiB, Snaploom", round(few["memory"])
    )
    yield Figure(f"{text}, peak memory, MiB, Snaploom", round(ours["memory"]))
    yield Figure(f"{text}, peak memory, MiB, plain listing", round(hand["memory"]))
    growth = ours["memory"] / few["memory"]
    yield Figure.at_most(f"{text}, peak memory / that of a tenth of the files", growth, 1.2)


@contextmanager
def made(store: str, count: int) -> Iterator[str]:
    """A folder with that many files; yields its URI, gone with all of them at the end."""
    folder = Path(tempfile.mkdtemp(prefix="enumeration-"))
    try:
        if store == "local disk":
            fill(folder, count)
            yield f"file://{folder}"
        else:
            with running_versitygw(folder) as server, environment_of(server):
                fill(folder / "buckets" / BUCKET / "many", count)
                yield f"s3a://{BUCKET}/many"
    finally:
        shutil.rmtree(folder)


def fill(folder: Path, count: int) -> None:
    """Make files of a byte; a bucket of this server is a folder."""
    for number in range(-(-count // IN_A_FOLDER)):
        day = folder / f"at={FIRST_DAY + number * DAY}"
        day.mkdir(parents=True)
        for part in range(min(IN_A_FOLDER, count - number * IN_A_FOLDER)):
            (day / f"part-{part:05d}.json").write_bytes(b"\n")


def once(who: str, uri: str) -> Measured:
    """One way in a process of its own."""
    command = [sys.executable, __file__, "--once", who, uri]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: Measured = json.loads(done.stdout.splitlines()[-1])
    print(f"{who}, {uri}: {found}", file=sys.stderr, flush=True)
    return found


def measured(who: str, uri: str) -> Measured:
    """The other side of `once`."""
    if who in LOOKS:
        return looked(uri, is_whole=who == LOOKS[1])
    listing = opened(uri) if who == "ours" else lambda: by_hand(uri)
    used, started = processor(), perf_counter()
    snapshots = listing()
    return {
        "seconds": perf_counter() - started,
        "processor seconds": processor() - used,
        "snapshots": snapshots,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def looked(uri: str, *, is_whole: bool) -> Measured:
    """Seconds of the listing of what is read, and of the look at it."""
    listing = SourceFiles(BucketFiles(os.environ)).like(
        FileListing("DataSource/orders", declared(uri, is_whole=is_whole), NoOtherFiles())
    )
    snapshots, started = path_snapshots(listing), perf_counter()
    if snapshots is None:
        read = ReadFiles(listing, listing.files)
    else:
        (first, *_) = snapshots.listed.times
        read = ReadFiles(listing, snapshots.files_of(first), (first,))
    listed = perf_counter()
    if read.change(SourceFiles(BucketFiles(os.environ))) is not None:
        sys.exit("the files have changed")
    return {"listing": listed - started, "look": perf_counter() - listed}


def declared(uri: str, *, is_whole: bool) -> HdfsLike:
    """The source: with its snapshots in paths, or with all files as one."""
    spec = source_of(uri)
    if is_whole:
        spec["hdfsLike"] |= {"snapshot": READ_TIME}
    found = a_bundle(spec).source("orders").spec.hdfs_like
    assert found is not None
    return found


def source_of(uri: str) -> Raw:
    """The source whose paths hold the snapshots."""
    snapshot = by_field("at", "UNIX_SECONDS")
    prefix = f"{uri}/at={{at:LONG}}/"
    return files("json", f"{uri}/*/*.json", sourceUriPrefix=prefix, snapshot=snapshot)


def processor() -> float:
    """Processor seconds of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def opened(uri: str) -> Callable[[], int]:
    """Our listing, as it is before there is a session."""
    bundle, listed = a_bundle(source_of(uri)), SourceFiles(BucketFiles(os.environ))

    def listing() -> int:
        found = listed_without_spark(bundle, "orders", listed)
        assert found is not None
        return len(found.times)

    return listing


def by_hand(uri: str) -> int:
    """What people write: all files in order, and the days in their paths."""
    if uri.startswith("file:"):
        folders = [entry.path for entry in os.scandir(uri.removeprefix("file://"))]
        inside = files_of_folder
    else:
        bucket, _, prefix = uri.removeprefix("s3a://").partition("/")
        endpoint = os.environ["AWS_ENDPOINT_URL"]
        store = S3Store(bucket, endpoint=endpoint, client_options={"allow_http": True})
        folders = list(obstore.list_with_delimiter(store, prefix=prefix)["common_prefixes"])
        inside = partial(files_of_prefix, store)
    with ThreadPoolExecutor(THREADS) as pool:
        found = sorted(chain.from_iterable(pool.map(inside, folders)))
    days = {match[1] for path, _, _ in found if (match := re.search(r"/at=(\d+)/", path))}
    return len(days)


def files_of_folder(folder: str) -> list[tuple[str, int, float]]:
    """Path, length and time of the files of a local folder."""
    found = []
    for entry in os.scandir(folder):
        status = entry.stat()
        found.append((entry.path, status.st_size, status.st_mtime))
    return found


def files_of_prefix(store: S3Store, folder: str) -> list[tuple[str, int, float]]:
    """The same of a folder of a bucket."""
    return [
        (meta["path"], meta["size"], meta["last_modified"].timestamp())
        for page in obstore.list(store, prefix=folder, chunk_size=1000)
        for meta in page
    ]


if __name__ == "__main__":
    main()
