"""Delta and Iceberg over the files of the benchmark of skipping: part of `make bench-skipping`.

Each runs on the nearest Spark that it runs on, over the same files and queries, which are those of
`skippingindexes.py` and 10,000 and 100,000 small files. A query is the first one of a fresh process
(cold), and then repeated (warm). The figures of a size are written when it has ended.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from figures import Figure, publish
from skippingindexes import (
    CACHE,
    FILES,
    QUERIES,
    SETTINGS,
    WIDE,
    WORK,
    built_index,
    by_id,
    small_files,
    wide_files,
)

from snaploom.run.session.spark import build_session

HERE = Path(__file__).parent
SIZES = (FILES, 10_000, 100_000)
PEER_QUERIES = ("selective", "range", "unselective")
"""Peers keep bounds only, so that a point lookup by a Bloom filter is not theirs."""
READ_WHOLE = 10_000
"""Most files of which all are read: of more it takes minutes, none of which are about skipping."""

Raw = dict[str, Any]


def main() -> None:
    """Compare at each size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=16, help="warm queries")
    parser.add_argument("--files", type=int, nargs="+", default=SIZES)
    arguments = parser.parse_args()
    for count in arguments.files:
        figures = peer_figures(indexed(count), count, arguments.repeat)
        publish(f"Skipping beside peers, {count:,} files", "make bench-skipping", figures)


def indexed(count: int) -> Path:
    """Files with an index of bounds."""
    data = wide_files(WORK / "files") if count == FILES else small_files(count)
    spark = build_session("bench-skipping", SETTINGS)
    built_index(spark, data, base_of(data), by_id)
    spark.stop()
    return data


def base_of(data: Path) -> Path:
    return WORK / (f"{data.name}-indexes" if "small" in data.name else "indexes/minMax")


def peer_figures(data: Path, count: int, repeat: int) -> list[Figure]:
    """Delta and Iceberg over the same files; each query in a fresh process, cold and then warm."""
    places = CACHE / "peers"
    subprocess.run([str(HERE / "peers" / "environment.sh"), str(places)], check=True)
    queries = queries_of(count)
    ours = {
        name: run_peer(Path(sys.executable), "ours.py", our_task(data, where, repeat))
        for name, where in queries.items()
    }
    figures = []
    for kind in ("delta", "iceberg"):
        theirs = peer(kind, places, data, queries, repeat)
        figures.append(Figure(f"{kind}, table made, seconds", round(theirs["build"], 1)))
        for name in queries:
            figures += compared(f"{name} query", kind, ours[name], theirs[name])
    return figures


def queries_of(count: int) -> Mapping[str, str]:
    """Conditions by name."""
    if count == FILES:
        return {name: QUERIES[name] for name in PEER_QUERIES}
    few = {
        "selective": f"id = {count * 7 + 7}",
        "range": f"id BETWEEN {count * 2} AND {count * 3}",
    }
    return few if count > READ_WHOLE else {**few, "unselective": "id >= 0"}


def compared(label: str, kind: str, ours: Raw, theirs: Raw) -> list[Figure]:
    """Files read, planning and total of one query, ours and a peer's, and the ratios."""
    if ours["answer"] != theirs["answer"]:
        raise SystemExit(f"{label}: ours {ours['answer']}, {kind} {theirs['answer']}")
    who = f"{kind} on Spark {theirs['spark']}"
    figures = [
        Figure(f"{label}, files read, Snaploom", ours["files"]),
        Figure(f"{label}, files read, {who}", theirs["files"]),
    ]
    for when in ("cold", "warm"):
        for what in ("planning", "total"):
            mine, other = ours[when][what], theirs[when][what]
            figures += [
                Figure(f"{label}, {when}, {what}, Snaploom, milliseconds", round(mine, 1)),
                Figure(f"{label}, {when}, {what}, {who}, milliseconds", round(other, 1)),
                Figure(f"{label}, {when}, {what}, Snaploom / {kind}", round(mine / other, 3)),
            ]
    return figures


def our_task(data: Path, where: str, repeat: int) -> Raw:
    """What `peers/ours.py` reads."""
    return {
        "data": str(data),
        "base": str(base_of(data)),
        "schema": "id BIGINT" if "small" in data.name else WIDE,
        "where": where,
        "repeat": repeat,
    }


def peer(
    kind: str, places: Path, data: Path, queries: Mapping[str, str], repeat: int
) -> dict[str, Any]:
    """Seconds that a peer took to make its table (`build`), and what it measured by query."""
    work = WORK / f"peer-{kind}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    jars = [str(jar) for jar in sorted((places / kind / "jars").glob("*.jar"))]
    task = {"kind": kind, "jars": jars, "data": str(data), "work": str(work), "repeat": repeat}
    python = places / kind / "bin" / "python"
    found = {"build": run_peer(python, "query.py", task)["build"]}
    for name, where in queries.items():
        found[name] = run_peer(python, "query.py", {**task, "where": where})
    shutil.rmtree(work)
    return found


def run_peer(python: Path, script: str, task: Raw) -> Raw:
    """What a script of the peers prints about a task, in a process of its own."""
    done = subprocess.run(
        [str(python), str(HERE / "peers" / script)],
        input=json.dumps(task),
        capture_output=True,
        text=True,
        check=True,
        env={key: value for key, value in os.environ.items() if "SPARK" not in key},
    )
    answer: Raw = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


if __name__ == "__main__":
    main()
