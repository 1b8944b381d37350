"""Keys of sources, and relationships between them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import prod

from snaploom.plugins.discovery.dates import Family
from snaploom.plugins.discovery.foundfiles import (
    DENSE_SHARE,
    DISTINCTIVE_VALUES,
    FEW_VALUES,
    INCLUDED_COMPOUND,
    INCLUDED_LIKE_NAME,
    INCLUDED_OTHER_NAME,
    INCLUDED_SAME_NAME,
    LIKE_NAME,
    LONGEST_KEY_TEXT,
    MOST_COLUMNS_COMBINED,
    MOST_KEY_COLUMNS,
    MOST_WEAK,
    SAME_NAME,
    SEQUENCE_START,
    WEAK_SHARE,
    WIDE_PARENT,
)
from snaploom.plugins.discovery.names import (
    GENERIC,
    NUMERIC,
    SELF_WORDS,
    column_words,
    key_likeness,
    names_a_person,
    table_likeness,
    table_words,
    words_of,
)
from snaploom.plugins.discovery.profiles import (
    ColumnProfile,
    ForeignKey,
    SourceProfile,
)
from snaploom.plugins.discovery.scratch import (
    Inclusion,
    Sketch,
    combined,
    inclusion,
    is_unique,
    sketch_of,
)

# Sets of columns by which rows of a source are distinguished, by the sample's rows.

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
    unique = [c for c in profile.columns if c.is_unique and c.may_be_key and _is_short(c)]
    order = {column.name: index for index, column in enumerate(profile.columns)}
    ranked = sorted(unique, key=lambda c: (-_rank(c, profile), order[c.name]))
    return tuple(Key((column.name,), column.rows) for column in ranked)


def _rank(column: ColumnProfile, profile: SourceProfile) -> int:
    if names_own_table(column, profile):
        return 3
    words = column_words(column.name, profile.prefix)
    is_first = column.name == profile.columns[0].name and column.type.family is Family.WHOLE
    return 2 if words.has_id or is_first else 0 if column.type.family is Family.WHOLE else 1


def names_own_table(column: ColumnProfile, profile: SourceProfile) -> bool:
    """Whether a column is called as the key of its own table: id, or customer_no of customers."""
    words = column_words(column.name, profile.prefix)
    if not words.base:
        return True
    return words.has_id and table_likeness(words.base, table_words(profile.name)) >= 0.5


def _is_short(column: ColumnProfile) -> bool:
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
        and _is_short(column)
        and not column.is_unique
        and not column.nulls
        and column.sketch.distinct > 1
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


def _is_unique_together(columns: tuple[ColumnProfile, ...], profile: SourceProfile) -> bool:
    if prod(column.sketch.distinct for column in columns) * profile.snapshots_read < len(
        profile.snapshot
    ):
        return False
    return is_unique(combined([column.sample for column in columns]), profile.snapshot)


def primary_key(profile: SourceProfile, compounds: tuple[Key, ...]) -> Key | None:
    """The key that is most likely meant; None where no set of columns is unique."""
    if profile.primary_key:
        return Key(profile.primary_key, profile.rows, is_declared=True)
    singles = single_keys(profile)
    if singles and _rank(profile.column(singles[0].columns[0]), profile) >= 1:
        return singles[0]
    identified = list(_of_identifiers(profile, compounds))
    return next(iter((*identified, *singles, *compounds)), None)


def _of_identifiers(profile: SourceProfile, keys: tuple[Key, ...]) -> Iterator[Key]:
    for key in keys:
        if any(column_words(name, profile.prefix).has_id for name in key.columns):
            yield key


# Relationships between sources: which columns of one are keys of another's rows, with evidence.

_MANY_NUMBERS = 20
"""Distinct numbers, scattered over a wide range, from which inclusion is no chance."""
_CODE_LENGTH = 4
"""Characters from which capitals and digits are a key of their own, as `SKU00017`."""
_OWN_KEY = 0.85
"""Likeness from which the key of a table is that of another one as well, which it extends."""
_PERSON_ROLE = 0.55
"""Likeness of a column that names a person's role to the table of persons, if there is one."""
_SIDE_COLUMN = 0.45
"""Factor of a name's likeness where the parent's column is unique, but not its key."""


