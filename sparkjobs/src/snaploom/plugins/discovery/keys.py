"""Keys of sources: sets of columns by which the rows of a snapshot are distinguished."""

from dataclasses import dataclass
from itertools import combinations
from math import prod

from snaploom.plugins.discovery.dates import Family
from snaploom.plugins.discovery.foundfiles import (
    DENSE_SHARE,
    INCLUDED_OTHER_NAME,
    LIKE_NAME,
    LONGEST_KEY_TEXT,
    MOST_COLUMNS_COMBINED,
    MOST_KEY_COLUMNS,
    SEQUENCE_START,
)
from snaploom.plugins.discovery.names import (
    column_words,
    key_likeness,
    table_likeness,
    table_words,
)
from snaploom.plugins.discovery.profiles import ColumnProfile, SourceProfile
from snaploom.plugins.discovery.scratch import combined, inclusion, is_unique

NAMED = 0.95
"""Likeness from which a name is that of a table, a role beside it included."""
MANY_NUMBERS = 20
"""Distinct numbers, scattered over a wide range, from which inclusion is no chance."""
FEWEST_ROWS = 8
"""Rows below which sets of several columns are unique by chance."""


@dataclass(frozen=True)
class Key:
    """Columns of which no two rows of a snapshot have the same values."""

    columns: tuple[str, ...]
    rows: int
    """In which that was seen."""
    is_declared: bool = False
    """Whether a database makes sure of it."""


def single_keys(profile: SourceProfile) -> tuple[Key, ...]:
    """Columns that are unique by themselves, the one that is most likely meant as key first."""
    unique = [c for c in profile.columns if c.is_unique and c.may_be_key and is_short(c)]
    order = {column.name: index for index, column in enumerate(profile.columns)}
    ranked = sorted(unique, key=lambda c: (-_rank(c, profile), order[c.name]))
    return tuple(Key((column.name,), column.rows) for column in ranked)


def _rank(column: ColumnProfile, profile: SourceProfile) -> int:
    if names_own_table(column, profile):
        return 3
    words = column_words(column.name, profile.prefix)
    is_first = column.name == profile.columns[0].name and column.type.family is Family.WHOLE
    return 2 if words.has_id or is_first else 0 if column.type.family is Family.WHOLE else 1


def names_own_table(
    column: ColumnProfile, profile: SourceProfile, *, is_plain: bool = False
) -> bool:
    """Whether a column is called as the key of its own table: id, or customer_no of customers.

    `is_plain` is whether no word for a key is needed: channel of channels.
    """
    words = column_words(column.name, profile.prefix)
    if not words.base:
        return True
    likeness = table_likeness(words.base, table_words(profile.name))
    return likeness >= 0.8 if is_plain else words.has_id and likeness >= 0.5


def is_short(column: ColumnProfile) -> bool:
    """Whether its texts are no descriptions."""
    return column.mean_length <= LONGEST_KEY_TEXT


def compound_keys(profile: SourceProfile) -> tuple[Key, ...]:
    """Sets of several columns of which no smaller set is unique, smaller ones first."""
    rows = len(profile.snapshot)
    if rows < FEWEST_ROWS:
        return ()
    columns = [
        column
        for column in profile.columns
        if column.type.family is not Family.OTHER
        and is_short(column)
        and not column.is_unique
        and not column.nulls
        and column.values.distinct > 1
    ]
    columns.sort(key=lambda c: not column_words(c.name, profile.prefix).has_id)
    found: list[Key] = []
    for size in range(2, MOST_KEY_COLUMNS + 1):
        for chosen in combinations(columns[:MOST_COLUMNS_COMBINED], size):
            names = {column.name for column in chosen}
            if any(names.issuperset(key.columns) for key in found):
                continue
            if _is_unique_together(chosen, profile):
                found.append(Key(tuple(column.name for column in chosen), rows))
    return tuple(found)


def is_sequence(column: ColumnProfile) -> bool:
    """Whether a column has the numbers from about 1 on, which are in every longer sequence."""
    low = column.low
    return low is not None and column.density >= DENSE_SHARE and low <= SEQUENCE_START


def _is_unique_together(columns: tuple[ColumnProfile, ...], profile: SourceProfile) -> bool:
    if prod(column.values.distinct for column in columns) * profile.snapshots_read < len(
        profile.snapshot
    ):
        return False
    return is_unique(combined([column.values for column in columns]), profile.snapshot)


def primary_key(profile: SourceProfile, compounds: tuple[Key, ...]) -> Key | None:
    """The key that is most likely meant; None where no set of columns is unique."""
    if profile.primary_key:
        return Key(profile.primary_key, profile.rows, is_declared=True)
    singles = single_keys(profile)
    if singles and _rank(profile.column(singles[0].columns[0]), profile) >= 1:
        return singles[0]
    identified = (
        key for key in compounds
        if any(column_words(name, profile.prefix).has_id for name in key.columns)
    )  # fmt: skip
    return next(iter((*identified, *singles, *compounds)), None)


def other_meant(
    child: SourceProfile, column: ColumnProfile, parent: SourceProfile, target: ColumnProfile
) -> str:
    """The column of a parent that a reference may mean as well: the customer_id of its versions.

    It identifies what the parent is called for, in several rows each.
    """
    table = table_words(parent.name)
    return next(
        (
            other.name for other in parent.columns
            if child is not parent and other is not target and not other.is_unique
            and other.may_be_key and (words := column_words(other.name, parent.prefix)).has_id
            and table_likeness(words.base, table) >= NAMED
            and key_likeness(column.name, child.prefix, child.name, other.name, parent.prefix,
                             parent.name) >= LIKE_NAME
        ),
        "",
    )  # fmt: skip


def are_same_rows(
    child: SourceProfile, column: ColumnProfile, parent: SourceProfile, target: ColumnProfile
) -> bool:
    """Whether a plain key has the same name beside it in both: id and name of foods and items."""
    if (
        child is parent
        or not column.is_unique
        or column.name.casefold() != target.name.casefold()
        or column_words(column.name, child.prefix).base
    ):
        return False
    theirs = {c.name.casefold(): c for c in parent.columns if c.type.family is Family.TEXT}
    pairs = (
        inclusion(
            combined([column.values, each.values]),
            combined([target.values, theirs[each.name.casefold()].values]),
        )
        for each in child.columns
        if each.is_unique and each.type.family is Family.TEXT and each.name.casefold() in theirs
        and each is not column and is_short(each)
    )  # fmt: skip
    return any(
        pair.compared >= MANY_NUMBERS and pair.share >= INCLUDED_OTHER_NAME for pair in pairs
    )
