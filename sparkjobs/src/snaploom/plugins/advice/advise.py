"""Advice about indexes and orders: files and queries are read, and what would help is estimated."""

import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from snaploom.errors import IndexNotPossible, SnaploomError, StatementInvalid, TargetNotIndexable
from snaploom.plugins.advice.recommendations import (
    Log,
    Observed,
    Query,
    advise,
    drawn_queries,
    leaves,
)
from snaploom.plugins.advice.report import Report, resource_yaml
from snaploom.run.indexes.indexrequests import IndexedPlace
from snaploom.run.indexes.jobs import T, in_session
from snaploom.run.job import JobGroup
from snaploom.run.runevents import Interruption
from snaploom.run.session.spark import translated
from snaploom.skipping.core.definition import IndexDefinition, SkippingDefinition, Term
from snaploom.skipping.core.filetable import nulls_column, values_column
from snaploom.skipping.core.hashes import xxhash64
from snaploom.skipping.core.predicates import Contains, EndsWith, normal_form
from snaploom.skipping.indexes.base import index_type
from snaploom.skipping.lifecycle.declaration import Progress
from snaploom.skipping.lifecycle.operations import silent
from snaploom.skipping.spark.builds.clusteredwrite import kept_column, sampled
from snaploom.skipping.spark.builds.filerows import PARTITION
from snaploom.skipping.spark.builds.scan import Relation
from snaploom.skipping.spark.interfaces.enable import decider_of, setting
from snaploom.skipping.spark.interfaces.manage import SkippingIndexes
from snaploom.skipping.spark.optimizer import requests as rule
from snaploom.skipping.spark.optimizer.requests import Request
from snaploom.skipping.spark.optimizer.translation import catalyst
from snaploom.skipping.spark.relations import fingerprint
from snaploom.skipping.spark.relations.hadoop import url_encoded
from snaploom.skipping.spark.targets.sparktarget import SparkTarget
from snaploom.spark.gate import SqlPlace, checked_statement

FILES = 64
"""Files that are read, unless something else is asked for."""
ROWS = 20_000
"""Rows with which orders are simulated."""
MOST_COLUMNS = 40
"""Columns that are looked at when no query shows which matter."""
ADVICE_COLUMNS = ("column_name", "data_type", "skipping_type", "reason", "skipped", "bytes")
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
    """Estimate the effect of indexes and orders on a target; nothing is written."""
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
        target=target.target.label,
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
    hashes = xxhash64([each.encode() for each in spellings] or [b""], "string")
    frame = relation.only(hashes.tolist())
    table = sampled(frame, [relation.columns[term.key] for term in terms], counted, ROWS, seed)
    return {term: kept_column(table, number, term) for number, term in enumerate(terms)}


def analyzed(target: SparkTarget) -> tuple[Sequence[str], Sequence[tuple[str, ...]]]:
    """The columns and rows of `ANALYZE SKIPPING INDEX`: indexes that would help, best first.

    `skipped` is the share of the files that queries about the column would leave out, from 0 to 1.
    """
    report = advise_target(target, AdviceRequest(), silent)
    on = f"{report.queries} queries {'of the log' if report.is_logged else 'drawn from the data'}"
    seen = f"{on}, tried on {report.seen_files} of {report.files} files"
    estimates = sorted(
        (
            estimate
            for column in report.advice.columns
            for estimate in column.estimates
            if estimate.is_advised
        ),
        key=lambda estimate: -estimate.share,
    )
    rows = [
        (
            term.label,
            term.data_type,
            estimate.index.type,
            f"skips {estimate.share:.0%} of the files: {seen}",
            f"{estimate.share:.4f}",
            str(estimate.bytes),
        )
        for estimate in estimates
        for term in estimate.index.terms
    ]
    return ADVICE_COLUMNS, rows


# A log of queries, as their conditions on the files of one target.

FILES_IN_SQL = "spark.sql.runSQLOnFiles"
_PLACE = SqlPlace(None, None, StatementInvalid, "one SELECT, of listed functions")
_WHOLE = re.compile(r"(?is)\s*(SELECT|WITH|FROM)\b")
_WHERE = re.compile(r"(?is)\A\s*WHERE\b")


