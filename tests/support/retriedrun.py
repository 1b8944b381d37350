"""A program: a run in which one task fails once and is tried again (ruling D30).

It runs by itself because tasks are tried again only under a master of its own (`local[2, 3]`).
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql.types import LongType

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.declarations import simple
from support.loom import Loom
from support.sparksession import make_session


def main(place: Path) -> None:
    spark = make_session(place / "spark", {"spark.master": "local[2, 3]"})
    marker = place / "failed"

    def fail_once(number: int) -> int:
        if number == 3 and not marker.exists():
            marker.touch()
            raise RuntimeError("first attempt")
        return number

    spark.udf.register("fail_once", fail_once, LongType())
    loom = Loom(place, root="checked", sources=["order", "checked"])
    loom.more.append(simple("checked", "SELECT fail_once(id) AS id FROM c", source="order"))
    loom.join("customer")
    print(loom.weave(spark).report.dump_json())
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
