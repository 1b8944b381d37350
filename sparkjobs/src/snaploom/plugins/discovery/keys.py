"""Keys of sources: sets of columns by which the rows of a snapshot are distinguished.

Beside them, how alike the names of a key are and of a column that may refer to it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod

from snaploom.plugins.discovery.dates import Family
from snaploom.plugins.discovery.foundfiles import (
    DENSE_SHARE,
    DISTINCTIVE_VALUES,
    FEW_VALUES,
    INCLUDED_OTHER_NAME,
    LIKE_NAME,
    LONGEST_KEY_TEXT,
    MOST_COLUMNS_COMBINED,
    MOST_KEY_COLUMNS,
    SAME_NAME,
    SEQUENCE_START,
    WIDE_PARENT,
)
from snaploom.plugins.discovery.names import (
    AGGREGATED,
    COUNTERS,
    DAYS,
    GENERIC,
    GIVEN,
    ID_WORDS,
    NUMERIC,
    ORDINALS,
    PERSON_ROLES,
    ROLES,
    SELF_WORDS,
    column_words,
    is_about_change,
    is_plural,
    is_table_of_persons,
    key_likeness,
    names_a_person,
    names_more,
    stem,
    table_likeness,
    table_words,
    word_likeness,
    words_of,
)
from snaploom.plugins.discovery.profiles import ColumnProfile, SourceProfile
from snaploom.plugins.discovery.scratch import combined, inclusion, is_unique

FEWEST_ROWS = 8
"""Rows below which sets of several columns are unique by chance."""
PERSON_ROLE = 0.55
"""Likeness of a column that names a person's role to the table of persons, if there is one."""
_SIDE_COLUMN = 0.45
"""Factor of a name's likeness where the parent's column is unique, but not its key."""
_IN_ROLE = 0.95
"""Factor of the likeness of a name without its role, which other columns have in other roles."""
_MAYBE_ROLE = 0.6
"""Likeness of a number without a word for a key, in what may be a role: no more than a guess."""
_SELF_ROLE = 0.69
"""Likeness of a column that names its own table, in no role of those that refer to it: a guess.
So is one that names days and refers to a calendar, and one whose role may be another noun."""
_OTHER_WORD = 0.9
NAMED = 0.95
"""Likeness from which a name is that of a table, a role beside it included."""
_CODE_LENGTH = 4
"""Characters from which capitals and digits are a key of their own, as `SKU00017`."""
_PARTS_OF_DATES = frozenset({
    "year", "quarter", "month", "week", "weekday", "holiday", "jahr", "quartal", "monat", "woche",
    "wochentag", "feiertag", "qtr",
})  # fmt: skip
_CALENDARS = frozenset(map(stem, DAYS | {"calendar", "kalender", "calendario", "calendrier"}))
_ALL_ROLES = ROLES | PERSON_ROLES | SELF_WORDS
MANY_NUMBERS = 20
"""Distinct numbers, scattered over a wide range, from which inclusion is no chance."""
MISSING, _MOST_MISSING = 0.2, 0.9
"""Shares of the numbers in its range that a key lacks, from which a column of other numbers would
have some of these: one that is called as a key, and any."""
_APART = 1000
"""Times that the least key is the extent of all, from which other numbers are elsewhere."""
_LONG = 8
"""Characters of texts, on average, of which that many are no chance, as are full names."""
_MANY_TEXTS = 100
"""Distinct texts from which inclusion is no chance, though some keys are longer than others."""


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
    is_called = names_own_table(column, profile, is_plain=True)
    if is_called or column_words(column.name, profile.prefix).has_id:
        return 2
    is_first = column.name == profile.columns[0].name and column.type.family is Family.WHOLE
    return 1 if is_first or column.type.family is not Family.WHOLE else 0


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
    """Whether its numbers are in others as well: they begin at about 1, or where other keys do."""
    starts_low = column.low is not None and column.low <= SEQUENCE_START
    return column.density >= DENSE_SHARE and (starts_low or column.is_in_shared_range)


def begins_as_sequence(column: ColumnProfile) -> bool:
    """Whether at least the lower half of its numbers are in others as well."""
    is_low = column.low is not None and column.low <= SEQUENCE_START
    return is_sequence(column) or (is_low and column.first_density >= DENSE_SHARE)


def is_by_chance(column: ColumnProfile, target: ColumnProfile) -> bool:
    """Whether numbers of any column may be among a key's, as it has few gaps."""
    return begins_as_sequence(target) and not _shares_gaps(column, target)


