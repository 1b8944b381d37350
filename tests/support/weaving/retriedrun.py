"""A program: a run in which one task fails once and is tried again (rule W25).

It runs by itself because tasks are tried again only under a master of its own (`local[2, 3]`).
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from pyspark.sql.functions import udf
from pyspark.sql.types import LongType

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from support.weaving.loom import Loom
from support.weaving.sparksession import make_session

from snaploom.models.common import EpochNanos
from snaploom.sources.files.reader import PathReader
from snaploom.sources.port import SourceFrame


def main(place: Path) -> None:
    spark = make_session(place / "spark", {"spark.master": "local[2, 3]"})
    marker = place / "failed"

    @udf(LongType())
    def fail_once(number: int) -> int:
        if number == 3 and not marker.exists():
            marker.touch()
            raise RuntimeError("first attempt")
        return number

    read = PathReader.read

    def read_by_a_task_that_fails(reader: PathReader, snapshot: EpochNanos) -> SourceFrame:
        found = read(reader, snapshot)
        return replace(found, frame=found.frame.withColumn("id", fail_once("id")))

    PathReader.read = read_by_a_task_that_fails
    loom = Loom(place)
    loom.join("customer")
    print(loom.weave(spark).report.dump_json())
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
