"""`snaploom index advise`: collects the data for advice by reading some of the files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from snaploom.errors import IndexNotPossible, TargetNotIndexable
from snaploom.plugins.advice.recommendations import (
    Log,
    Observed,
    Query,
    advise,
    drawn_queries,
    leaves,
)
from snaploom.plugins.advice.report import Report, resource_yaml
from snaploom.skipping.core.definition import IndexDefinition, SkippingDefinition
from snaploom.skipping.core.filetable import nulls_column, values_column
from snaploom.skipping.core.hashes import xxhash64
from snaploom.skipping.core.predicates import Contains, EndsWith
from snaploom.skipping.core.terms import Term
from snaploom.skipping.indexes.base import index_type
from snaploom.skipping.lifecycle.declaration import Progress
from snaploom.skipping.spark.builds.clusteredwrite import kept_column, sampled
from snaploom.skipping.spark.builds.filerows import PARTITION
from snaploom.skipping.spark.builds.scan import Relation
from snaploom.skipping.spark.relations.hadoop import url_encoded
from snaploom.skipping.spark.targets.sparktarget import SparkTarget

FILES = 64
"""Files that are read, unless something else is asked for."""
ROWS = 20_000
"""Rows with which orders are simulated."""
MOST_COLUMNS = 40
"""Columns that are looked at when no query shows which matter."""
_TYPES = ("MIN_MAX", "VALUE_SET", "BLOOM_FILTER")


@dataclass(frozen=True)
class AdviceRequest:
    """Data and queries for advice."""

    log: Log | None = None
    """Queries, from `read_log`; without, some are drawn from the data."""
    location: str = ""
    """Folder for the index; by default one beside the files."""
    files: int = FILES
    seed: int = 0
    """The same advice again for the same seed and files."""


def advise_target(target: SparkTarget, request: AdviceRequest, progress: Progress) -> Report:
    """Estimate the effect of indexes and orders on a target; nothing is written.

    Raises:
        TargetNotIndexable: it has no files, or no row.
        IndexNotPossible: none of its columns, or of those that the queries speak of, can be
            indexed.
    """
    log = request.log or Log()
    listed = target.list_files("")
    chosen = _chosen(listed, request.files, request.seed)
    terms, left_out = _terms(target, log.queries, request.log is not None)
    candidates = _candidates(target, terms, log.queries)
    pieces = list(target.build(candidates, chosen, progress))
    rows = pa.concat_tables(pieces) if pieces else pa.table({})
    sample = _sample(target.relation(terms), terms, candidates, rows, request.seed)
    if not rows.num_rows or not len(sample[terms[0]]):
        raise TargetNotIndexable(
            "there is nothing from which to advise",
            found=f"{listed.num_rows} files, {rows.num_rows} of which could be read, without rows",
            expected="files with rows",
            hint="name a table or files that have rows",
        )
    queries = log.queries or drawn_queries(sample, request.seed)
    definition = SkippingDefinition(
        target.target, target.fingerprint, candidates, partition_columns=target.partition_columns
    )
    advice = advise(Observed(definition, rows, listed.num_rows, sample), queries)
    doubts = dict.fromkeys((*log.doubts, *(doubt for query in queries for doubt in query.doubts)))
    return Report(
        target=target.target.table or target.target.uri,
        advice=advice,
        files=listed.num_rows,
        seen_files=rows.num_rows,
        seen_rows=len(sample[terms[0]]),
        queries=len(queries),
        is_logged=bool(log.queries),
        doubts=(*doubts, *left_out),
        resource=resource_yaml(
            target.target,
            advice.indexes_after_sorting,
            request.location or f"{target.target.uri}-indexes",
        )
        if advice.indexes_after_sorting
        else "",
    )


def _chosen(listed: pa.Table, files: int, seed: int) -> pa.Table:
    ordered = listed.sort_by("path")
    if ordered.num_rows <= files:
        return ordered
    random = np.random.default_rng(seed)
    return ordered.take(np.sort(random.choice(ordered.num_rows, files, replace=False)))


def _terms(
    target: SparkTarget, queries: Sequence[Query], is_asked: bool
) -> tuple[tuple[Term, ...], tuple[str, ...]]:
    spoken = {term for query in queries for term in query.terms}
    if queries and not spoken:
        raise IndexNotPossible(
            "the queries contain nothing that an index could answer",
            found="; ".join(dict.fromkeys(d for q in queries for d in q.doubts)) or "no condition",
            expected="conditions that compare columns with literals",
            hint="leave the queries out to see advice drawn from the data",
        )
    if is_asked and not queries:
        raise IndexNotPossible(
            "none of the queries reads the target with a condition",
            expected="queries of the target, or conditions over its columns",
            hint="leave the queries out to see advice drawn from the data",
        )
    if spoken:
        return tuple(sorted(spoken, key=lambda term: term.key)), ()
    found = target.terms
    if not found:
        raise IndexNotPossible(
            "no index can be kept about any column",
            found="no such column",
            expected="columns of types that an index type takes",
            hint="index another table; the reference of skipping lists the types",
        )
    return found[:MOST_COLUMNS], tuple(
        f"{term.label}: beyond the first {MOST_COLUMNS} columns; name it in a query"
        for term in found[MOST_COLUMNS:]
    )


def _candidates(
    target: SparkTarget, terms: Iterable[Term], queries: Sequence[Query]
) -> tuple[IndexDefinition, ...]:
    partitions = [(name,) for name, _ in target.partition_columns]
    pieces = {
        leaf.term
        for query in queries
        for leaf in leaves(query.predicate)
        if isinstance(leaf, Contains | EndsWith)
    }
    found: list[IndexDefinition] = []
    for term in terms:
        kinds = (PARTITION,) if term.names in partitions else _TYPES
        for kind in (*kinds, *(("TOKENS",) if term in pieces else ())):
            index = IndexDefinition(f"i{len(found) + 1}", kind, (term,))
            try:
                index_type(kind).check(index)
            except IndexNotPossible:
                continue
            found.append(index)
    return tuple(found)


def _sample(
    relation: Relation,
    terms: Sequence[Term],
    candidates: Sequence[IndexDefinition],
    rows: pa.Table,
    seed: int,
) -> dict[Term, pa.Array]:
    counts = [0]
    for index in candidates if rows.num_rows else ():
        if index.type != PARTITION:
            columns = (values_column(index.index_id), nulls_column(index.index_id))
            counts.append(
                sum(each or 0 for name in columns for each in rows.column(name).to_pylist())
            )
    counted = max(counts)
    paths = rows.column("path").to_pylist() if rows.num_rows else []
    spellings = [url_encoded(path) for path in paths]
    spellings += [each.replace("file:/", "file:///", 1) for each in spellings]
    frame = relation.only([xxhash64(each.encode(), "string") for each in spellings] or [0])
    table = sampled(frame, [relation.columns[term.key] for term in terms], counted, ROWS, seed)
    return {term: kept_column(table, number, term) for number, term in enumerate(terms)}