def _shares_gaps(column: ColumnProfile, target: ColumnProfile) -> bool:
    """Whether numbers are all among a key's, though it lacks so many that some would be others."""
    if column.low is None or column.high is None or target.low is None or target.high is None:
        return False
    values, extent = column.values.distinct, range(target.low, target.high + 1)
    are_read = column.values.rows.asked is None  # else its database may have others in between
    if values < MANY_NUMBERS / 2 or (
        are_read and not (column.low in extent and column.high in extent)
    ):
        return False  # before DuckDB is asked, which nearly every pair of columns would be
    gaps = 1 - target.values.share_between(column.low, column.high)
    is_proof = values * gaps >= MANY_NUMBERS / 2
    return is_proof and inclusion(column.values, target.values).share == 1


def with_shared_ranges(profiles: Sequence[SourceProfile]) -> tuple[SourceProfile, ...]:
    """Profiles whose columns know whether a key of another source has their range of numbers."""
    ranges = [
        (profile.name, range(column.low, column.high + 1))
        for profile in profiles for column in profile.columns
        if column.is_unique and column.density >= DENSE_SHARE
        and column.low is not None and column.high is not None
    ]  # fmt: skip

    def is_shared(own: str, low: int | None, high: int | None) -> bool:
        return low is not None and high is not None and any(
            low in each or (low + high) // 2 in each for name, each in ranges if name != own
        )  # fmt: skip

    return tuple(
        replace(own, columns=tuple(
            replace(c, is_in_shared_range=is_shared(own.name, c.low, c.high)) for c in own.columns
        )) for own in profiles
    )  # fmt: skip


def is_distinctive(column: ColumnProfile, target: ColumnProfile, is_main: bool) -> bool:
    """Whether values could not be included by chance, so that names need not be alike."""
    is_same = column.name.casefold() == target.name.casefold()
    is_called_key = column_words(column.name).has_id and not column.is_unique
    if is_sequence(target) and not is_by_chance(column, target):
        return is_same or (is_called_key and is_main)  # tid and tid, with the same gaps
    if not is_main or column.type.family is not target.type.family:
        return False
    values = column.values.distinct
    if column.is_guid and target.is_guid:
        return True
    if column.type.family is Family.TEXT:
        is_own = column.is_unique and (column.is_code or not is_same)
        return _are_distinctive_texts(column, target) and not is_own
    if values < MANY_NUMBERS or column.low is None or column.high is None:
        return False
    extents = {(each.low, each.high, each.values.distinct) for each in (column, target)}
    if is_same and len(extents) == 1 and column.low > SEQUENCE_START:
        return True  # the years of races are those of seasons, all of them
    if is_sequence(target):
        return False
    extent = target.values.distinct / (target.density or 1)
    if is_called_key and (target.low or 0) >= _APART * extent:
        return True  # accounts from 10000000 on, where no other key is
    missing = 1 - target.values.share_between(column.low, column.high)
    least = MISSING if is_called_key else _MOST_MISSING
    return missing >= least and values * missing >= MANY_NUMBERS / 2


def _are_distinctive_texts(column: ColumnProfile, target: ColumnProfile) -> bool:
    values, others = column.values.distinct, target.values.distinct
    many = MANY_NUMBERS if column.mean_length >= _LONG else _MANY_TEXTS
    are_codes = values >= many or (
        column.mean_length >= 2 and abs(column.mean_length - target.mean_length) <= 1.5
    )
    are_enough = values >= FEW_VALUES and others >= WIDE_PARENT * values
    return are_codes and (values >= DISTINCTIVE_VALUES or are_enough)


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
    days = next((Key((c.name,), c.rows) for c in profile.columns if lists_days(profile, c)), None)
    least = 1 if days is None else 2
    if singles and _rank(profile.column(singles[0].columns[0]), profile) >= least:
        return singles[0]
    if days is not None:
        return days
    identified = (
        key for key in compounds
        if any(column_words(name, profile.prefix).has_id for name in key.columns)
    )  # fmt: skip
    return next(iter((*identified, *singles, *compounds)), None)


def only_numbers(parent: SourceProfile, key: Collection[str]) -> frozenset[str]:
    """The columns of a source beside a key, where all are numbers of something, as sums are."""
    rest = [column for column in parent.columns if column.name not in key]
    are_numbers = all(
        column.type.family in (Family.WHOLE, Family.OTHER)
        and not column_words(column.name, parent.prefix).has_id
        for column in rest
    )
    return frozenset(column.name for column in rest if are_numbers)


