"""A program: weaves a snapshot in which one task fails once and is tried again.

It runs by itself because tasks are tried again only under a master of its own (`local[2, 3]`).
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import Row

HERE = Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[2]))

from support.weaving.smallmodels import Loom, same_key, weave_into  # noqa: E402
from support.weaving.sparksession import make_session  # noqa: E402


def main(folder: Path) -> None:
    spark = make_session(folder / "spark", {"spark.master": "local[2, 3]"})
    marker = folder / "failed"

    def fail_once(rows: Iterator[Row]) -> Iterator[Row]:
        for row in rows:
            if row.k == 3 and not marker.exists():
                marker.touch()
                raise RuntimeError("first attempt")
            yield row

    left = spark.range(8).selectExpr("cast(id as int) as k").rdd.mapPartitions(fail_once)
    frames = {
        "l": spark.createDataFrame(left, "k int"),
        "r": spark.range(4).selectExpr("cast(id as int) as k"),
    }
    loom = Loom("l", ["r"], [same_key("k", "l r")])
    counts = weave_into(folder, loom.weave(frames), spark).counts
    print(
        json.dumps(
            {
                "failedOnce": marker.exists(),
                "confirmed": counts.confirmed,
                "rows": counts.rows,
                "joins": [
                    [j.in_, j.out, j.matched, j.null_keys, j.child_null_keys] for j in counts.joins
                ],
            }
        )
    )
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
