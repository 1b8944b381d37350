"""Deciding which of a million files a query needs, and matching them with a listing."""

import resource
from collections.abc import Callable
from functools import partial
from time import perf_counter

import numpy as np
import pyarrow as pa
from figures import Figure

from snaploom.skipping.core.definition import (
    IndexDefinition,
    ReaderFingerprint,
    SkippingDefinition,
    Target,
    column_term,
)
from snaploom.skipping.core.filetable import FileTable, Listing, match
from snaploom.skipping.core.predicates import (
    And,
    Comparison,
    In,
    Operator,
    Predicate,
    StartsWith,
)
from snaploom.skipping.indexes.base import evaluate

FILES = 1_000_000
ROUNDS = 5
A, B, S = (
    column_term(("a",), "bigint"),
    column_term(("b",), "bigint"),
    column_term(("s",), "string"),
)
INDEXES = tuple(
    IndexDefinition(f"i{at}", "MIN_MAX", (term,)) for at, term in enumerate((A, B, S), start=1)
)
DEFINITION = SkippingDefinition(Target("file:/t"), ReaderFingerprint("parquet"), INDEXES)

NUMBERS = And((Comparison(A, Operator.GE, 5 * 10**8), Comparison(B, Operator.EQ, 7 * 10**8)))
TEXTS: list[tuple[str, Predicate]] = [
    ("s >= 'x'", Comparison(S, Operator.GE, b"customer-000500000")),
    ("s LIKE 'x%'", StartsWith(S, b"customer-0001")),
    ("s IN (2,000 texts)", In(S, tuple(b"customer-%09d" % at for at in range(0, FILES, 500)))),
]
MANY = In(A, tuple(range(0, 10**9, 10**6)))


def evaluation_figures() -> list[Figure]:
    """A million rows of index without files; the peak of memory is that of the whole process."""
    files = FileTable.of(rows())
    cold = _seconds(lambda: evaluate(NUMBERS, DEFINITION, files), 1)
    warm = _seconds(lambda: evaluate(NUMBERS, DEFINITION, files))
    figures = [
        Figure("1,000,000 files, a >= x AND b = y, first query, seconds", round(cold, 3)),
        Figure.at_most("1,000,000 files, a >= x AND b = y, warm, seconds", warm, 0.3),
    ]
    for name, predicate in (("a IN (1,000 numbers)", MANY), *TEXTS):
        taken = _seconds(partial(evaluate, predicate, DEFINITION, files))
        figures.append(Figure(f"1,000,000 files, {name}, warm, seconds", round(taken, 3)))
    for count in (10_000, 100_000, FILES):
        figures += _listing_figures(files, count)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return [*figures, Figure.at_most("1,000,000 files, peak memory, GiB", peak, 1.5)]


def rows() -> pa.Table:
    """What MIN_MAX keeps on two numbers and a text, of a million files."""
    random = np.random.default_rng(0)
    number = np.arange(FILES)
    names = [f"customer-{at:09d}".encode() for at in range(FILES)]
    columns = {
        "path": pa.array(
            [f"file:/t/day={at % 365}/part-{at:08d}.parquet" for at in range(FILES)],
            pa.large_string(),
        ),
        "length": pa.array(number),
        "modified": pa.array(number + 1_700_000_000_000),
        "etag": pa.nulls(FILES, pa.large_string()),
    }
    for index in INDEXES:
        columns[f"{index.index_id}.values"] = pa.array(np.full(FILES, 1000))
        columns[f"{index.index_id}.nulls"] = pa.array(np.zeros(FILES, dtype=np.int64))
    for index_id in ("i1", "i2"):
        low = random.integers(0, 10**9, FILES)
        columns[f"{index_id}.min"], columns[f"{index_id}.max"] = pa.array(low), pa.array(low + 1000)
    columns["i3.min"] = columns["i3.max"] = pa.array(names, pa.large_binary())
    return pa.table(columns)


def _listing_figures(files: FileTable, count: int) -> list[Figure]:
    known = [files.column(name)[:count].to_pylist() for name in ("length", "modified", "path")]
    lengths, modified = (",".join(map(str, numbers)) for numbers in known[:2])
    paths = "\n".join(known[2])
    parsing = _seconds(lambda: Listing.parse(lengths, modified, paths))
    listing = Listing.parse(lengths, modified, paths)
    matching = _seconds(lambda: match(files, listing))
    return [
        Figure(f"listing of {count:,} files, parsed, seconds", round(parsing, 3)),
        Figure(f"listing of {count:,} files in 1,000,000 rows, seconds", round(matching, 3)),
    ]


def _seconds(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    taken = []
    for _ in range(rounds):
        started = perf_counter()
        work()
        taken.append(perf_counter() - started)
    return min(taken)
