"""Rows that found no match: their keys, and the normalisations that would give them one.

All of it is for people: it costs a run a bounded share of its time, and fails nothing.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import and_
from threading import Event, Thread
from time import monotonic
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as spark_types

from snaploom.engine.fold import Weave
from snaploom.engine.keys import KeyPart, components
from snaploom.errors import SnaploomError
from snaploom.models.common import STRING
from snaploom.models.datarelationship import KeySpellings, NearMiss, Normalization, UnmatchedRows
from snaploom.models.report import JoinMeasure
from snaploom.plan.tree import JoinNode
from snaploom.types.merge import CANDIDATES, Steps, common_cast, needed_steps

# Counts of unmatched rows, by a query for each join over the distinct keys of both sides.

SHARE_OF_TIME = 0.05
"""Share of a run's time that its queries may take together."""
SECONDS_FOR_NEWEST = 10.0
"""Seconds that are kept for the newest snapshot of a run, which people look at first, however short
the run is: 5% of it may be too few for one query (1.5 s, or 8 in a JVM that has just begun)."""
_BOUND = f"{SHARE_OF_TIME:.0%} of the run's time"
_LEAST_SECONDS = 0.3
"""Seconds below which no query is begun: Spark needs some for the smallest one."""
_POLL_SECONDS = 0.5
"""Time between two cancellations: a query may be between two of its jobs."""
FEW_ROWS = 100_000
"""Unmatched rows whose keys, in all their spellings, every executor may hold."""
SHOWN_LENGTH = 40
"""Characters of a key that a message shows."""


@dataclass
class TimeAllowance:
    """Seconds that a run may still spend on its unmatched rows."""

    started: float = field(default_factory=monotonic)
    spent: float = 0.0
    too_few: dict[str, float] = field(default_factory=dict)
    """Seconds in which the query of a join, by the name of its field, did not end."""

    def left(self, *, is_newest: bool) -> float:
        """Seconds left, for the newest snapshot of the run or another one."""
        share = SHARE_OF_TIME * (monotonic() - self.started)
        most = max(share, SECONDS_FOR_NEWEST) if is_newest else share - SECONDS_FOR_NEWEST
        return most - self.spent


def unmatched_rows(
    weave: Weave,
    joins: Iterable[JoinMeasure],
    silent: frozenset[str],
    allowance: TimeAllowance,
    *,
    is_newest: bool = True,
) -> tuple[UnmatchedRows, ...]:
    """The rows that found no match in each join that has any, but for the sources `silent`.

    Rows whose key, or whose time in a join by time, is NULL are not among them. `is_newest` is
    whether the snapshot is the newest one of the run.
    """
    nodes = {node.field_name: node for node in weave.joins}
    found = []
    for join in joins:
        rows = join.unmatched
        if rows <= 0 or join.child in silent:
            continue
        seconds = allowance.left(is_newest=is_newest)
        least = 0.0 if is_newest else 2 * allowance.too_few.get(join.child, 0.0)
        if seconds < max(_LEAST_SECONDS, least):
            reason = f"too little is left of {_BOUND}"
            found.append(UnmatchedRows(child=join.child, rows=rows, not_counted=reason))
            continue
        started = monotonic()
        found.append(_looked_at(weave, nodes[join.child], rows, seconds))
        spent = monotonic() - started
        allowance.spent += spent
        if spent >= seconds:  # the same few seconds, snapshot after snapshot, would find nothing
            allowance.too_few[join.child] = spent
    return tuple(found)


