"""Builds, refreshes and sizes against Xskipper itself, on the same files: `make bench-xskipper`.

Sizes are those of the version 4 directory, which both write; Snaploom's own part, which holds what
version 4 cannot, is a figure of its own. Xskipper runs on the Spark that it was made for.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter

from figures import Figure, publish
from pyspark.sql import SparkSession
from skippingindexes import CACHE, SETTINGS, built_index, folder_kib, seconds, wide_files

from snaploom.run.session.spark import build_session
from snaploom.skipping.spark.interfaces.indexbuilder import IndexBuilder, skipping_index
from snaploom.skipping.spark.interfaces.manage import SkippingIndexes
from snaploom.skipping.statements.syntax import PathName

WORK = CACHE / "benchmarks" / "xskipper"
PROGRAM = (
    Path(__file__).parent.parent / "tests" / "others" / "references" / "peer" / "xskipperpeer.py"
)
DECLARED: Mapping[str, tuple[Callable[[IndexBuilder], IndexBuilder], list[list[object]]]] = {
    "minMax": (lambda builder: builder.add_min_max("id"), [["minmax", "id", {}, ""]]),
    "minMax + valueSet": (
        lambda builder: builder.add_min_max("id").add_value_set("city"),
        [["minmax", "id", {}, ""], ["valuelist", "city", {}, ""]],
    ),
    "bloom": (
        lambda builder: builder.add_bloom_filter("key", items="VALUES"),
        [["bloomfilter", "key", {}, ""]],
    ),
}
BUILDS = 3
"""Builds of each; the median counts, so that neither is judged by its first one."""


def main() -> int:
    """Measure both, publish; fail when a goal is not met."""
    data = wide_files(CACHE / "benchmarks" / "skipping" / "files")
    shutil.rmtree(WORK, ignore_errors=True)
    folder = subprocess.run(
        [str(Path(__file__).parent.parent / ".ci" / "references")],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.strip()
    theirs = measured_peer(Path(folder), data)
    spark = build_session("bench-xskipper", SETTINGS)
    figures: list[Figure] = []
    for name, (declare, _) in DECLARED.items():
        figures += compared(name, measured(spark, data, name, declare), theirs[name])
    publish("Xskipper", "make bench-xskipper", figures)
    return 0 if all(figure.ok for figure in figures) else 1


def compared(name: str, ours: Mapping[str, float], theirs: Mapping[str, float]) -> list[Figure]:
    figures = []
    for what in ("build, seconds", "refresh with nothing to do, seconds", "version 4, KiB"):
        figures += [
            Figure(f"{name}, {what}, Snaploom", round(ours[what], 3)),
            Figure(f"{name}, {what}, Xskipper", round(theirs[what], 3)),
            Figure.at_most(f"{name}, {what}, Snaploom / Xskipper", ours[what] / theirs[what], 1.0),
        ]
    return [*figures, Figure(f"{name}, own part, KiB, Snaploom", round(ours["own part"], 1))]


def measured(
    spark: SparkSession, data: Path, name: str, declare: Callable[[IndexBuilder], IndexBuilder]
) -> dict[str, float]:
    base, exported = WORK / f"ours-{name}", WORK / f"exported-{name}"
    built = [built_index(spark, data, base, declare) for _ in range(BUILDS)]
    index = skipping_index(spark, str(base)).on_path(str(data))
    again = [seconds(index.refresh) for _ in range(BUILDS)]
    SkippingIndexes(spark, str(base)).export(PathName("parquet", str(data)), str(exported))
    return {
        "build, seconds": statistics.median(built),
        "refresh with nothing to do, seconds": statistics.median(again),
        "version 4, KiB": folder_kib(exported),
        "own part": folder_kib(base),
    }


def measured_peer(places: Path, data: Path) -> dict[str, dict[str, float]]:
    jars = ",".join(str(jar) for jar in sorted((places / "jars").glob("*.jar")))
    python = str(places / "bin" / "python")
    environment = {key: value for key, value in os.environ.items() if "SPARK" not in key}
    found: dict[str, dict[str, float]] = {}
    with subprocess.Popen(
        [python, str(PROGRAM), jars, str(WORK / "peer")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**environment, "PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python},
    ) as peer:
        asked, answers = peer.stdin, peer.stdout
        assert asked is not None  # both are pipes
        assert answers is not None

        def ask(**question: object) -> float:
            started = perf_counter()
            print(json.dumps(question), file=asked, flush=True)
            answer = json.loads(answers.readline())
            if "answer" not in answer:
                raise SystemExit(f"Xskipper: {answer['error']}")
            return perf_counter() - started

        answers.readline()
        for name, (_, indexes) in DECLARED.items():
            places_ = [str(WORK / f"theirs-{name}-{number}") for number in range(BUILDS)]
            path = str(data)
            built = [ask(do="build", path=path, location=at, indexes=indexes) for at in places_]
            again = [ask(do="refresh", path=path, location=at) for at in places_]
            found[name] = {
                "build, seconds": statistics.median(built),
                "refresh with nothing to do, seconds": statistics.median(again),
                "version 4, KiB": folder_kib(Path(places_[-1])),
            }
        asked.close()
    return found


if __name__ == "__main__":
    sys.exit(main())