def read_log(spark: SparkSession, target: SparkTarget, texts: Sequence[str]) -> Log:
    """Analyse queries, or conditions on the target's columns, as Spark does; none is run."""
    queries: list[Query] = []
    doubts: list[str] = []
    for text in (text.strip().rstrip(";") for text in texts):
        if not text or text.startswith("--"):
            continue
        try:
            found = _understood(spark, target, text)
        except (PySparkException, Py4JJavaError, SnaploomError) as error:
            doubts.append(f"{_short(text)}: {_short(str(error))}")
            continue
        queries += found
        if not found:
            doubts.append(f"{_short(text)}: it demands nothing of the rows of the target")
    return Log(tuple(queries), tuple(doubts))


def _understood(spark: SparkSession, target: SparkTarget, text: str) -> list[Query]:
    if not _WHOLE.match(text):
        condition = _WHERE.sub("", text, count=1)
        return [Query(condition, target.predicate(condition))]
    return [
        Query(
            text,
            normal_form(catalyst.predicate(request.filters, fingerprint.columns(request.header))),
        )
        for request in _requests(spark, text)
        if _is_about(request, target)
    ]


def _is_about(request: Request, target: SparkTarget) -> bool:
    uri = target.target.uri
    return any(place == uri or place.startswith(f"{uri}/") for place in request.targets)


def _requests(spark: SparkSession, text: str) -> list[Request]:
    found: dict[tuple[str, str], Request] = {}
    # Sessions of ours refuse files in SQL otherwise; queries of people name them so.
    with _recording(spark) as recorder, setting(spark, FILES_IN_SQL, "true"):
        checked_statement(spark, text, _PLACE)._jdf.queryExecution().optimizedPlan()
    for request in recorder:
        if request.filters:
            found.setdefault((request.name, repr(request.filters)), request)
    return list(found.values())


@contextmanager
def _recording(spark: SparkSession) -> Iterator[list[Request]]:
    requests: list[Request] = []
    trace = secrets.token_hex(8)
    former = decider_of(spark) if rule.is_installed(spark) else None

    def note(text: str) -> str | None:
        request = Request.parse(text)
        if rule.SkippingSettings.of(request.settings).trace != trace:
            return None if former is None else former(text)
        requests.append(request)
        return None

    rule.install(spark, note, rule.REQUESTED)
    try:
        with setting(spark, rule.TRACE, trace):
            yield requests
    finally:
        if former is None:
            rule.uninstall(spark)
        else:
            rule.install(spark, former, rule.REQUESTED, former.concerns)


def _short(text: str) -> str:
    line = " ".join(text.split("\n", 1)[0].split())
    return line if len(line) <= 100 else f"{line[:97]}..."


# Advice about files, as a job in a session of Spark.


def advise_files(
    place: IndexedPlace,
    queries: Sequence[str],
    files: int,
    seed: int,
    report: Callable[[str, int, int], None],
    on_tick: Callable[[], None],
    interruption: Interruption,
) -> Report:
    """Estimate which indexes and which order would help; nothing is written.

    Args:
        place: what is looked at, and where the index would be.
        queries: SQL, or conditions over the columns; without any, some are drawn from the data.
        files: how many to read.
        seed: of what is drawn.
        report: takes a label, the number of files done and of all; from any thread.
        on_tick: called several times a second from this thread.
        interruption: from `signal_handlers`.
    """

    def work(spark: SparkSession) -> Report:
        target = SkippingIndexes(spark, allow=place.allow).target(place.subject)
        log = read_log(spark, target, queries) if queries else None
        request = AdviceRequest(log, place.store.location, files, seed)
        return advise_target(target, request, lambda done, total: report(place.label, done, total))

    return in_session_at(place, work, on_tick, interruption)


def in_session_at(
    place: IndexedPlace,
    work: Callable[[SparkSession], T],
    on_tick: Callable[[], None],
    interruption: Interruption,
) -> T:
    """Do something with the files of a place, as one job in a session of Spark."""

    def run(spark: SparkSession, group: JobGroup) -> T:
        group.enter(spark, "snaploom-index", place.label)
        with translated(place.owner):
            return work(spark)

    return in_session(place.run, place.settings, place.allow, run, on_tick, interruption)