@dataclass(frozen=True)
class Relationship:
    """Columns of one source that are a key of another one's rows."""

    child: str
    child_columns: tuple[str, ...]
    parent: str
    parent_columns: tuple[str, ...]
    included: Inclusion
    likeness: float
    """Of the names, 0 to 1."""
    score: float
    """By which relationships are ranked, 0 to 1."""
    is_one_to_one: bool
    """Whether the child's columns are unique as well."""
    rows_per_key: float
    """Rows of the child for each of its keys in one snapshot, on average."""
    declared_as: str = ""
    """Name of the foreign key by which a database declares it."""

    @property
    def evidence(self) -> str:
        """For people."""
        values = "combinations" if len(self.child_columns) > 1 else "values"
        names = (
            "same name"
            if self.likeness >= SAME_NAME
            else ("like name" if self.likeness >= LIKE_NAME else "other name")
        )
        many = "one row a key" if self.is_one_to_one else f"{self.rows_per_key:,.1f} rows a key"
        if self.declared_as:
            names = f"foreign key {self.declared_as}"
        return (
            f"{100 * self.included.share:.1f} % of {self.included.compared:,} {values} of "
            f"{self.child}.{_shown(self.child_columns)} are in "
            f"{self.parent}.{_shown(self.parent_columns)}; {names}; {many}; {self.included.basis}"
        )


def _shown(columns: Sequence[str]) -> str:
    return columns[0] if len(columns) == 1 else "(" + ", ".join(columns) + ")"


@dataclass(frozen=True)
class Relationships:
    """The relationships found."""

    declared: tuple[Relationship, ...]
    """Best first."""
    weak: tuple[Relationship, ...]
    """Candidates that only a person can decide, best first."""
    primary: Mapping[str, Key]
    """The key of each source that has one."""
    compound: Mapping[str, tuple[Key, ...]] = field(default_factory=dict)


def find_relationships(profiles: Sequence[SourceProfile]) -> Relationships:
    """The relationships between sources; the same for the same profiles in any order."""
    ordered = sorted(profiles, key=lambda profile: profile.name)
    by_name = {profile.name: profile for profile in ordered}
    compounds = {profile.name: compound_keys(profile) for profile in ordered}
    primary = {
        profile.name: key
        for profile in ordered
        if (key := primary_key(profile, compounds[profile.name])) is not None
    }
    strong: list[Relationship] = []
    weak: list[Relationship] = []
    for child in ordered:
        for parent in ordered:
            for found, is_strong in _candidates(child, parent, primary):
                (strong if is_strong else weak).append(found)
    known = [
        _of_foreign_key(child, key, by_name[key.parent], primary)
        for child in ordered
        for key in child.foreign_keys
    ]
    keyed = {(r.child, r.child_columns) for r in known}
    ends = {frozenset((r.child, r.parent)) for r in known if len(r.child_columns) > 1}
    singles = [
        r for r in _best(_one_direction(strong))
        if (r.child, r.child_columns) not in keyed
        and (r.parent, r.parent_columns, r.child, r.child_columns) not in {
            (k.child, k.child_columns, k.parent, k.parent_columns) for k in known
        }
    ]  # fmt: skip
    singles += [r for r in known if len(r.child_columns) == 1]
    several = [r for r in _compounds(ordered, compounds, singles, primary)
               if frozenset((r.child, r.parent)) not in ends]  # fmt: skip
    several += [r for r in known if len(r.child_columns) > 1]
    declared = sorted((*singles, *several), key=_order)
    taken = {(r.child, c) for r in declared for c in r.child_columns if len(r.child_columns) == 1}
    rest = [r for r in _best(_one_direction(weak)) if (r.child, r.child_columns[0]) not in taken]
    return Relationships(
        tuple(declared), tuple(sorted(rest, key=_order)[:MOST_WEAK]), primary, compounds
    )


