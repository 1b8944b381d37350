"""The log against the length of its history, in a bucket: `make bench-bucket`.

The same figures as on local disk (`publication.py`), on versitygw, which answers from this machine:
what the protocol asks of a store. To each request comes what the way to a real bucket takes.
"""

import argparse
import statistics
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from figures import Figure, publish
from publication import IDENTITY, REPEATS, SETTINGS, opened, publish_one, timed, write_history
from support.s3servers import BUCKET, environment_of, running_versitygw

from snaploom.models.times import now
from snaploom.storage.checkpoints import write_checkpoint
from snaploom.storage.folder import open_folder, prepare_folder
from snaploom.storage.layout import new_run_id
from snaploom.storage.run import Run
from snaploom.storage.stores import open_store

LENGTHS = (10, 100, 1_000, 10_000)


def main() -> None:
    """Measure every length and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="snaploom-bench-") as place,
        running_versitygw(Path(place)) as server,
        environment_of(server),
    ):
        figures = [figure for length in arguments.lengths for figure in measure(length)]
    publish("Publication in a bucket", "make bench-bucket", figures)


def measure(length: int) -> Iterator[Figure]:
    """Figures of one length."""
    store = open_store(f"s3://{BUCKET}/{length}/", create=True)
    run = Run(new_run_id(now()), "bench", now)
    write_history(prepare_folder(store, SETTINGS, IDENTITY, run), run, length)
    name = f"{length:,} snapshots in a bucket"
    seconds = statistics.median(timed(lambda: opened(store)) for _ in range(REPEATS))
    yield Figure.at_most(f"{name}, opened cold, seconds", seconds, 1.0)
    folder = open_folder(store)
    folder.log.read()
    published = [timed(partial(publish_one, folder, run, length + at)) for at in range(REPEATS)]
    yield Figure.at_most(f"{name}, one more published, seconds", max(published), 1.0)
    marked = timed(lambda: write_checkpoint(store, folder.log.read()))
    yield Figure.at_most(f"{name}, checkpoint of a commit, seconds", marked, 1.0)


if __name__ == "__main__":
    main()