def is_main_key(parent: SourceProfile, target: ColumnProfile, primary: Mapping[str, Key]) -> bool:
    """Whether a column is the key that its source is known by."""
    main = primary.get(parent.name)
    return main is not None and main.columns == (target.name,)


def likeness_to(
    child: SourceProfile,
    column: ColumnProfile,
    parent: SourceProfile,
    target: ColumnProfile,
    primary: Mapping[str, Key],
) -> float:
    """Likeness, from 0 to 1, of a column's name to that of a reference to a key."""
    if target.type.family in (Family.DATE, Family.TIME):
        return _likeness_to_days(child, column, parent, target)
    if is_main_key(parent, target, primary) and are_same_rows(child, column, parent, target):
        return NAMED
    likeness = _likeness_as(column.name, child, column, parent, target, primary)
    if child is not parent and is_main_key(parent, target, primary):
        likeness = max(likeness, _likeness_as_guess(column, child, parent))
    noun, is_known = child.nouns.get(column.name, ("", False))
    if not noun or likeness >= SAME_NAME or column.is_unique or _is_of_other(noun, child, parent):
        return likeness
    in_role = _IN_ROLE * _likeness_as(noun, child, column, parent, target, primary)
    has_id = column_words(column.name, child.prefix).has_id
    # A number may as well be of what is called so: unit_sales beside store_sales.
    is_sure = is_known or has_id or column.type.family is not Family.WHOLE
    return max(likeness, in_role if is_sure else min(in_role, _MAYBE_ROLE))


def _likeness_to_days(
    child: SourceProfile, column: ColumnProfile, parent: SourceProfile, target: ColumnProfile
) -> float:
    """Likeness of a column of dates to the days of a list, of which any may be there: a guess."""
    are_days = lists_days(parent, target) and column.type == target.type and child is not parent
    if not are_days or is_about_change(column.name):
        return 0.0
    is_same = words_of(column.name) == words_of(target.name)
    return _SELF_ROLE if is_same else LIKE_NAME if is_calendar(parent) else 0.0


def lists_days(parent: SourceProfile, target: ColumnProfile) -> bool:
    """Whether each snapshot of a source has one row for each of many days, and no key in front."""
    is_first = next((c for c in parent.columns if c.is_unique), None) is target
    is_exact = target.dates is not None and target.dates.is_exact
    are_days = target.type.family is Family.DATE or (target.type.family is Family.TIME and is_exact)
    return is_first and are_days and parent.rows >= MANY_NUMBERS * parent.snapshots_read


def is_calendar(source: SourceProfile) -> bool:
    """Whether a source is called for days, or describes them by year, month or week."""
    parts = sum(not _PARTS_OF_DATES.isdisjoint(words_of(c.name)) for c in source.columns)
    return not _CALENDARS.isdisjoint(map(stem, table_words(source.name))) or parts >= 2


def _likeness_as_guess(column: ColumnProfile, child: SourceProfile, parent: SourceProfile) -> float:
    """Likeness of a reference to days, whatever their table is called, or with a role behind it.

    Where a word for a key stands in front, a role follows its noun: `id_cliente_factura`.
    """
    words, table = column_words(column.name, child.prefix), table_words(parent.name)
    if not words.has_id or not words.base:
        return 0.0
    is_behind = words.whole[0] in ID_WORDS and len(words.base) > len(table)
    is_behind &= table_likeness(words.base[: len(table)], table) >= NAMED
    has_days = any(c.type.family is Family.DATE and c.is_unique for c in parent.columns)
    return _SELF_ROLE * (is_behind or (has_days and words.base[-1] in DAYS))


def _is_of_other(noun: str, child: SourceProfile, parent: SourceProfile) -> bool:
    """Whether a role is a word of a table: aircraft_type_id has it, and engine_type_id has not."""
    table = table_words(parent.name)
    bases = (
        column_words(name, child.prefix).base for name, (other, _) in child.nouns.items()
        if other == noun
    )  # fmt: skip
    return len(table) > 1 and any(list(map(stem, base)) == list(map(stem, table)) for base in bases)