def _order(found: Relationship) -> tuple[float, str, tuple[str, ...], str]:
    return -found.score, found.child, found.child_columns, found.parent


def _candidates(
    child: SourceProfile, parent: SourceProfile, primary: Mapping[str, Key]
) -> Iterator[tuple[Relationship, bool]]:
    """Relationships of single columns, and whether the evidence is strong."""
    main = primary.get(parent.name)
    for key in single_keys(parent):
        target = parent.column(key.columns[0])
        is_main = main is not None and main.columns == key.columns
        if target.sketch.distinct < 2 and not is_main:
            continue
        for column in child.columns:
            if not column.may_be_key or column.sketch.distinct == 0:
                continue
            if child is parent and (column is target or not is_main):
                continue
            found = _judge(child, column, parent, target, is_main)
            if found is not None:
                own = primary.get(child.name)
                is_key = own is not None and own.columns == (column.name,)
                yield replace(found[0], is_one_to_one=is_key), found[1]


def _judge(
    child: SourceProfile,
    column: ColumnProfile,
    parent: SourceProfile,
    target: ColumnProfile,
    is_main: bool,
) -> tuple[Relationship, bool] | None:
    likeness = _likeness(child, column, parent, target, is_main)
    if target.sketch.distinct < 2 and likeness < SAME_NAME:
        return None  # any value is the only one of some column
    if likeness < LIKE_NAME and not _is_distinctive(column, target, is_main):
        return None
    if likeness < _OWN_KEY and child is not parent and _names_own_table(child, column):
        return None
    if column.is_unique and child is not parent and _are_counters(child, column, parent, target):
        return None
    share = inclusion(column.sketch, target.sketch)
    if share.compared == 0:
        return None
    if target.rows < parent.rows:
        # Only a part of the parent was read: at most as much of the child can be found in it.
        share = replace(share, share=min(1.0, share.share * parent.rows / target.rows))
    limit = (
        INCLUDED_SAME_NAME
        if likeness >= SAME_NAME
        else INCLUDED_LIKE_NAME
        if likeness >= LIKE_NAME
        else INCLUDED_OTHER_NAME
    )
    home = table_likeness(
        column_words(column.name, child.prefix).base or table_words(child.name),
        table_words(parent.name),
    )
    found = Relationship(
        child=child.name,
        child_columns=(column.name,),
        parent=parent.name,
        parent_columns=(target.name,),
        included=share,
        likeness=round(likeness, 3),
        score=round(0.5 * likeness + 0.3 * share.share + 0.2 * home, 4),
        is_one_to_one=column.is_unique,
        rows_per_key=_rows_per_key(child, column.sample),
    )
    if share.share >= limit:
        return found, True
    is_weak = share.share >= WEAK_SHARE or (likeness >= SAME_NAME and share.share >= 0.3)
    return (found, False) if is_weak and likeness >= LIKE_NAME else None


def _rows_per_key(child: SourceProfile, keys: Sketch) -> float:
    """Rows for each key in one snapshot, on average; NULL is none."""
    return combined([keys, child.snapshot]).rows_per_key()


def _of_foreign_key(
    child: SourceProfile, key: ForeignKey, parent: SourceProfile, primary: Mapping[str, Key]
) -> Relationship:
    mine = [child.column(name) for name in key.columns]
    theirs = [parent.column(name) for name in key.parent_columns]
    keys = combined([column.sample for column in mine])
    if len(mine) == 1:
        share = inclusion(mine[0].sketch, theirs[0].sketch)
    else:
        others = combined([column.sample for column in theirs])
        share = inclusion(sketch_of(keys), sketch_of(others))
    own = primary.get(child.name)
    return Relationship(
        child=child.name,
        child_columns=key.columns,
        parent=parent.name,
        parent_columns=key.parent_columns,
        included=share,
        likeness=1.0,
        score=1.0,
        is_one_to_one=own is not None and set(own.columns) == set(key.columns),
        rows_per_key=_rows_per_key(child, keys),
        declared_as=key.name,
    )


