"""Time to open an index of a million files and five minMax indexes, each time with a new store."""

import shutil
import statistics
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa
from evaluation import A, B
from figures import Figure

from snaploom.models.common import now
from snaploom.models.skippingindex import IndexState
from snaploom.skipping.core.definition import (
    IndexDefinition,
    ReaderFingerprint,
    SkippingDefinition,
    Target,
    column_term,
)
from snaploom.skipping.core.predicates import And, Comparison, Operator
from snaploom.skipping.indexes.base import evaluate
from snaploom.skipping.stores.catalog import open_base
from snaploom.skipping.stores.port import StoredState

FILES = 1_000_000
TERMS = (A, B, *(column_term((name,), "bigint") for name in ("c", "d", "e")))
INDEXES = tuple(
    IndexDefinition(f"i{at}", "MIN_MAX", (term,)) for at, term in enumerate(TERMS, start=1)
)
DEFINITION = SkippingDefinition(Target("file:/t"), ReaderFingerprint("parquet"), INDEXES)
QUERY = And((Comparison(A, Operator.GE, 5 * 10**8), Comparison(B, Operator.EQ, 7 * 10**8)))


def load_figures(folder: Path) -> list[Figure]:
    """From a folder to the answer about a query on two of the columns, and to every column."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    store = open_base(str(folder)).index(DEFINITION.target.uri)
    segments = tuple(store.write_rows([rows()], DEFINITION))
    store.commit(
        lambda state: StoredState(
            version=state.version,
            phase=IndexState.ACTIVE,
            definition=DEFINITION,
            segments=segments,
            refreshed_at=now(),
        )
    )
    size = sum(segment.bytes for segment in segments) / FILES
    answering = statistics.median(opened(folder, every_column=False) for _ in range(3))
    reading = statistics.median(opened(folder, every_column=True) for _ in range(3))
    name = "1,000,000 files x 5 minMax"
    return [
        Figure(f"{name}, bytes a file", round(size, 1)),
        Figure.at_most(f"{name}, opened and answered cold, seconds", answering, 2.0),
        Figure.at_most(f"{name}, every column read cold, seconds", reading, 2.0),
    ]


def opened(folder: Path, *, every_column: bool) -> float:
    started = perf_counter()
    store = open_base(str(folder)).index(DEFINITION.target.uri)
    files = store.open(store.read())
    for name in ("path", "length", "modified", "etag"):
        files.column(name)
    evaluate(QUERY, DEFINITION, files)
    if every_column:
        for index in INDEXES:
            for field in ("values", "nulls", "min", "max"):
                files.column(f"{index.index_id}.{field}")
    return perf_counter() - started


def rows() -> pa.Table:
    random = np.random.default_rng(0)
    columns = {
        "path": pa.array(
            [f"file:/t/day={at % 365}/part-{at:08d}.parquet" for at in range(FILES)],
            pa.large_string(),
        ),
        "length": pa.array(random.integers(10**6, 10**8, FILES)),
        "modified": pa.array(np.arange(FILES) + 1_700_000_000_000),
        "etag": pa.nulls(FILES, pa.large_string()),
    }
    for index in INDEXES:
        low = random.integers(0, 10**9, FILES)
        columns[f"{index.index_id}.values"] = pa.array(np.full(FILES, 1000))
        columns[f"{index.index_id}.nulls"] = pa.array(np.zeros(FILES, dtype=np.int64))
        columns[f"{index.index_id}.min"] = pa.array(low)
        columns[f"{index.index_id}.max"] = pa.array(low + 1000)
    return pa.table(columns)