def are_same_rows(
    child: SourceProfile, column: ColumnProfile, parent: SourceProfile, target: ColumnProfile
) -> bool:
    """Whether a plain key has the same gaps in both, or the same name beside it.

    Foods and items have the same rows where both have their id and name.
    """
    if (
        child is parent
        or not column.is_unique
        or column.name.casefold() != target.name.casefold()
        or column_words(column.name, child.prefix).base
        or not _may_include(target, column)
    ):
        return False
    is_text = column.type.family is target.type.family is Family.TEXT
    is_no_chance = is_text and not column.is_code and _are_distinctive_texts(column, target)
    if _shares_gaps(column, target) or (column.is_guid and target.is_guid) or is_no_chance:
        return True
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


def _may_include(target: ColumnProfile, column: ColumnProfile) -> bool:
    """Whether the bounds of whole numbers do not show already that most are not there."""
    if target.low is None or target.high is None or column.low is None or column.high is None:
        return True
    common = min(target.high, column.high) - max(target.low, column.low) + 1
    return common >= INCLUDED_OTHER_NAME * column.values.distinct


def home(child: SourceProfile, column: ColumnProfile, parent: SourceProfile) -> float:
    """Likeness of what a column identifies to the name of a table."""
    names = (column.name, child.nouns.get(column.name, (column.name, False))[0])
    bases = (column_words(name, child.prefix).base or table_words(child.name) for name in names)
    return max(table_likeness(base, table_words(parent.name)) for base in bases)


def leaves_room(
    child: SourceProfile, column: ColumnProfile, parent: SourceProfile, target: ColumnProfile
) -> bool:
    """Whether a name has more words than a key, fewer, or others, and may be of another number.

    A tax_region_id may be of no region, a region_id of no sales_region_id, a type_id of no
    order_types, a region_no of no region_id, and a line_no of bills of no lines.
    """
    mine, theirs = (column_words(c.name, s.prefix) for c, s in ((column, child), (target, parent)))
    table, own = table_words(parent.name), words_of(child.name)
    base, is_same = {*map(stem, mine.base)}, mine.whole == theirs.whole
    if ORDINALS.issuperset(mine.base) and not (base and COUNTERS.isdisjoint(mine.whole)):
        return True  # a line_no of bills; or an id, which is called for no other table
    fuller = (theirs.base, table) if GENERIC.issuperset(mine.base) else (theirs.base,)
    full = ({*map(stem, each)} for each in fuller)
    if any(base < each and not each <= base | {*map(stem, own)} for each in full):
        return True
    if child is parent or is_same:
        return False
    is_given = not GIVEN.isdisjoint(mine.whole) and GIVEN.isdisjoint(theirs.whole)
    known = (*theirs.whole, *table, *own)
    others = [
        word for word in mine.base
        if word.isalpha() and word not in _ALL_ROLES and column.name not in child.nouns
        and all(word_likeness(word, each) < LIKE_NAME for each in known)
    ]  # fmt: skip
    return home(child, column, parent) < LIKE_NAME or is_given or 0 < len(others) < len(base)