def _are_counters(
    child: SourceProfile, column: ColumnProfile, parent: SourceProfile, target: ColumnProfile
) -> bool:
    """Whether both are keys that count rows, such as `ROW_ID`, and are named for no table."""
    if not (_is_sequence(column) and _is_sequence(target)):
        return False
    base = column_words(column.name, child.prefix).base
    return bool(base) and all(
        table_likeness(base, table_words(each.name)) < LIKE_NAME for each in (child, parent)
    )


def _is_sequence(column: ColumnProfile) -> bool:
    """Whether a column has the numbers from about 1 on, which are in every longer sequence."""
    low = column.low
    return low is not None and column.density >= DENSE_SHARE and low <= SEQUENCE_START


def _names_own_table(child: SourceProfile, column: ColumnProfile) -> bool:
    """Whether a column is the key that its own table is named for: invoice_id of invoices."""
    base = column_words(column.name, child.prefix).base
    own = table_words(child.name)  # with a schema in front, as in Production_ProductCategory
    return column.is_unique and (not base or table_likeness(base, own) >= _OWN_KEY)


def _likeness(
    child: SourceProfile,
    column: ColumnProfile,
    parent: SourceProfile,
    target: ColumnProfile,
    is_main: bool,
) -> float:
    words = column_words(column.name, child.prefix)
    if child is parent:
        # A row that refers to another one of its table: of a manager, of a parent category.
        is_reference = set(words.whole) & SELF_WORDS and column.type.family is target.type.family
        return 0.9 if is_reference else 0.0
    likeness = key_likeness(
        column.name, child.prefix, child.name, target.name, parent.prefix, parent.name
    )
    if column.type.family is Family.WHOLE and not words.has_id and words.base:
        # `order` and `line` are numbers of places as well, `rental_duration` is no rental.
        measure = words.base[-1] in NUMERIC and words.base[-1] not in table_words(parent.name)
        if measure or set(words.base) <= NUMERIC:
            likeness *= 0.4
    is_code = column.is_code and target.is_code and column.mean_length >= _CODE_LENGTH
    if not is_main and not is_code and not column_words(target.name, parent.prefix).has_id:
        likeness *= _SIDE_COLUMN  # cities of stores are unique, and no key of cities
    if likeness < LIKE_NAME and is_main and names_a_person(column.name, child.prefix, parent.name):
        return _PERSON_ROLE
    return likeness


def _is_distinctive(column: ColumnProfile, target: ColumnProfile, is_main: bool) -> bool:
    """Whether values could not be included by chance, so that names need not be alike."""
    if not is_main or column.type.family is not target.type.family:
        return False
    values, others = column.sketch.distinct, target.sketch.distinct
    if column.type.family is Family.TEXT:
        is_code = column.mean_length >= 2 and abs(column.mean_length - target.mean_length) <= 1.5
        enough = values >= DISTINCTIVE_VALUES or (
            values >= FEW_VALUES and others >= WIDE_PARENT * values
        )
        return is_code and enough and not column.is_unique
    return not _is_sequence(target) and target.density < 0.1 and values >= _MANY_NUMBERS


def _one_direction(found: Iterable[Relationship]) -> list[Relationship]:
    """Of two relationships between the same columns, the one whose parent is their home."""
    by_pair: dict[frozenset[tuple[str, tuple[str, ...]]], list[Relationship]] = defaultdict(list)
    for one in found:
        ends = frozenset([(one.child, one.child_columns), (one.parent, one.parent_columns)])
        by_pair[ends].append(one)
    return [
        min(ones, key=lambda r: (-r.score, -r.included.share, r.parent))
        for ones in by_pair.values()
    ]