def _looked_at(weave: Weave, child: JoinNode, rows: int, seconds: float) -> UnmatchedRows:
    def unknown(reason: str) -> UnmatchedRows:
        return UnmatchedRows(child=child.field_name, rows=rows, not_counted=reason[:1000])

    started, is_timed = monotonic(), child.number in weave.timed
    misses: dict[Steps, NearMiss] = {}
    whole: list[Row] = []

    def explained(candidates: Sequence[Steps]) -> list[int]:
        left = seconds - (monotonic() - started)
        with _ended_after(weave.frames[child.field_name].sparkSession, left):
            counted = {row.n: row for row in _query(weave, child, rows, candidates).collect()}
        whole[:] = [counted[0]] if 0 in counted else []
        for number, steps in enumerate(candidates, 1):
            if (row := counted.get(number)) is not None and row.matched:
                misses[steps] = NearMiss(
                    normalize=steps,
                    rows=row.matched,
                    ambiguous=0 if child.group_by or is_timed else row.ambiguous,
                    keys=tuple(
                        KeySpellings(left=pair.left, right=pair.right) for pair in row.pairs
                    ),
                )
        return [misses[steps].rows if steps in misses else 0 for steps in candidates]

    try:
        explained(_candidates(weave, child))
    except (PySparkException, Py4JError, SnaploomError) as error:
        if monotonic() - started >= seconds:
            return unknown(f"they take more than {seconds:.1f} s, {_BOUND}")
        return unknown(f"Spark refuses it: {str(error).splitlines()[0]}")
    without_key = whole[0].rows if whole else 0
    if without_key > rows or (without_key < rows and not is_timed):
        return unknown("the sources have other rows by now than were woven")
    keys = tuple(pair.left for pair in whole[0].pairs) if whole else ()
    shown = [one for one in misses.values() if len(one.normalize) == 1]
    simple = max((one.rows for one in shown), default=0)
    for several in [one for one in misses.values() if one.rows > simple]:
        steps = several.normalize
        if 3 * (monotonic() - started) < seconds:  # two more queries
            with suppress(PySparkException, Py4JError, SnaploomError):  # all of them are right too
                steps = needed_steps(steps, explained)
        shown.append(misses[steps])
    return UnmatchedRows(
        child=child.field_name,
        rows=rows,
        other_times=rows - without_key if is_timed else None,
        keys=keys,
        near_misses=tuple(sorted(shown, key=lambda one: -one.rows)),
    )


