"""Columns of times: the snapshots of a source whose file names have no dates, and joins as of them.

Of snapshots there are two kinds. A *register by day* has all of its rows once a day, so that its
key is unique within a day and comes again the next one: whatever refers to it has to meet the rows
of its own day, wherever the register stands. *Events* have each row once, and a time of their own:
they are divided into days where they are the root of the output; anywhere else that would hide all
rows but those of one day.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import combinations, product
from math import inf

from snaploom.models.asof import AsOf
from snaploom.plugins.discovery import scratch
from snaploom.plugins.discovery.dates import ColumnDates, Family
from snaploom.plugins.discovery.foundfiles import (
    LONGEST_KEY_TEXT,
    MOST_COLUMNS_COMBINED,
    SAME_NAME,
    Ask,
    Guess,
    Question,
)
from snaploom.plugins.discovery.keys import FEWEST_ROWS, is_short, names_own_table
from snaploom.plugins.discovery.layout import CHANGE_ORDER, ORDER_TAKEN, Layout
from snaploom.plugins.discovery.names import column_words, key_likeness, table_words, word_likeness
from snaploom.plugins.discovery.profiles import (
    ColumnProfile,
    DatabaseTable,
    SnapshotColumn,
    SourceProfile,
)
from snaploom.plugins.discovery.relationships import Relationship, rows_per_key
from snaploom.types.schemas import path_text

SNAPSHOT_WORDS = frozenset({
    "snapshot", "asof", "stichtag", "extract", "extracted", "export", "exported", "load", "loaded",
    "ingest", "ingested", "ingestion", "batch", "business", "reporting", "partition", "ds", "dt",
    "cob", "valuation", "inventory", "bestandsdatum", "ladedatum", "exportdatum", "position",
})  # fmt: skip
"""Words of columns that name the day of a whole copy."""
EVENT_WORDS = frozenset({
    "event", "timestamp", "ts", "occurred", "happened", "created", "time", "datetime", "logged",
    "recorded", "measured", "observed", "read", "sent", "posted", "placed", "booked", "booking",
    "transaction", "trans", "txn", "order", "ordered", "sale", "sold", "visit", "visited", "date",
    "datum", "day", "tag", "zeitpunkt", "zeit", "bestelldatum", "buchungsdatum", "buchungstag",
    "belegdatum", "messzeit", "rechnungsdatum", "invoice", "trip", "pickup", "at", "when",
})  # fmt: skip
"""Words of columns that name when something happened."""
BEGINNINGS = frozenset({"start", "started", "begin", "began", "beginn", "opened"})
"""Words that name a beginning, if it is a time: a date begins the validity of its row."""
OTHER_DATES = frozenset({
    "birth", "born", "birthday", "birthdate", "dob", "geburt", "geburtsdatum", "geburtstag", "due",
    "faellig", "faelligkeit", "expiry", "expires", "expired", "expiration", "end", "ended", "ende",
    "until", "bis", "to", "valid", "gueltig", "from", "von", "since", "seit", "updated", "modified",
    "changed", "geaendert", "deleted", "closed", "cancelled", "required", "promised", "planned",
    "hire", "hired", "eintritt", "founded", "registered", "registration", "joined", "signup",
    "delivered", "delivery", "shipped", "ship", "receipt", "commit", "last", "next", "first",
})  # fmt: skip
"""Words of columns that name another time than that of the row."""
_ELSE = "else write snapshot: {fromReadTime: {}}"
_AGAIN = 1.5
"""Times that a key of a register by day occurs, on average, from which its days are copies."""
_COPIED = 0.3
"""Share of all keys that a day of such a register has, on average: it may have grown since."""
_MOST_DAYS_SHARE = 0.5
"""Days for each row up to which rows are events of days, and not a list of days."""


def with_snapshot_column(profile: SourceProfile) -> SourceProfile:
    """The profile of a register by day, or of a table whose files are divided by day, as such."""
    if profile.times:
        return profile
    for column in _candidates(profile):
        dates = column.dates
        if dates is None or not dates.is_exact:
            continue
        if column.name in profile.partition_columns:
            return _by(profile, column, "its files are divided by it")
        if len(dates.times) < 2 or len(column.values) < FEWEST_ROWS:
            continue
        key = _key_of_a_day(profile, column)
        if key:
            columns = " and ".join(key)
            evidence = f"{columns} {'is' if len(key) == 1 else 'are'} unique within each day of it"
            evidence += ", and not over all days"
            is_sure = _is_named(column, profile)
            return _by(profile, column, evidence if is_sure else f"a guess: {evidence}; {_ELSE}")
    return profile


def with_event_dates(profile: SourceProfile) -> SourceProfile:
    """The profile of a root whose rows are events, divided by the day on which they happened.

    Where several columns could be meant equally, none is chosen.
    """
    if profile.times:
        return profile
    found = event_columns(profile)
    ranks = [_event_rank(column, profile) for column in found]
    if not found or ranks[0] == 0 or (len(found) > 1 and ranks[1] == ranks[0]):
        return profile
    dates = found[0].dates
    assert dates is not None  # of candidates
    if isinstance(profile.origin, DatabaseTable) and not dates.is_exact:
        return profile  # a query would read the whole table anew for each day
    days = f"{len(dates.times):,} days of {len(found[0].values):,} rows, none without"
    return _by(profile, found[0], days)


def with_answer(profile: SourceProfile, ask: Ask) -> SourceProfile:
    """The profile with the order of day and month that a person names, where it is open."""
    found = profile.snapshot_column
    if found is None or not found.dates.others:
        return profile
    options = (found.dates, *found.dates.others)
    text = f"In which order are year, month and day in {profile.name}.{found.name}?"
    (answer,) = ask([Question(text, tuple(map(_option, options)), 0, inf)])
    if answer is None:
        return profile
    dates = replace(options[answer], others=())
    return replace(profile, snapshot_column=replace(found, dates=dates))


def guess_of(profile: SourceProfile) -> Guess | None:
    """Return the guess about the dates of a source; None where they are certain."""
    found = profile.snapshot_column
    if found is None:
        return profile.origin.guess if isinstance(profile.origin, Layout) else None
    if not found.dates.others:
        return None
    chosen, *others = map(_option, (found.dates, *found.dates.others))
    return Guess(
        f"dates in {profile.name}.{found.name}", chosen, tuple(others), ORDER_TAKEN,
        CHANGE_ORDER.format(found.dates.others[0].time_pattern),
    )  # fmt: skip


def _option(dates: ColumnDates) -> str:
    return f"{dates.time_pattern}, {dates.times[0]:%Y-%m-%d} to {dates.times[-1]:%Y-%m-%d}"


def event_columns(profile: SourceProfile) -> list[ColumnProfile]:
    """Columns that may hold when something happened, the likeliest first."""
    rows = len(profile.snapshot)
    found = [
        column
        for column in _candidates(profile)
        if column.dates is not None
        and (column.type.family in (Family.DATE, Family.TIME) or _event_rank(column, profile))
        and 2 <= len(column.dates.times) <= _MOST_DAYS_SHARE * rows
        and not set(_words(column, profile)) & OTHER_DATES
    ]
    return sorted(found, key=lambda column: -_event_rank(column, profile))


def _event_rank(column: ColumnProfile, profile: SourceProfile) -> int:
    """Return how surely a column names the time of an event: 2 with the name of its own table."""
    words = _words(column, profile)
    table = table_words(profile.name)
    if any(word_likeness(w, t) >= SAME_NAME for w in words for t in table if w not in _TIME_WORDS):
        return 2
    if set(words) & BEGINNINGS:
        return 1 if column.type.family is Family.TIME else 0
    return 1 if set(words) & EVENT_WORDS else 0


_TIME_WORDS = frozenset({"date", "time", "day", "at", "datum", "zeit", "tag", "datetime"})


def _words(column: ColumnProfile, profile: SourceProfile) -> tuple[str, ...]:
    return column_words(column.name, profile.prefix).whole


def _candidates(profile: SourceProfile) -> Iterator[ColumnProfile]:
    """Columns of dates without NULL, those first whose names are about copies."""
    found = [c for c in profile.columns if c.dates is not None and c.rows and not c.nulls]
    yield from sorted(found, key=lambda column: not _is_named(column, profile))


def _is_named(column: ColumnProfile, profile: SourceProfile) -> bool:
    words = _words(column, profile)
    return bool(set(words) & SNAPSHOT_WORDS) or "".join(words[:2]) in SNAPSHOT_WORDS


def _key_of_a_day(profile: SourceProfile, day: ColumnProfile) -> tuple[str, ...]:
    """Columns that are unique within each day, and come again on others; nothing without any."""
    others = [
        column
        for column in profile.columns
        if column is not day and column.may_be_key and column.mean_length <= LONGEST_KEY_TEXT
        and not column.nulls and column.values.distinct > 1
    ]  # fmt: skip
    if any(column.is_unique and names_own_table(column, profile) for column in others):
        return ()  # each row is there once
    if any(each.is_unique and each.type.family is Family.DATE for each in profile.columns):
        return ()  # a calendar, or one row a day
    is_named = _is_named(day, profile)
    if not is_named and set(_words(day, profile)) & (OTHER_DATES | BEGINNINGS):
        return ()
    snapshot = scratch.combined([profile.snapshot, day.values])
    for size in (1, 2) if is_named else (1,):
        ids = [column for column in others if column_words(column.name, profile.prefix).has_id]
        for chosen in combinations(ids[:MOST_COLUMNS_COMBINED], size):
            together = scratch.combined([column.values for column in chosen])
            # A mere code may be of a list elsewhere: what was supplied on a day is no register.
            own = chosen[0].name.casefold() != "code" and names_own_table(chosen[0], profile)
            if not (is_named or own) or scratch.is_unique(together, profile.snapshot):
                continue
            keys, days = together.distinct, snapshot.distinct
            is_copied = len(together) >= _AGAIN * keys and len(together) >= _COPIED * keys * days
            if is_copied and scratch.is_unique(together, snapshot):
                return tuple(column.name for column in chosen)
    return ()


def _by(profile: SourceProfile, column: ColumnProfile, evidence: str) -> SourceProfile:
    """The profile with a column as its snapshots, and keys that are judged within each."""
    assert column.dates is not None  # of candidates
    found = SnapshotColumn(column.name, column.dates, evidence)
    if not column.dates.is_exact:
        return replace(profile, snapshot_column=found)
    snapshot = scratch.combined([profile.snapshot, column.values])
    columns = tuple(
        each if each.is_unique or each.type.family is Family.OTHER
        else replace(each, is_unique=scratch.is_unique(each.values, snapshot))
        for each in profile.columns
    )  # fmt: skip
    return replace(profile, columns=columns, snapshot=snapshot, snapshot_column=found)


# Sources that have a row for each change, of which a row finds the one that held at its own time.

_FROM_WORDS = frozenset({
    "from", "von", "since", "seit", "ab", "valid", "gueltig", "updated", "modified", "changed",
    "geaendert",
})  # fmt: skip
"""Words of columns that name the time from which a row holds."""
_UNTIL_WORDS = frozenset({
    "until", "bis", "to", "till", "end", "ended", "ende", "expiry", "expires", "expired",
    "expiration",
})  # fmt: skip
"""Words of columns that name the time from which a row holds no longer."""
_LEAST_FOUND = 0.3
"""Share of rows that must find a row as of their time, for a join to be proposed."""
_MOST_SECONDS = 60
"""Seconds after which nothing is proposed for a source."""


def as_of_relationships(
    parents: Sequence[SourceProfile],
    others: Sequence[SourceProfile],
    declared: Sequence[Relationship],
) -> list[Relationship]:
    """Joins by key and time that a person may want, for each of the others at most one.

    `parents` have a row each for a row of the output, those nearest to the root first. The others
    have several rows a key, and one for a key and a time.
    """
    refers = {
        (one.child, one.child_columns[0]): (one.parent, one.parent_columns)
        for one in declared if len(one.child_columns) == 1
    }  # fmt: skip
    found: list[Relationship] = []
    for source in others:
        if source.times:
            continue  # a snapshot of it need not have the whole history
        with suppress(scratch.OutOfTime), source.snapshot.rows.scratch.within(_MOST_SECONDS):
            each = (_as_of(parent, source, refers) for parent in parents)
            one = next(filter(None, each), None)
            found += [] if one is None else [one]
    return found


def _as_of(
    parent: SourceProfile, source: SourceProfile, refers: Mapping[tuple[str, str], object]
) -> Relationship | None:
    """The likeliest join as of a time; None where no time of either side is fit, or few rows."""
    times = sorted(
        (c for c in _times(parent) if not set(_words(c, parent)) & OTHER_DATES),
        key=lambda c: -_event_rank(c, parent),
    )
    pairs = _key_pairs(parent, source, refers)
    for size, start in product((1, 2), _starts(source)):
        for pair in combinations(pairs, size) if times else ():
            together = scratch.combined([*(column.values for _, column, _ in pair), start.values])
            by_chance = start.is_unique and not all(is_named for *_, is_named in pair)
            if not by_chance and together.is_unique():
                return _judged(parent, times, source, pair, start)
    return None


_Pair = tuple[ColumnProfile, ColumnProfile, bool]
"""A column of each side with the same keys, and whether more than its name is evidence of that."""


def _key_pairs(
    parent: SourceProfile, source: SourceProfile, refers: Mapping[tuple[str, str], object]
) -> list[_Pair]:
    found: list[_Pair] = []
    for column, other in product(parent.columns, source.columns):
        are_keys = column.may_be_key and other.may_be_key and is_short(other)
        if not are_keys or column.type.family is not other.type.family or other.is_unique:
            continue
        target = refers.get((source.name, other.name))
        mine = (refers.get((parent.name, column.name)), (parent.name, (column.name,)))
        is_referring = target is not None and target in mine
        words = column_words(column.name, parent.prefix)
        likeness = key_likeness(
            column.name, parent.prefix, parent.name, other.name, source.prefix, source.name
        )
        if is_referring or (words.base and likeness >= SAME_NAME):
            found.append((column, other, is_referring or words.has_id or other.is_code))
    return sorted(found, key=lambda pair: (not pair[2], -pair[1].values.distinct))


def _times(profile: SourceProfile) -> list[ColumnProfile]:
    dates = (Family.DATE, Family.TIME)
    return [c for c in profile.columns if profile.type_of(c.name).family in dates]


def _starts(source: SourceProfile) -> list[ColumnProfile]:
    """Columns with the time from which a row holds, the likeliest first."""
    found = [
        column for column in _times(source)
        if not column.nulls and not set(_words(column, source)) & (OTHER_DATES - _FROM_WORDS)
    ]  # fmt: skip
    return sorted(found, key=lambda column: not set(_words(column, source)) & _FROM_WORDS)


def _judged(
    parent: SourceProfile,
    times: Sequence[ColumnProfile],
    source: SourceProfile,
    pair: Sequence[_Pair],
    start: ColumnProfile,
) -> Relationship | None:
    """The join, if enough rows find one."""
    keys = scratch.combined([column.values for _, column, _ in pair])
    held = scratch.combined([keys, start.values])
    until, note = _until(source, held)
    mine = scratch.combined([*(column.values for column, *_ in pair), times[0].values])
    end = "" if until is None else until.values.columns[0]
    share = scratch.rows_as_of(mine, held, end) / max(1, len(mine))
    if share < _LEAST_FOUND:
        return None
    given = {
        "parent_field": path_text((times[0].name,)), "child_field": path_text((start.name,)),
        **({} if until is None else {"child_until_field": path_text((until.name,))}),
    }  # fmt: skip
    columns = [column for column in (start, until) if column is not None]
    types = {times[0].type.data_type, *(column.type.data_type for column in columns)}
    if len(types) > 1 and any(each.timestamp is not None for each in types):
        given["time_zone"] = "UTC"
    rule = AsOf.model_validate(given)
    names = tuple(column.name for _, column, _ in pair)
    mean, beside = rows_per_key(source, keys, parent.rows)
    others = ", ".join(column.name for column in times[1:])
    evidence = (
        f"{100 * share:.1f} % of {len(mine):,} rows of {parent.name} ({mine.rows.basis}) find a "
        f"row of {source.name} by {', '.join(names)}, {rule.text}; ({', '.join(names)}, "
        f"{start.name}) is unique in {held.rows.basis}; {mean:,.1f} rows a key{note}"
        + (f"; other times of {parent.name}: {others}" if others else "")
    )
    return Relationship(
        child=parent.name,
        child_columns=tuple(column.name for column, *_ in pair),
        parent=source.name,
        parent_columns=names,
        included=scratch.Inclusion(share, len(mine), len(mine), mine.rows.basis),
        likeness=1.0,
        odds=0.0,
        is_one_to_one=False,
        rows_per_key=mean,
        rows_beside=beside,
        as_of=rule,
        as_of_evidence=evidence,
    )


def _until(source: SourceProfile, held: scratch.Values) -> tuple[ColumnProfile | None, str]:
    """The column with the ends of rows that do not overlap, and a remark where it is not fit."""
    for column in _times(source):
        if set(_words(column, source)) & _UNTIL_WORDS and column.rows > column.nulls:
            overlaps, follow, last_days = scratch.interval_ends(held, column.values.columns[0])
            if overlaps:
                return None, f"; without {column.name}: {overlaps:,} rows overlap the next one"
            if last_days > follow:
                return None, f"; without {column.name}, which has the last day of a row"
            return column, f"; no row overlaps the next one until {column.name}"
    return None, ""