def _best(found: Iterable[Relationship]) -> list[Relationship]:
    by_column: dict[tuple[str, tuple[str, ...]], list[Relationship]] = defaultdict(list)
    for one in found:
        by_column[one.child, one.child_columns].append(one)
    chosen: list[Relationship] = []
    for ones in by_column.values():
        ones.sort(key=_order)
        best = ones[0]
        rivals = [r for r in ones[1:] if r.parent != best.parent and r.likeness < LIKE_NAME]
        if best.likeness == _PERSON_ROLE:
            rivals = [r for r in ones[1:] if r.parent != best.parent and r.likeness == _PERSON_ROLE]
        elif best.likeness >= LIKE_NAME:
            rivals = []
        if rivals:
            continue  # values that several parents have are no evidence for one of them
        chosen.append(best)
    return chosen


def _compounds(
    profiles: Sequence[SourceProfile],
    compounds: Mapping[str, tuple[Key, ...]],
    singles: Sequence[Relationship],
    primary: Mapping[str, Key],
) -> list[Relationship]:
    joined = {(r.child, r.parent) for r in singles}
    found: list[Relationship] = []
    for parent in profiles:
        for child in profiles:
            if child is parent or {(child.name, parent.name), (parent.name, child.name)} & joined:
                continue
            ones = [
                one
                for key in compounds[parent.name]
                if (one := _compound(child, parent, key, primary.get(child.name))) is not None
            ]
            if ones:
                found.append(min(ones, key=lambda r: (len(r.child_columns), *_order(r))))
    by_pair: dict[frozenset[str], list[Relationship]] = defaultdict(list)
    for one in found:
        by_pair[frozenset([one.child, one.parent])].append(one)
    return [
        min(
            ones, key=lambda r: (len(r.child_columns), -r.included.share, r.is_one_to_one, r.parent)
        )
        for ones in by_pair.values()
    ]


def _compound(
    child: SourceProfile, parent: SourceProfile, key: Key, own: Key | None
) -> Relationship | None:
    targets = [parent.column(name) for name in key.columns]
    chosen: list[ColumnProfile] = []
    likeness = 1.0
    for target in targets:
        best = max(
            (c for c in child.columns if c.type.family is target.type.family and c not in chosen),
            key=lambda c: (_alike(child, c, parent, target), c.name),
            default=None,
        )
        if best is None or (alike := _alike(child, best, parent, target)) < SAME_NAME:
            return None
        chosen.append(best)
        likeness = min(likeness, alike)
    if all(set(column_words(c.name, child.prefix).whole) <= GENERIC for c in chosen):
        return None
    mine = combined([c.sample for c in chosen])
    share = inclusion(sketch_of(mine), sketch_of(combined([t.sample for t in targets])))
    adjusted = share.share
    if len(parent.snapshot) < parent.rows:
        adjusted = min(1.0, share.share * parent.rows / max(1, len(parent.snapshot)))
    if share.compared == 0 or adjusted < INCLUDED_COMPOUND:
        return None
    return Relationship(
        child=child.name,
        child_columns=tuple(c.name for c in chosen),
        parent=parent.name,
        parent_columns=key.columns,
        included=replace(share, share=adjusted),
        likeness=round(likeness, 3),
        score=round(0.5 * likeness + 0.3 * adjusted + 0.1, 4),
        is_one_to_one=own is not None and set(own.columns) == {c.name for c in chosen},
        rows_per_key=_rows_per_key(child, mine),
    )


def _alike(
    child: SourceProfile, column: ColumnProfile, parent: SourceProfile, target: ColumnProfile
) -> float:
    """Likeness of two columns of a compound key, whose names stand for themselves."""
    if words_of(column.name) == words_of(target.name):
        return 1.0
    mine = column_words(column.name, child.prefix)
    theirs = column_words(target.name, parent.prefix)
    if mine.whole == theirs.whole:
        return 1.0
    if mine.base and mine.base == theirs.base and mine.has_id and theirs.has_id:
        return 0.95
    return 0.0
