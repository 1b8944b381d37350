"""Candidates of a column, and what stops each: `init --from URI --explain TABLE.COLUMN`."""

from collections.abc import Iterator, Sequence

from snaploom.errors import ArgumentInvalid
from snaploom.loading.nearmisses import did_you_mean
from snaploom.plugins.discovery.dates import Family
from snaploom.plugins.discovery.discover import Discovery
from snaploom.plugins.discovery.foundfiles import LIKE_NAME
from snaploom.plugins.discovery.keys import lists_days
from snaploom.plugins.discovery.parents import ends_of, percent, source_of
from snaploom.plugins.discovery.profiles import ColumnProfile, SourceProfile
from snaploom.plugins.discovery.relationships import Verdict, judge
from snaploom.plugins.discovery.scratch import distinct_keys
from snaploom.types.merge import explanations

MOST_CANDIDATES = 6
"""Candidates that are shown, likeliest first."""
MOST_SPELLED = 100_000
"""Distinct values up to which spellings are compared: each takes some microseconds."""
_WORTH_A_LINE = 0.5
"""Share of values from which a column is a candidate whatever its name is."""


def explained(found: Discovery, wanted: str) -> Iterator[str]:
    """Lines about what a column may refer to: `TABLE.COLUMN`, or one pair, `TABLE.COLUMN=OTHER.ID`.

    Raises:
        ArgumentInvalid: there is no such column.
    """
    name, _, other = wanted.partition("=")
    child, column = _column(found.profiles, name)
    yield _facts(child, column)
    if other:
        parent, target = _column(found.profiles, other)
        yield _facts(parent, target)
        yield from _lines(found, judge(child, column, parent, target, found.relationships.primary))
        return
    for one in found.relationships.declared:
        if one.child == child.name and column.name in one.child_columns:
            yield f"declared: {one.evidence}"
    verdicts = (
        judge(child, column, parent, target, found.relationships.primary)
        for parent in found.profiles
        for target in parent.columns
        if ((column.may_be_key and target.may_be_key) or lists_days(parent, target))
        and (child, column) != (parent, target)
    )
    likely = (
        v for v in verdicts
        if v.found.likeness >= LIKE_NAME or v.found.included.share >= _WORTH_A_LINE
    )  # fmt: skip
    shown = sorted(likely, key=lambda v: (not v.is_strong, v.found.order))
    if not shown:
        yield "no column of another source has a like name, or half of its values"
    for verdict in shown[:MOST_CANDIDATES]:
        yield from _lines(found, verdict)
    if len(shown) > MOST_CANDIDATES:
        yield f"and {len(shown) - MOST_CANDIDATES:,} more; name one, as in {name}=TABLE.COLUMN"


def _column(profiles: Sequence[SourceProfile], name: str) -> tuple[SourceProfile, ColumnProfile]:
    known = {f"{p.name}.{c.name}": (p, c) for p in profiles for c in p.columns}
    folded = {each.casefold(): each for each in known}
    found = known.get(folded.get(name.strip().casefold(), ""))
    if found is None:
        raise ArgumentInvalid(
            "there is no column of this name",
            path="--explain",
            found=name,
            expected="TABLE.COLUMN, with a source of "
            + ", ".join(sorted(profile.name for profile in profiles)),
            hint=did_you_mean(name, known) or "look into sources.yaml for names",
        )
    return found


def _facts(source: SourceProfile, column: ColumnProfile) -> str:
    kind = {Family.WHOLE: "whole numbers", Family.TEXT: "texts"}.get(column.type.family)
    kind = kind or ("dates" if column.type.family is Family.DATE else "values that are no keys")
    read = f"all {source.rows:,} rows" if source.rows <= column.rows else (
        f"{column.rows:,} of {source.rows:,} rows"
    )  # fmt: skip
    unique = ", each once" if column.is_unique else ""
    return (
        f"{source.name}.{column.name}: {kind}, {column.values.distinct:,} different ones{unique}, "
        f"{column.nulls:,} NULL; {read} were read"
    )


def _lines(found: Discovery, verdict: Verdict) -> Iterator[str]:
    one = verdict.found
    yield f"{one.target}: {percent(one.included.share)} of the values are there; " + (
        f"they are {percent(one.used)} of its keys; likeness of names {one.likeness:.2f}"
    )
    yield f"  {_outcome(found, verdict)}"
    spelling = _spelling(*(
        _column(found.profiles, f"{table}.{columns[0]}")[1]
        for table, columns in ((one.child, one.child_columns), (one.parent, one.parent_columns))
    ))  # fmt: skip
    if spelling:
        yield f"  {spelling}"


def _spelling(column: ColumnProfile, target: ColumnProfile) -> str:
    """The share of values that is there under each normalisation; empty where all are as written.

    Of more values than `MOST_SPELLED` it is not asked.
    """
    mine, theirs = (distinct_keys(each.values, MOST_SPELLED) for each in (column, target))
    if mine is None or theirs is None:
        return ""
    each = list(explanations(mine, theirs))
    if not each:
        return ""
    helping = (one for one in each if one.share > one.as_written)
    better = [f"{percent(one.share)} with {', '.join(one.steps)}" for one in helping]
    others = "no more with others" if better else "no more with any normalize"
    return f"spelling: {percent(each[0].as_written)} as written, {', '.join([*better, others])}"


def _outcome(found: Discovery, verdict: Verdict) -> str:
    one, all_ = verdict.found, found.relationships
    if any(ends_of(one) == ends_of(other) for other in all_.declared):
        return "declared"
    if not verdict.is_strong:
        return f"stopped: {verdict.stopped}"
    taken = next((r for r in all_.declared if source_of(r) == source_of(one)), None)
    if taken is not None:
        return f"stopped: {taken.target} is likelier"
    if any(ends_of(one) == ends_of(other) for other in all_.weak):
        return "not declared: too close to another candidate; it stands in relationships.yaml"
    if any(ends_of(r) == ends_of(one)[::-1] for r in all_.declared):
        return "stopped: the other column refers to this one"
    return "stopped: the evidence is not clear enough"
