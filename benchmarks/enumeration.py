"""Snapshots of a source of very many files, listed from their paths: `make bench-enumeration`.

Files lie in folders of a thousand, on a local disk and in a bucket of a real S3 server. Listed are
all of them, in order, with what their paths capture, which is all that planning needs of such a
source. Beside it stands what people write by hand: one walk of the folder or one listing of the
bucket into a sorted list of path, length and time, with the day out of each path. Each runs in a
process of its own, which reports its peak memory; ours has a JVM beside it.
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
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

import obstore
from figures import Figure, publish
from obstore.store import S3Store
from pyspark import SparkContext
from support.declared.sources import by_field, files, reader
from support.servers.s3servers import BUCKET, environment_of, installed, running_versitygw

from snaploom.jobs.session.spark import build_session
from snaploom.models.run import RunSettings
from snaploom.models.times import now

FILES = 1_000_000
IN_A_FOLDER = 1_000
FIRST_DAY = 946_684_800  # 2000-01-01, seconds since 1970
DAY = 86_400
AT_MOST = 2.0
"""GiB that our two processes may hold together for a million files: what a small driver has."""
STORES = ("local disk", "bucket")

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
    """Both ways in one store."""
    with made(store, count) as uri:
        ours, hand = once("ours", uri), once("hand", uri)
    for each in (ours, hand):
        if each["snapshots"] != -(-count // IN_A_FOLDER):
            sys.exit(f"{each['snapshots']} snapshots of {count} files")
    text = f"{count:,} files, {store}"
    memory = (ours["python"] + ours["jvm"]) / 1024
    yield Figure(f"{text}, seconds, Snaploom", round(ours["seconds"], 1))
    yield Figure(f"{text}, seconds, by hand", round(hand["seconds"], 1))
    yield Figure(f"{text}, seconds, ratio", round(ours["seconds"] / hand["seconds"], 2))
    yield Figure(f"{text}, peak memory of Python, MiB, Snaploom", round(ours["python"]))
    yield Figure(f"{text}, peak memory of the JVM, MiB, Snaploom", round(ours["jvm"]))
    yield Figure(f"{text}, peak memory of Python, MiB, by hand", round(hand["python"]))
    yield Figure.at_most(f"{text}, peak memory of both processes, GiB", memory, AT_MOST)


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
    """Make empty files; a bucket of this server is a folder."""
    for number in range(-(-count // IN_A_FOLDER)):
        day = folder / f"at={FIRST_DAY + number * DAY}"
        day.mkdir(parents=True)
        for part in range(min(IN_A_FOLDER, count - number * IN_A_FOLDER)):
            os.close(os.open(day / f"part-{part:05d}.json", os.O_CREAT | os.O_WRONLY))


def once(who: str, uri: str) -> Measured:
    """One way in a process of its own."""
    command = [sys.executable, __file__, "--once", who, uri]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: Measured = json.loads(done.stdout.splitlines()[-1])
    print(f"{who}, {uri}: {found}", file=sys.stderr, flush=True)
    return found


def measured(who: str, uri: str) -> Measured:
    """The other side of `once`."""
    listing: Callable[[], int] = opened(uri) if who == "ours" else lambda: by_hand(uri)
    started = perf_counter()
    snapshots = listing()
    return {
        "seconds": perf_counter() - started,
        "snapshots": snapshots,
        "python": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "jvm": peak_of_jvm(),
    }


def opened(uri: str) -> Callable[[], int]:
    """Our listing, with a session that has begun."""
    conf = {"spark.driver.memory": "1g"}
    if uri.startswith("s3a:"):
        conf["spark.driver.extraClassPath"] = f"{installed('jars', 's3a')}/*"
    spark = build_session("benchmark", RunSettings(), asked=conf.items())
    snapshot = by_field("at", "UNIX_SECONDS")
    prefix = f"{uri}/at={{at:LONG}}/"
    spec = files("json", f"{uri}/*/*.json", sourceUriPrefix=prefix, snapshot=snapshot)
    return lambda: len(reader(spark, spec, now=now()).listing().times)


def by_hand(uri: str) -> int:
    """What people write: all files in order, and the days in their paths."""
    found: list[tuple[str, int, float]] = []
    if uri.startswith("file:"):
        for folder, _, names in os.walk(uri.removeprefix("file://")):
            for name in names:
                path = f"{folder}/{name}"
                status = os.stat(path)
                found.append((path, status.st_size, status.st_mtime))
    else:
        bucket, _, prefix = uri.removeprefix("s3a://").partition("/")
        endpoint = os.environ["AWS_ENDPOINT_URL"]
        store = S3Store(bucket, endpoint=endpoint, client_options={"allow_http": True})
        for page in obstore.list(store, prefix=prefix, chunk_size=1000):
            found += [
                (meta["path"], meta["size"], meta["last_modified"].timestamp()) for meta in page
            ]
    found.sort()
    days = {match[1] for path, _, _ in found if (match := re.search(r"/at=(\d+)/", path))}
    return len(days)


def peak_of_jvm() -> float:
    """The most memory that Spark's JVM held, in MiB; 0 without one."""
    if SparkContext._gateway is None:
        return 0.0
    identity = SparkContext._gateway.jvm.java.lang.ProcessHandle.current().pid()
    status = Path(f"/proc/{identity}/status").read_text("utf-8")
    match = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(match[1]) / 1024 if match else 0.0


if __name__ == "__main__":
    main()
