"""The log against the length of its history, in a bucket: `make bench-bucket`.

The same figures as on local disk (`publication.py`), on versitygw, which answers from this machine:
what the protocol asks of a store. To each request comes what the way to a real bucket takes.
"""

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

from figures import Figure, publish
from publication import measure_log
from support.servers.s3servers import BUCKET, environment_of, running_versitygw

from snaploom.files.stores import open_store

LENGTHS = (10, 100, 1_000, 10_000, 100_000)


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
    return measure_log(store, length, f"{length:,} snapshots in a bucket")


if __name__ == "__main__":
    main()