def _likeness_as(
    name: str,
    child: SourceProfile,
    column: ColumnProfile,
    parent: SourceProfile,
    target: ColumnProfile,
    primary: Mapping[str, Key],
) -> float:
    words = column_words(name, child.prefix)
    is_main = is_main_key(parent, target, primary)
    # A role stands for the table: the engine_type_id of aircraft is of no aircraft_types.
    own = child.name if name == column.name else ""
    likeness = key_likeness(name, child.prefix, own, target.name, parent.prefix, parent.name)
    if child is parent:
        likeness = _self_likeness(child, column, target, likeness)
    elif not words.base and not column.is_unique and column_words(target.name, parent.prefix).base:
        likeness = 0.0  # the number of results is no result_id of sprint_results
    elif not words.base and begins_as_sequence(column) and begins_as_sequence(target):
        likeness = min(likeness, LIKE_NAME)  # customer_demographics need not extend customer
    is_number = column.type.family is Family.WHOLE and not words.has_id
    # One word may have the role in it, as Ziellager of Lager.
    named = NAMED if len(words.base) > 1 else SAME_NAME
    if (
        is_number and begins_as_sequence(target) and child is not parent
        and table_likeness(words.base, table_words(parent.name)) < named
    ):  # fmt: skip
        key, is_in_role = column_words(target.name, parent.prefix), name != column.name
        is_same = words.whole == key.whole or (is_in_role and words.base == key.base)
        limit = _MAYBE_ROLE if is_in_role else LIKE_NAME
        likeness = min(likeness, limit) if is_main and is_same else 0.4 * likeness  # a measure
    other = column_words(target.name, parent.prefix)
    if likeness < SAME_NAME and child is not parent and begins_as_sequence(target) and any(
        names_more(words.base, each) for each in (table_words(parent.name), other.base) if each
    ):  # fmt: skip
        likeness *= 0.4
    if is_number and words.base:
        # `order` and `line` are numbers of places as well, `rental_duration` is no rental.
        table = table_words(parent.name)
        measure = words.base[-1] in NUMERIC and words.base[-1] not in table
        # `agents` and `rooms_sold` count rows of these tables.
        counted = any(is_plural(word) and stem(word) == stem(table[-1]) for word in words.base)
        if measure or set(words.base) <= NUMERIC or (counted and begins_as_sequence(target)):
            likeness *= 0.4
    is_code = column.is_code and target.is_code and column.mean_length >= _CODE_LENGTH
    is_text = column.type.family is target.type.family is Family.TEXT
    # link_type of link_types, though these have a link_type_id as well.
    is_plain = (is_text or words.whole == other.whole) and not other.has_id
    is_key = names_own_table(target, parent, is_plain=is_plain) or (
        # subject_id of patients, whose rows have numbers of their own besides
        other.has_id and words.whole in (other.whole, words_of(target.name))
        and target.is_unique and not column.is_unique and not begins_as_sequence(target)
    )  # fmt: skip
    if is_text and table_likeness(words.base, table_words(parent.name)) >= NAMED:
        # One of the codes of a country, as long as the column's.
        is_code |= other.whole == ("name",) or (
            abs(column.mean_length - target.mean_length) < 1 and target.mean_length <= _CODE_LENGTH
        )
    is_aggregate = other.has_id and not AGGREGATED.isdisjoint(table_words(parent.name))
    is_base = not other.base or (
        list(map(stem, words.base))[-len(other.base) :] == list(map(stem, other.base))
    )
    if not is_main and is_base and words.whole[-1] != other.whole[-1]:
        likeness *= _OTHER_WORD  # store_number, or store_pk, of stores whose key is store_id
    if is_aggregate or (not is_main and not is_code and not is_key):
        likeness *= _SIDE_COLUMN  # cities of stores are unique, and no key of cities
    front, mine = table_words(parent.name), table_words(child.name)
    if is_text and words.whole == other.whole and mine[: len(front)] == front != mine:
        likeness = max(likeness, LIKE_NAME)  # the title of films_people is that of films
    is_person = is_main and names_a_person(name, child.prefix, parent.name)
    # The lead_trainer_id of trainers is a trainer, whatever other persons there are; rows of
    # user_friends are none, and have no key of their own.
    if likeness < LIKE_NAME and is_person:
        of_rows = primary.get(child.name)
        is_own = stem(words.base[-1]) == stem(table_words(child.name)[-1])
        is_own &= of_rows is not None and len(of_rows.columns) == 1
        return likeness if is_own else PERSON_ROLE
    return likeness


def _self_likeness(
    table: SourceProfile, column: ColumnProfile, target: ColumnProfile, likeness: float
) -> float:
    """Likeness of a column that refers to another row of its table: a manager, a category above."""
    words = column_words(column.name, table.prefix)
    own = table_words(table.name)
    named = column_words(target.name, table.prefix).base
    known = {*words.whole, *words.base}  # MANAGERID is managerid, and manager
    if column.is_unique or not words.base or not (column.may_be_key and target.may_be_key):
        return 0.0
    if not known & SELF_WORDS:
        is_one = likeness >= SAME_NAME and len(words.base) > len(named or own)
        # observation_source_code_id of observations is a code.
        return (_SELF_ROLE if is_sequence(target) else likeness) if is_one else 0.0
    rest = tuple(word for word in words.base if word not in SELF_WORDS and word not in ("to", "by"))
    if rest and rest != named and table_likeness(rest, own) < LIKE_NAME:
        if words.base[-1] in PERSON_ROLES and is_table_of_persons(table.name):
            return _SELF_ROLE  # the line_manager_id of staff
        # manager_staff_id of stores refers to staff; the parent_station of a stop is a stop.
        return LIKE_NAME if column.nulls and "parent" in words.whole else 0.0
    is_of_persons = not known & PERSON_ROLES or is_table_of_persons(table.name)
    return 0.9 if is_of_persons else LIKE_NAME
