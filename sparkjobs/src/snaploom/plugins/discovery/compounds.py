"""Relationships by several columns, those that databases declare, and columns that no key joins."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, permutations, product

from snaploom.plugins.discovery import foundfiles, names
from snaploom.plugins.discovery.dates import Family
from snaploom.plugins.discovery.foundfiles import INCLUDED_COMPOUND, SAME_NAME
from snaploom.plugins.discovery.keys import Key, is_short, names_own_table, only_numbers
from snaploom.plugins.discovery.profiles import ColumnProfile, ForeignKey, SourceProfile
from snaploom.plugins.discovery.relationships import (
    MOST_REPEATED,
    Relationship,
    is_copy,
    normalized_share,
    repeated,
    rows_per_key,
    shown_columns,
)
from snaploom.plugins.discovery.scratch import combined, inclusion

_Column = tuple[str, str]
"""A source, and a column of it."""
_ROLE = 0.85
"""Likeness of a column that has a word beside the name of a key, as `team_id_winner`."""
_OF_LISTS = frozenset({"line", "position", "pos", "sequence", "seq", "row", "zeile"})
"""Words of numbers that count the rows of a list."""
_MOST_ROLES = 6
"""Combinations of columns that may refer to one key."""
_CERTAIN = 20.0
"""Odds of what a database declares."""


def compound_relationships(
    profiles: Sequence[SourceProfile],
    compounds: Mapping[str, tuple[Key, ...]],
    singles: Sequence[Relationship],
    primary: Mapping[str, Key],
) -> list[Relationship]:
    """Relationships by several columns, between sources that no single one joins."""
    joined = {(r.child, r.parent) for r in singles}
    leads = dict(ends for single in singles for ends in _pairs(single))
    known = {*leads, *leads.values()}
    found: list[Relationship] = []
    for parent in profiles:
        for child in profiles:
            pair = {(child.name, parent.name), (parent.name, child.name)}
            if child is parent or pair & joined:
                continue
            own = {column.name for column in child.columns}
            ones = [
                one
                for key in compounds[parent.name]
                if _is_key(key, parent, known)
                and not (own.issuperset(key.columns) and is_copy(child, parent))
                for one in _compounds(child, parent, key, primary.get(child.name))
                if not any(_are_of_two(ends, leads) for ends in _pairs(one))
            ]
            if ones:
                best = min(ones, key=lambda r: (len(r.child_columns), *r.order))
                found += [one for one in ones if one.parent_columns == best.parent_columns]
    by_pair: dict[frozenset[str], list[Relationship]] = defaultdict(list)
    for one in found:
        by_pair[frozenset([one.child, one.parent])].append(one)
    clear: list[Relationship] = []
    for ones in by_pair.values():
        best = min(
            ones, key=lambda r: (len(r.child_columns), -r.included.share, r.is_one_to_one, r.parent)
        )
        clear += [one for one in ones if one.parent == best.parent]
    return clear


def _pairs(one: Relationship) -> Iterator[tuple[_Column, _Column]]:
    for mine, theirs in zip(one.child_columns, one.parent_columns, strict=True):
        yield (one.child, mine), (one.parent, theirs)


def _are_of_two(ends: tuple[_Column, _Column], leads: Mapping[_Column, _Column]) -> bool:
    """Whether two columns refer, by way of others or at once, to keys that are not the same."""
    arrived = list(ends)
    for place, column in enumerate(ends):
        passed = set[_Column]()
        while column in leads and column not in passed:
            passed.add(column)
            column = leads[column]
        arrived[place] = column
    return arrived[0] != arrived[1] and not {*arrived} & {*ends}


def _is_key(key: Key, profile: SourceProfile, known: Collection[tuple[str, str]]) -> bool:
    """Whether columns may be meant as a key: none is a flag, or a number of something."""
    return all(
        column.type.family is not Family.WHOLE
        or (profile.name, column.name) in known
        or (words := names.column_words(column.name, profile.prefix)).has_id
        or not names.ORDINALS.isdisjoint(words.whole)
        or names_own_table(column, profile, is_plain=True)
        for column in map(profile.column, key.columns)
    )


def doubt_about(
    one: Relationship,
    child: SourceProfile,
    parent: SourceProfile,
    main: Key | None,
    *,
    all_refer: bool,
) -> str:
    """Reason for which columns may be no key of an entity; empty without any.

    `main` is the key of the parent that is likeliest meant; `all_refer` is whether each of the
    child's columns refers to something by itself.
    """
    for name in (one.child, one.parent):
        if not names.AGGREGATED.isdisjoint(names.words_of(name)):
            return f"{name} may have sums of other sources"
    measures = only_numbers(parent, one.parent_columns)
    if one.used == 1.0 and not measures.isdisjoint(column.name for column in child.columns):
        return f"{one.parent} may have sums of {one.child}"
    if not all_refer:
        counted = counted_by(one, child)
        return f"{counted} counts the rows of {one.child} itself" if counted else ""
    if main is not None and len(main.columns) == 1:
        return f"{parent.name} has a key of its own"
    return f"{parent.name} has only numbers beside it, and may have sums" if measures else ""


def is_period(column: ColumnProfile) -> bool:
    """Whether a column has dates, or is called as a part of the calendar: facts share these."""
    is_named = not (names.ORDINALS - _OF_LISTS).isdisjoint(names.words_of(column.name))
    return is_named or column.type.family in (Family.DATE, Family.TIME)


def counted_by(one: Relationship, child: SourceProfile, *, is_once: bool = True) -> str:
    """The column that numbers the rows of a list, each of the other columns' values one.

    One list in ten may have gaps, and equal places; without `is_once` all may have equal ones, as
    the groups of a tournament.
    """
    columns = [child.column(name) for name in one.child_columns]
    keys = combined([column.values for column in columns])
    for place, column in enumerate(columns):
        words = names.column_words(column.name, child.prefix)
        if column.type.family is Family.WHOLE and not _OF_LISTS.isdisjoint(words.whole):
            owners = ", ".join(f"k{n}" for n in range(len(columns)) if n != place)
            again = " OR max(n) > 1" if is_once else ""
            has_gaps = keys.rows.scratch.number(
                f"SELECT CAST(10 * count_if(gap) > count(*) AS INTEGER) FROM (SELECT min(k{place}) "
                f"NOT IN (0, 1) OR max(k{place}) - min(k{place}) >= count(*){again} AS gap "
                f"FROM {keys.keys} GROUP BY {owners})"
            )
            if not has_gaps:
                return column.name
    return ""


def _compounds(
    child: SourceProfile, parent: SourceProfile, key: Key, own: Key | None
) -> Iterator[Relationship]:
    """Relationships to one key: several, where columns of the child name it in several roles."""
    targets = [parent.column(name) for name in key.columns]
    options: list[list[tuple[float, ColumnProfile]]] = []
    for target in targets:
        alike = [
            (_alike(child, column, parent, target), column)
            for column in child.columns
            if column.type.family is target.type.family
            or {column.type.family, target.type.family} == {Family.TEXT, Family.WHOLE}
        ]
        most = max((likeness for likeness, _ in alike), default=0.0)
        options.append([each for each in alike if each[0] == most >= SAME_NAME])
    for chosen in islice(product(*options), _MOST_ROLES):
        columns = [column for _, column in chosen]
        is_generic = all(
            set(names.column_words(c.name, child.prefix).whole) <= names.GENERIC for c in columns
        )
        roles = {_role(child, c, parent, t) for c, t in zip(columns, targets, strict=True)} - {()}
        is_one = len({column.name for column in columns}) == len(columns) and len(roles) < 2
        if is_one and not is_generic:
            likeness = min(each for each, _ in chosen)
            one = _compound(child, columns, likeness, parent, targets, own)
            if one is not None:
                yield one


def _compound(
    child: SourceProfile,
    chosen: Sequence[ColumnProfile],
    likeness: float,
    parent: SourceProfile,
    targets: Sequence[ColumnProfile],
    own: Key | None,
) -> Relationship | None:
    mine = combined([c.values for c in chosen])
    theirs = combined([t.values for t in targets])
    written = inclusion(mine, theirs)
    has_text = any(each.type.family is Family.TEXT for each in (*chosen, *targets))
    share, steps = normalized_share(mine, theirs, written) if has_text else (written, ())
    adjusted = share.share
    if len(parent.snapshot) < parent.rows:
        adjusted = min(1.0, share.share * parent.rows / max(1, len(parent.snapshot)))
    is_mixed = any(c.type.family is not t.type.family for c, t in zip(chosen, targets, strict=True))
    if share.compared == 0 or adjusted < INCLUDED_COMPOUND or (is_mixed and not steps):
        return None
    mean, beside = rows_per_key(child, mine, parent.rows)
    return Relationship(
        child=child.name,
        child_columns=tuple(c.name for c in chosen),
        parent=parent.name,
        parent_columns=tuple(t.name for t in targets),
        included=replace(share, share=adjusted),
        likeness=round(likeness, 3),
        odds=round(10 * (likeness - 0.75) + 5 * (adjusted - 0.9) + 2, 4),
        is_one_to_one=own is not None and set(own.columns) == {c.name for c in chosen},
        rows_per_key=mean,
        rows_beside=beside,
        used=min(1.0, share.share * mine.distinct / max(1, theirs.distinct)),
        normalize=steps,
        as_written=written.share,
    )


def _role(
    child: SourceProfile, column: ColumnProfile, parent: SourceProfile, target: ColumnProfile
) -> tuple[str, ...]:
    """The words of a column that the key does not have: old of `old_site_id`."""
    theirs = names.column_words(target.name, parent.prefix).whole
    return tuple(w for w in names.column_words(column.name, child.prefix).whole if w not in theirs)


def _alike(
    child: SourceProfile, column: ColumnProfile, parent: SourceProfile, target: ColumnProfile
) -> float:
    """Likeness of two columns of a compound key, whose names stand for themselves."""
    if names.is_made_up(target.name):
        return 0.0
    if names.words_of(column.name) == names.words_of(target.name):
        return SAME_NAME if names.words_of(target.name) == ("name",) else 1.0
    mine = names.column_words(column.name, child.prefix)
    theirs = names.column_words(target.name, parent.prefix)
    if mine.whole == theirs.whole:
        return 1.0
    if mine.base and mine.base == theirs.base and mine.has_id and theirs.has_id:
        return 0.95
    table = names.table_words(parent.name)
    if mine.has_id and theirs.has_id and mine.base == table:
        return _ROLE  # state_code beside the iso_code of a state
    if theirs.whole == ("name",) and [*map(names.stem, mine.base)] == [*map(names.stem, table)]:
        return _ROLE  # a state beside the name of states
    is_role = mine.base[-len(theirs.base) :] == theirs.base
    # A team_id_winner is a team, and an item_group_id no item.
    is_role |= mine.whole[: len(theirs.whole)] == theirs.whole
    return _ROLE if theirs.base and theirs.has_id and mine.has_id and is_role else 0.0


def of_foreign_key(
    child: SourceProfile, key: ForeignKey, parent: SourceProfile, primary: Mapping[str, Key]
) -> Relationship:
    """The relationship that a database declares by a foreign key."""
    mine = [child.column(name) for name in key.columns]
    theirs = [parent.column(name) for name in key.parent_columns]
    keys, others = (combined([column.values for column in each]) for each in (mine, theirs))
    share = inclusion(keys, others)
    own = primary.get(child.name)
    mean, beside = rows_per_key(child, keys, parent.rows)
    return Relationship(
        child=child.name,
        child_columns=key.columns,
        parent=parent.name,
        parent_columns=key.parent_columns,
        included=share,
        likeness=1.0,
        odds=_CERTAIN,
        is_one_to_one=own is not None and set(own.columns) == set(key.columns),
        rows_per_key=mean,
        rows_beside=beside,
        used=min(1.0, share.share * keys.distinct / max(1, others.distinct)),
        declared_as=key.name,
    )


# Columns of one name that are a key on neither side.


def almost_keys(
    profiles: Sequence[SourceProfile], joined: set[frozenset[str]]
) -> Iterator[foundfiles.LeftOut]:
    """Columns that two sources have in common, and that few rows keep from being a key of one."""
    for child, parent in permutations(profiles, 2):
        mine = {c.name.casefold(): c.values for c in child.columns
                if is_short(c) and not names.is_about_change(c.name)}  # fmt: skip
        same = [c for c in parent.columns if c.name.casefold() in mine and not c.nulls]
        few = 2 <= len(same) <= foundfiles.MOST_KEY_COLUMNS and not any(c.is_unique for c in same)
        if not few or {child.name, parent.name} in joined or is_copy(child, parent):
            continue
        keys = combined([c.values for c in same])
        rows = combined([keys, parent.snapshot])
        if rows.is_unique() or rows.distinct < (1 - MOST_REPEATED) * len(rows):
            continue
        refers = combined([mine[c.name.casefold()] for c in same])
        if inclusion(refers, keys).share >= foundfiles.INCLUDED_OTHER_NAME:
            shown = shown_columns([c.name for c in same])
            what = f"{child.name}.{shown} -> {parent.name}.{shown}"
            yield foundfiles.LeftOut(what, repeated(parent, same))


def many_to_many(
    profiles: Sequence[SourceProfile],
    known: set[tuple[str, tuple[str, ...]]],
    joined: set[frozenset[str]],
) -> Iterator[foundfiles.LeftOut]:
    """Columns that refer to nothing and meet each other, in sources that nothing joins."""
    by_name: dict[tuple[str, ...], list[tuple[SourceProfile, ColumnProfile]]] = defaultdict(list)
    for profile in profiles:
        for column in profile.columns:
            words = names.column_words(column.name, profile.prefix)
            words = words if words.base else names.column_words(column.name)
            is_named = bool(words.base) and (words.has_id or column.is_code)
            if is_named and column.may_be_key and column.values.distinct >= foundfiles.FEW_VALUES:
                by_name[words.whole].append((profile, column))
    for ones in by_name.values():
        rest = [
            (source, column)
            for source, column in ones
            if not column.is_unique and (source.name, (column.name,)) not in known
        ]
        rest.sort(key=lambda one: -one[1].values.distinct)
        alike = [
            one for one in rest[1:]
            if inclusion(one[1].values, rest[0][1].values).share >= foundfiles.INCLUDED_SAME_NAME
            and frozenset((one[0].name, rest[0][0].name)) not in joined
        ]  # fmt: skip
        if alike:
            shown = sorted(f"{source.name}.{column.name}" for source, column in (rest[0], *alike))
            yield foundfiles.LeftOut(
                " and ".join(shown[:4]) + (" and others" if len(shown) > 4 else ""),
                "the same name and values, but on both sides values in several rows, or rows "
                "without one, so that no key joins them; group one of them in a virtual source, or "
                f"add a source with one row for each {rest[0][1].name}",
            )