@contextmanager
def _ended_after(session: SparkSession, seconds: float) -> Iterator[None]:
    """Cancel the jobs of this thread that are begun inside, once so many seconds have passed."""
    context, tag, done = session.sparkContext, f"snaploom-{uuid4().hex}", Event()

    def end_jobs() -> None:
        wait = seconds
        while not done.wait(wait):
            context.cancelJobsWithTag(tag)
            wait = _POLL_SECONDS

    context.addJobTag(tag)
    thread = Thread(target=end_jobs, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        context.removeJobTag(tag)


def _candidates(weave: Weave, child: JoinNode) -> list[Steps]:
    """Normalisations that change how a join's key is compared."""
    key = weave.keys[child.number]
    return [
        steps
        for steps in CANDIDATES
        if any(_with(part, steps) is not part for part in (*key.left, *key.right))
    ]


def _with(part: KeyPart, steps: Sequence[Normalization]) -> KeyPart:
    """A part of a key with further steps, as far as they change its text."""
    fresh = [step for step in steps if step not in part.steps]
    kind = spark_types.StringType() if part.field is None else part.field.data_type
    if isinstance(kind, spark_types.NumericType):
        is_text = part.steps or isinstance(part.cast, spark_types.StringType)
        fresh = [step for step in fresh if step is Normalization.INTEGER and is_text]
    elif not isinstance(kind, spark_types.StringType):
        fresh = []
    return replace(part, steps=(*part.steps, *fresh)) if fresh else part


def _query(weave: Weave, child: JoinNode, rows: int, candidates: Sequence[Steps]) -> DataFrame:
    """One row for all unmatched rows, with the number 0, and one for each candidate that helps.

    Of the child's keys only those that would be a partner are shuffled: seven spellings of each
    take three times as long.
    """
    key, parent = weave.keys[child.number], weave.tree.node(child.parent)
    left, right = _keys(weave, parent, child, key.left), _keys(weave, child, child, key.right)
    unmatched = left.join(right.select("key"), "key", "left_anti")
    spelled = _by_candidate(unmatched, key.left, candidates)
    wanted = spelled.select("n", "key")
    partners = (
        _by_candidate(right, key.right, candidates)
        .join(sf.broadcast(wanted) if rows <= FEW_ROWS else wanted, ["n", "key"], "left_semi")
        .groupBy("n", "key")
        .agg(sf.sum("rows").alias("partners"), sf.min("text").alias("right"))
    )
    has_partner = sf.col("partners").isNotNull()
    pair = sf.when(
        has_partner | (sf.col("n") == 0), sf.struct(sf.col("text").alias("left"), "right")
    )
    another = sf.min_by(pair, sf.when(pair.isNotNull(), sf.xxhash64("text")))
    return (
        spelled.join(partners, ["n", "key"], "left")
        .groupBy("n")
        .agg(
            sf.sum("rows").alias("rows"),
            sf.sum(sf.when(has_partner, sf.col("rows"))).alias("matched"),
            sf.sum(sf.when(sf.col("partners") > 1, sf.col("rows")).otherwise(0)).alias("ambiguous"),
            sf.array_distinct(
                sf.array_compact(sf.array(sf.min(pair), sf.max(pair), another))
            ).alias("pairs"),
        )
    )


def _keys(weave: Weave, side: JoinNode, child: JoinNode, parts: Sequence[KeyPart]) -> DataFrame:
    """The keys of a side: rows, text, values as they are written, and the key as it is compared."""
    frame = weave.frames[side.field_name]
    if child.number in weave.timed:  # rows without a time match nothing, whatever their key
        join = weave.timed[child.number]
        columns = join.right_columns() if side is child else [join.left_column()]
        frame = frame.where(columns[0].isNotNull())
    names = [f"v{i}" for i in range(len(parts))]
    values = (part.value(frame.sparkSession, child.relationship) for part in parts)
    written = frame.select(*(value.alias(name) for value, name in zip(values, names, strict=True)))
    has_all = reduce(and_, [sf.col(name).isNotNull() for name in names])
    keys = written.where(has_all)
    if side is child and not child.group_by and child.number not in weave.timed:
        keys = keys.withColumn("rows", sf.lit(1))  # most are unique: the join needs it
    else:
        keys = keys.groupBy(*names).agg(sf.count(sf.lit(1)).alias("rows"))
    # Of a long key only the beginning is shown, and so it is all that is collected.
    texts = (sf.substring(sf.col(name).cast("string"), 1, SHOWN_LENGTH + 1) for name in names)
    text, compared = sf.concat_ws(", ", *texts).alias("text"), _compared(keys, parts, ())
    return keys.select("rows", text, *names, compared).where(_is_whole(parts))


def _by_candidate(
    keys: DataFrame, parts: Sequence[KeyPart], candidates: Sequence[Steps]
) -> DataFrame:
    """A row for each key and candidate under which no part of it is NULL: number and key.

    The number 0 is that of the key as it is compared.
    """
    pairs = (
        sf.struct(sf.lit(number).alias("n"), _compared(keys, parts, steps))
        for number, steps in enumerate([(), *candidates])
    )
    rows = keys.select("rows", "text", sf.inline(sf.array(*pairs)))
    return rows.where(_is_whole(parts))


def _compared(keys: DataFrame, parts: Sequence[KeyPart], steps: Steps) -> Column:
    """The key with further steps, of its values as they are written."""
    compared = (
        _with(part, steps).compared(keys.sparkSession, sf.col(f"v{i}")).alias(f"v{i}")
        for i, part in enumerate(parts)
    )
    return sf.struct(*compared).alias("key")


def _is_whole(parts: Sequence[KeyPart]) -> Column:
    return reduce(and_, [sf.col(f"key.v{i}").isNotNull() for i in range(len(parts))])


# Warnings about joins in which no row found a match although both sides have keys.

SAMPLED_JOINS = 20
"""Joins of a snapshot whose keys are looked at, by two small queries each: some seconds together.
Of more than these one line lists their names."""


@dataclass(frozen=True, slots=True)
class _Sample:
    values: tuple[str, ...]
    """As the data has them."""
    compared: tuple[str | None, ...]
    """As they are compared; None where the cast gave none."""

    def __str__(self) -> str:
        pairs = zip(self.values, self.compared, strict=True)
        return ", ".join(_shown(value, compared) for value, compared in pairs)


def unmatched_warnings(
    weave: Weave,
    joins: Iterable[JoinMeasure],
    unmatched: Iterable[UnmatchedRows] = (),
    silent: frozenset[str] = frozenset(),
) -> Iterator[str]:
    """Warnings about joins without any match, and about near misses in all joins.

    The former are those whose sides both have keys. `unmatched` is from `unmatched_rows`; no
    warning is about the sources `silent`, by field name.
    """
    nodes = {node.field_name: node for node in weave.joins}
    advice = {
        one.child: _near_miss_advice(weave, nodes[one.child], one.near_misses[0])
        for one in unmatched
        if one.near_misses
    }
    measures = [one for one in joins if one.in_ and one.child not in silent]
    empty = [one for one in measures if not one.matched]
    for join in empty[:SAMPLED_JOINS]:
        child = nodes[join.child]
        parent = weave.tree.node(child.parent)
        key = weave.keys[child.number]
        left = _sample(weave, parent, child, key.left)
        right = None if left is None else _sample(weave, child, child, key.right)
        if left is not None and right is not None:
            helps = advice.get(join.child) or _advice(weave, parent, child, left, right)
            if child.timed is not None:
                helps = f"{helps}; or no time fits: {child.timed.text}"
            yield (
                f"`{join.child}`: none of {join.in_} rows found a match by "
                f"DataRelationship/{child.relationship}, although both sides have keys: "
                f"DataSource/{parent.source} has {left} and DataSource/{child.source} has {right}; "
                f"{helps}; "
                f"if no match is right, set warnNoMatch: false for `{join.child}`"
            )
    if empty[SAMPLED_JOINS:]:
        names = ", ".join(f"`{one.child}`" for one in empty[SAMPLED_JOINS:])
        yield f"no row found a match in {names} either; their keys were not looked at"
    for join in measures:
        if join.matched and join.child in advice:
            yield (
                f"`{join.child}`: {join.unmatched:,} rows have no match by "
                f"DataRelationship/{nodes[join.child].relationship}; {advice[join.child]}"
            )


_WORDS = {
    Normalization.TRIM: "with blanks cut",
    Normalization.UPPER: "in capitals",
    Normalization.LOWER: "in small letters",
    Normalization.STRIP_LEADING_ZEROS: "without leading zeros",
    Normalization.INTEGER: "as whole numbers",
    Normalization.NFC: "with accents composed",
    Normalization.REMOVE_DASHES: "without dashes",
}


def _near_miss_advice(weave: Weave, child: JoinNode, miss: NearMiss) -> str:
    key, parent = weave.keys[child.number], weave.tree.node(child.parent)
    places = []
    for place, pair in enumerate(zip(key.left, key.right, strict=True)):
        sides = zip((parent.source, child.source), pair, strict=True)
        changed = [name for name, part in sides if _with(part, miss.normalize) is not part]
        if changed:
            places.append(f"joinKey[{place}] of {' and '.join(changed)}")
    words = ", ".join(_WORDS[step] for step in miss.normalize)
    samples = ", ".join(_visible(pair.left, pair.right) for pair in miss.keys)
    multiplied = f" ({miss.ambiguous:,} of them several rows, which is refused)"
    multiplied = multiplied if miss.ambiguous else ""
    effect = "match" if child.timed is None else "find their key, if not their time,"
    return (
        f"{miss.rows:,} would {effect} {words}{multiplied}, such as {samples}: "
        f"normalize: [{', '.join(miss.normalize)}] in {', '.join(places)}"
    )


def _visible(left: str, right: str) -> str:
    """Two spellings of a key, with what nobody sees in them as its code."""
    composed = [unicodedata.normalize("NFC", text) for text in (left, right)]
    is_hidden = composed[0] == composed[1]

    def shown(sign: str) -> str:
        is_seen = sign.isprintable() and not (is_hidden and ord(sign) > 127)
        return sign if is_seen else sign.encode("unicode_escape").decode()

    texts = ("".join(map(shown, _quoted(text))) for text in (left, right))
    return " for ".join(texts)


def _sample(
    weave: Weave, side: JoinNode, child: JoinNode, parts: Sequence[KeyPart]
) -> _Sample | None:
    """A key of a side, also if the cast fails; None where there is none, or it was not read."""
    frame = weave.frames[side.field_name]
    session, relationship = frame.sparkSession, child.relationship
    as_it_stands = (replace(part, cast=None, first_casts=(), steps=()) for part in parts)
    raw = [part.column(session, relationship) for part in as_it_stands]
    cast = [part.column(session, relationship) for part in parts]
    try:
        row = (
            frame.select(
                *(column.cast("string").alias(f"r{i}") for i, column in enumerate(raw)),
                *(column.cast("string").alias(f"c{i}") for i, column in enumerate(cast)),
            )
            .where(" AND ".join(f"r{i} IS NOT NULL" for i in range(len(raw))))
            .first()
        )
    except (PySparkException, Py4JError, SnaploomError):
        return None
    if row is None:
        return None
    return _Sample(tuple(row)[: len(raw)], tuple(row)[len(raw) :])


def _shown(value: str, compared: str | None) -> str:
    if compared == value:
        return _quoted(value)
    return f"{_quoted(value)} (compared as {'NULL' if compared is None else _quoted(compared)})"


def _quoted(value: str) -> str:
    return f"'{value[:SHOWN_LENGTH]}{'...' if len(value) > SHOWN_LENGTH else ''}'"


def _advice(weave: Weave, parent: JoinNode, child: JoinNode, left: _Sample, right: _Sample) -> str:
    relationship = weave.relationships[child.relationship]
    pairs = zip(components(relationship, parent), components(relationship, child), strict=True)
    for place, (one, other) in enumerate(pairs):
        is_plain = not any(side.query or side.normalize for side in (one, other))
        if is_plain and one.cast_data_type == STRING:
            cast = common_cast(one.fields_[0].data_type, other.fields_[0].data_type)
            if cast is not None:
                return f"their texts differ: give joinKey[{place}] of every representation {cast}"
    samples = (left, right)
    if any(None in sample.compared for sample in samples):
        return "a key cannot be cast to castDataType or read as INTEGER, and is NULL: correct these"
    if any(text != text.strip() for sample in samples for text in sample.compared if text):
        return "a key has blanks around it, as CHAR columns have: normalize: [TRIM] at least"
    return "check that the key has the right fields, and that both sides write it in one way"
