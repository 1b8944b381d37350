"""Relationships between sources: which columns of one are keys of another's rows, with evidence."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import expm1, log

from snaploom.loading.nearmisses import counted
from snaploom.models.asof import AsOf
from snaploom.models.datarelationship import Normalization
from snaploom.plugins.discovery import scratch
from snaploom.plugins.discovery.dates import Family
from snaploom.plugins.discovery.foundfiles import (
    INCLUDED_LIKE_NAME,
    INCLUDED_OTHER_NAME,
    INCLUDED_SAME_NAME,
    LIKE_NAME,
    SAME_NAME,
)
from snaploom.plugins.discovery.keys import (
    MANY_NUMBERS,
    MISSING,
    NAMED,
    PERSON_ROLE,
    Key,
    are_same_rows,
    home,
    is_by_chance,
    is_calendar,
    is_distinctive,
    is_main_key,
    is_sequence,
    is_short,
    leaves_room,
    likeness_to,
    lists_days,
    names_own_table,
    only_numbers,
)
from snaploom.plugins.discovery.names import (
    GENERIC,
    column_words,
    key_likeness,
    stem,
    table_likeness,
    table_words,
    words_of,
)
from snaploom.plugins.discovery.profiles import ColumnProfile, SourceProfile
from snaploom.types.merge import explains_more

_OWN_KEY = 0.85
"""Likeness from which the key of a table is that of another one as well, which it extends."""
_PERSON_NAME = 0.95
"""Likeness as which that counts where no other table of persons is there."""
MOST_REPEATED = 0.05
"""Share of rows up to which values that occur twice are a fault of a key."""
_COPIED_COLUMNS = 0.8
"""Share of columns in common from which a source is a copy of another one."""
_HOME = 2.5
"""Weight of a parent that is called exactly as its key is: no aggregate, extension or copy."""
_LEAST_FIT = 0.01
_LEAST_FITTING = 0.1
"""The same for a number that is only called like a table: a slot beside encounter_slots."""
_NEARLY_FIT = 0.9
"""Share of the keys used from which a key that counts from 1 is likely that of another table."""
_LEAST_USED = 0.5
"""Share of the keys used by chance below which a name that is only alike may mean another list."""
WEAK_SHARE = 0.95
"""Share from which a relationship that is not declared is shown as a comment."""
_EXPLAINS = 0.05
"""Share of values that must be in the parent only once they are normalised, to declare that."""
_MOST_SPELLED = 50_000
"""Distinct values that are normalised, in Python."""


@dataclass(frozen=True)
class Relationship:
    """Columns of one source that are a key of another one's rows."""

    child: str
    child_columns: tuple[str, ...]
    parent: str
    parent_columns: tuple[str, ...]
    included: scratch.Inclusion
    likeness: float
    """Of the names, 0 to 1."""
    odds: float
    """Logarithm of the odds that it is meant."""
    is_one_to_one: bool
    """Whether the child's columns are unique as well."""
    rows_per_key: float
    """Rows of the child for each of its keys in one snapshot, on average."""
    rows_beside: float
    """Rows of the child with the key of one of its rows, on average: full keys count more often."""
    used: float = 1.0
    """Share of the parent's keys that the child has."""
    declared_as: str = ""
    """Name of the foreign key by which a database declares it."""
    normalize: tuple[Normalization, ...] = ()
    """Steps by which both sides are spelt alike; `included` is with them."""
    as_written: float = 0.0
    """Share that is included without them."""
    is_by_chance: bool = False
    """Whether values prove nothing, as those of any column would be included."""
    is_unsure: bool = False
    """Whether names and the share of keys that are used leave room for another meaning besides."""
    is_guess: bool = False
    """Whether it was chosen without certainty, and nobody confirmed it."""
    as_of: AsOf | None = None
    """The times of a join by key and time, in which the parent has several rows a key."""
    as_of_evidence: str = ""
    """For people; empty for other joins."""

    @property
    def is_proved(self) -> bool:
        """Whether so many values are there that it is no chance, whatever the names."""
        are_many = self.included.compared >= MANY_NUMBERS
        return are_many and not self.is_by_chance and self.included.share > 1 - _EXPLAINS

    @property
    def spelling(self) -> str:
        """The steps without which fewer values are included, for people; empty without any."""
        steps = ", ".join(self.normalize)
        return f" with {steps} ({100 * self.as_written:.1f} % as written)" if steps else ""

    @property
    def evidence(self) -> str:
        """For people."""
        if self.as_of_evidence:
            return self.as_of_evidence
        values = "combinations" if len(self.child_columns) > 1 else "values"
        many = "one row a key" if self.is_one_to_one else f"{self.rows_per_key:,.1f} rows a key"
        return (
            f"{100 * self.included.share:.1f} % of {self.included.compared:,} {values} of "
            f"{self.source} are in {self.target}{self.spelling}; {self.names}; {many}; "
            f"{self.included.basis}{'; a guess' if self.is_guess else ''}"
        )

    @property
    def names(self) -> str:
        """The likeness of names, or the foreign key of a database, for people."""
        if self.declared_as:
            return f"foreign key {self.declared_as}"
        if self.likeness >= LIKE_NAME:
            return "same name" if self.likeness >= SAME_NAME else "like name"
        is_word = self.child_columns == self.parent_columns
        return "a name that many tables may have" if is_word else "other name"

    @property
    def source(self) -> str:
        """The columns that refer, for people."""
        return f"{self.child}.{shown_columns(self.child_columns)}"

    @property
    def target(self) -> str:
        """The columns that are referred to, for people."""
        return f"{self.parent}.{shown_columns(self.parent_columns)}"

    @property
    def order(self) -> tuple[float, str, tuple[str, ...], str, tuple[str, ...]]:
        """Sort key: the best evidence first."""
        return -self.odds, self.child, self.child_columns, self.parent, self.parent_columns


def shown_columns(columns: Sequence[str]) -> str:
    """Names of columns, for people."""
    return columns[0] if len(columns) == 1 else "(" + ", ".join(columns) + ")"


@dataclass(frozen=True)
class Verdict:
    """The judgement of a pair of columns by itself, whatever other pairs there are."""

    found: Relationship
    is_strong: bool
    stopped: str
    """Reason that rules it out, or makes it weak; empty where it is strong."""
    is_weak: bool = False
    """Whether a person may decide about it."""
    is_repeated: bool = False
    """Whether it would be strong, if the parent had no key twice."""
    is_apart: bool = False
    """Whether it has the name of the parent's key, and few of its values are there."""


def candidates(
    child: SourceProfile, parent: SourceProfile, primary: Mapping[str, Key]
) -> Iterator[Verdict]:
    """Pairs of single columns that may be a relationship, and those that only values stop.

    `primary` has the key of each source.
    """
    for target in parent.columns:
        is_key = target.may_be_key or lists_days(parent, target)
        if not is_key or not is_short(target):
            continue
        if not target.identifies and not _is_almost_key(target, parent):
            continue
        for column in child.columns:
            if column.values.distinct == 0 or column.may_be_key is not target.may_be_key:
                continue
            likeness = likeness_to(child, column, parent, target, primary)
            if not _objection(child, column, parent, target, likeness, primary):
                found = judge(child, column, parent, target, primary)
                if found.is_strong or found.is_weak or found.is_repeated or found.is_apart:
                    yield found


def judge(
    child: SourceProfile,
    column: ColumnProfile,
    parent: SourceProfile,
    target: ColumnProfile,
    primary: Mapping[str, Key],
) -> Verdict:
    """The evidence that values of a column are keys of another source's rows."""
    likeness = likeness_to(child, column, parent, target, primary)
    written = scratch.inclusion(column.values, target.values)
    if likeness >= SAME_NAME:
        written = _known(column, target, written)
    is_spelt = likeness >= LIKE_NAME and Family.TEXT in (column.type.family, target.type.family)
    share, steps = (
        normalized_share(column.values, target.values, written) if is_spelt else (written, ())
    )
    used = min(1.0, share.share * column.values.distinct / max(1, target.values.distinct))
    if target.rows < parent.rows and share.compared:
        # Only a part of the parent was read: at most as much of the child can be found in it.
        share = replace(share, share=min(1.0, share.share * parent.rows / max(1, target.rows)))
    is_own = is_main_key(child, column, primary)
    mean, beside = rows_per_key(child, column.values, _rows_in(parent, target))
    fit = _fit(share.share, used, column, parent, target)
    words = column_words(column.name, child.prefix)
    is_named = likeness >= SAME_NAME and words.has_id
    may_be_chance = is_by_chance(column, target)
    is_low = may_be_chance or _is_dense(target, column)
    found = Relationship(
        child=child.name,
        child_columns=(column.name,),
        parent=parent.name,
        parent_columns=(target.name,),
        included=share,
        likeness=round(likeness, 3),
        odds=_odds(likeness, share.share, fit, may_be_chance, child, column, parent, target),
        is_one_to_one=is_own,
        rows_per_key=mean,
        rows_beside=beside,
        used=used,
        normalize=steps,
        as_written=written.share,
        is_by_chance=may_be_chance,
        is_unsure=not target.may_be_key
        or are_same_rows(child, column, parent, target)
        or (not target.is_unique and not names_own_table(target, parent))
        or (not is_named and used < _LEAST_USED and is_low)
        or describes(parent, target, primary)
        or _is_of_several(child, column)
        or (is_own and 0 < home(child, column, child) == home(child, column, parent))
        # The code of a currency is its own, though most countries have the same one.
        or (column.is_unique and share.share < 1 and not column_words(column.name).base)
        or _may_have_sums(column, parent, target)
        # Numbers of rows, which overlap: others would be there all, or a few.
        or (column.is_unique and share.share < INCLUDED_LIKE_NAME and _is_dense(target, target))
        or (
            may_be_chance
            and (
                share.share < INCLUDED_LIKE_NAME
                # No row is the top of the others: it may as well refer to another table.
                or (child is parent and not column.nulls and share.share == 1.0)
                or (child is not parent and is_own and used < _least_used(child, column))
                or bool(_other_meant(child, column, parent, target))
                or leaves_room(child, column, parent, target)
            )
        ),
    )
    stopped = _objection(child, column, parent, target, likeness, primary)
    limit = (
        INCLUDED_SAME_NAME
        if likeness >= SAME_NAME and target.values.distinct > 1
        else INCLUDED_LIKE_NAME
        if likeness >= LIKE_NAME
        else INCLUDED_OTHER_NAME
    )
    if not stopped and share.compared == 0:
        stopped = "there is no value to compare in what was read"
    if stopped:
        return Verdict(found, False, stopped)
    if share.share < limit:
        is_weak = share.share >= WEAK_SHARE or (likeness >= SAME_NAME and share.share >= 0.3)
        why = (
            f"{100 * share.share:.1f} % of its values are there, and {100 * limit:.0f} % are needed"
        )
        is_apart = likeness == 1 and is_main_key(parent, target, primary)
        return Verdict(found, False, why, is_weak and likeness >= LIKE_NAME, is_apart=is_apart)
    if may_be_chance and likeness < NAMED and fit < _LEAST_FITTING and not words.has_id:
        why = f"its numbers are {100 * used:.1f} % of the keys there, whose name has more words"
        return Verdict(found, False, why, True)
    if not target.is_unique:
        within = scratch.combined([target.values, parent.snapshot])
        if not target.identifies and within.repeated()[0]:
            return Verdict(found, False, repeated(parent, [target]), is_repeated=True)
        # Rows without a key, as an empty one at the end of an export, match and multiply nothing.
        missing = f"{counted(target.nulls, 'row')} of {parent.name} without a key"
        found = replace(found, included=replace(share, basis=f"{share.basis}, {missing}"))
    if not target.may_be_key and not is_calendar(parent):
        doubt = "both have one row a day" if column.is_unique else ""
        if not doubt and only_numbers(parent, [target.name]):
            doubt = f"{parent.name} may have sums of {child.name}"
        return Verdict(found, not doubt, doubt, is_weak=bool(doubt))
    return Verdict(found, True, "")


def _may_have_sums(column: ColumnProfile, parent: SourceProfile, target: ColumnProfile) -> bool:
    """Whether a source sums others up by a column of theirs, as store_sales by store_id."""
    base = column_words(target.name, parent.prefix).base
    is_called = not base or {*map(stem, base)} >= {*map(stem, table_words(parent.name))}
    is_same = words_of(column.name) == words_of(target.name)
    return is_same and not is_called and bool(only_numbers(parent, [target.name]))


def _is_of_several(child: SourceProfile, column: ColumnProfile) -> bool:
    """Whether rows with one key are of several tables, which an item_type beside item_id names."""
    kind = (*column_words(column.name, child.prefix).base, "type")
    return any(
        other.type.family is Family.TEXT
        and column_words(other.name, child.prefix).whole == kind
        and scratch.combined([column.values, other.values]).distinct
        > (1 + MOST_REPEATED) * column.values.distinct
        for other in child.columns
    )


def describes(parent: SourceProfile, target: ColumnProfile, primary: Mapping[str, Key]) -> bool:
    """Whether a column describes rows that another one is the key of, as names of cities do."""
    has_id = column_words(target.name, parent.prefix).has_id
    return not (has_id or target.is_code or is_main_key(parent, target, primary))


def _is_dense(target: ColumnProfile, column: ColumnProfile) -> bool:
    """Whether keys have about all whole numbers in the range of a column, and other ones."""
    if target.low is None or column.low is None or column.high is None:
        return False
    return target.values.share_between(column.low, column.high) >= 1 - MISSING


def _known(
    column: ColumnProfile, target: ColumnProfile, share: scratch.Inclusion
) -> scratch.Inclusion:
    """The share without 0 or -1, where that is less than every key: it stands for "unknown"."""
    low, rest = column.low, share.compared - 1
    if low not in (0, -1) or target.low is None or target.low <= low or not rest:
        return share
    included = min(1.0, share.share * share.compared / rest)
    return replace(share, share=included, compared=rest, basis=f"{share.basis}, {low} aside")


def normalized_share(
    child: scratch.Values, parent: scratch.Values, share: scratch.Inclusion
) -> tuple[scratch.Inclusion, tuple[Normalization, ...]]:
    """The share of values that is included once keys are spelt alike, and the steps of that."""
    if share.share > 1 - _EXPLAINS:
        return share, ()
    mine, theirs = (scratch.distinct_keys(each, _MOST_SPELLED) for each in (child, parent))
    if mine is None or theirs is None:
        return share, ()
    explained = explains_more(mine, theirs)
    if explained is None or explained.share < share.share + _EXPLAINS:
        return share, ()
    return replace(share, share=explained.share), explained.steps


def _objection(
    child: SourceProfile,
    column: ColumnProfile,
    parent: SourceProfile,
    target: ColumnProfile,
    likeness: float,
    primary: Mapping[str, Key],
) -> str:
    """Reason that rules a pair of columns out before their values are compared; else empty."""
    is_main = is_main_key(parent, target, primary)
    is_of_days = likeness > 0 and lists_days(parent, target)
    for each in (column, target):
        if not each.may_be_key and not is_of_days:
            return f"{each.name} is neither a whole number nor a text"
        if not each.values.distinct:
            return f"{each.name} has no value in what was read"
    if child is parent and column.name == target.name:
        return "it is the same column"
    is_same = child is not parent and column.name == target.name
    # The sites of trackers, with the measures of sites, are no copy of these, and neither are
    # accounts of their types, if who changed either stands beside the one key and the other.
    theirs = {each.name for each in parent.columns}
    is_list = target.is_unique and not column.is_unique and (
        names_own_table(target, parent, is_plain=True)
        or any(each.is_unique and each.name not in theirs for each in child.columns)
    )  # fmt: skip
    if is_same and not is_list and is_copy(child, parent):
        return f"{child.name} has the same columns as {parent.name}: one is a copy of the other"
    if child is parent and not is_main:
        return f"{target.name} is not the key of {parent.name}"
    other = _other_meant(child, column, parent, target)
    if other and words_of(other) == words_of(column.name):
        return f"{parent.name} has a {other} of its own, which is no key of it"
    if child is not parent and any(
        other.is_unique and words_of(other.name) == words_of(column.name) and other is not target
        for other in parent.columns
    ):
        return f"{parent.name} has a {column.name} of its own"
    if child is parent and 2 * column.values.equal_rows(target.values) > column.rows - column.nulls:
        return f"most rows have the same in {target.name}: it names the row itself"
    if not target.identifies and not _is_almost_key(target, parent):
        return repeated(parent, [target])
    if not is_short(target):
        return f"texts of {target.name} are as long as descriptions"
    is_named = column_words(column.name, child.prefix).has_id
    if (column.low, column.high) == (0, 1) and not is_named and target.values.distinct > 2:
        return f"{column.name} has only 0 and 1: it is a flag"
    if target.values.distinct < 2 and (child is parent or not is_main or likeness < SAME_NAME):
        return f"{target.name} has one value, which proves nothing"
    is_self = child is parent and column.type.family is Family.WHOLE
    is_proof = not is_self or (is_sequence(target) and not is_by_chance(column, target))
    if likeness < LIKE_NAME and not (is_proof and is_distinctive(column, target, is_main)):
        return "names prove nothing, and values may be there by chance"
    if child is not parent and _names_own_table(child, column, parent, likeness):
        return f"it is the key of {child.name} itself"
    if column.is_unique and child is not parent and _are_counters(child, column, parent, target):
        return "both count the rows of their tables"
    return ""


def _other_meant(
    child: SourceProfile, column: ColumnProfile, parent: SourceProfile, target: ColumnProfile
) -> str:
    """The column of a parent that a reference may mean as well: the customer_id of its versions.

    It identifies what the parent is called for, in several rows each; or what a list refers to, as
    the item_id of order_items, beside a key of its own.
    """
    table, mine = table_words(parent.name), column_words(column.name, child.prefix).whole
    nouns = {*map(stem, table)}
    return next(
        (
            other.name for other in parent.columns
            if child is not parent and other is not target and not other.is_unique
            and other.may_be_key and (words := column_words(other.name, parent.prefix)).has_id
            and (
                table_likeness(words.base, table) >= NAMED
                or (words.whole == mine and {*map(stem, words.base)} < nouns)
            )
            and key_likeness(column.name, child.prefix, child.name, other.name, parent.prefix,
                             parent.name) >= LIKE_NAME
        ),
        "",
    )  # fmt: skip


def is_copy(one: SourceProfile, other: SourceProfile) -> bool:
    """Whether two sources have nearly the same columns, as a register and its older state."""
    mine, theirs = ({c.name.casefold() for c in each.columns} for each in (one, other))
    is_known = len(mine) > 2 or any(
        column.is_unique and not GENERIC.issuperset(column_words(column.name).base)
        for column in one.columns
    )
    return is_known and len(mine & theirs) >= _COPIED_COLUMNS * max(len(mine), len(theirs))


def _is_almost_key(target: ColumnProfile, parent: SourceProfile) -> bool:
    """Whether a column that is called as the key of its table has few values twice, or none."""
    return (
        not target.is_unique
        and target.may_be_key
        and target.values.distinct > 1
        and names_own_table(target, parent)
        and len(target.values) - scratch.combined([target.values, parent.snapshot]).distinct
        <= max(1, MOST_REPEATED * len(target.values))
    )


def repeated(parent: SourceProfile, targets: Sequence[ColumnProfile]) -> str:
    """The sentence about columns that are no key: values in several rows, or rows without one."""
    values = scratch.combined([target.values for target in targets])
    within = scratch.combined([values, parent.snapshot])
    number, places = within.repeated()
    copies = " of a snapshot" if within.distinct > values.distinct else ""
    shown = f" ({', '.join(places)})" if places else ""
    twice = f"{number:,} of {within.distinct:,} values{copies} stand in several rows{shown}"
    without = f"{counted(targets[0].nulls, 'row')} without a value, to be filled or removed"
    faults = [
        fault for fault, is_there in ((twice, number), (without, targets[0].nulls)) if is_there
    ]
    columns = shown_columns([target.name for target in targets])
    return f"{columns} is no key of {parent.name}: {', and '.join(faults)}"


def _odds(
    likeness: float,
    share: float,
    fit: float,
    may_be_chance: bool,
    child: SourceProfile,
    column: ColumnProfile,
    parent: SourceProfile,
    target: ColumnProfile,
) -> float:
    """The logarithm of the odds that a pair of columns is a relationship.

    The weights are those with which few pairs of data sets whose truth is known stay undecided.
    Numbers that are a sequence give no evidence by being included.
    """
    distinct = column.values.distinct
    evidence = 0.0 if may_be_chance else min(1.0, log(1 + distinct) / log(MANY_NUMBERS))
    evidence = 1.0 if column.is_guid and target.is_guid else evidence
    if likeness < LIKE_NAME:
        return round(2 * evidence + 5 * (share - INCLUDED_OTHER_NAME), 4)
    names = -1.3 * log(1.02 - (_PERSON_NAME if likeness == PERSON_ROLE else likeness))
    if likeness == LIKE_NAME:  # by a rule that has exceptions
        names -= 1
    key, words = (column_words(each.name, child.prefix) for each in (target, column))
    is_self = child is parent and bool(key.base) and words.whole[-len(key.whole) :] == key.whole
    at_home = 1.0 if is_self else home(child, column, parent)  # backorder_order_id of orders
    at_home = _HOME if at_home >= NAMED else at_home
    fits = 0.8 * log(max(_LEAST_FIT, fit))
    return round(names + 5 * (share - INCLUDED_LIKE_NAME) + at_home + fits + evidence, 4)


def _fit(
    share: float, used: float, column: ColumnProfile, parent: SourceProfile, target: ColumnProfile
) -> float:
    """Share of a sequence of keys that a column uses, over that which as many rows use by chance.

    That it uses the first few only, though it has rows enough for others, is evidence against it.
    """
    rows = (column.rows - column.nulls) * share
    expected = -expm1(-rows / max(1.0, _rows_in(parent, target)))
    return min(1.0, used / expected) if expected > 0 and is_sequence(target) else 1.0


def _least_used(child: SourceProfile, key: ColumnProfile) -> float:
    """Share of used keys below which a key may count entities of its own, as of reserve_doctors.

    One that is called for no such entities may if it has the first numbers, and each of them.
    """
    base = column_words(key.name, child.prefix).base
    is_named = table_likeness(base, table_words(child.name)) >= LIKE_NAME
    return 1.0 if is_named else _NEARLY_FIT * (key.density == 1)


def _rows_in(parent: SourceProfile, target: ColumnProfile) -> float:
    """Keys of a parent, those that were not read included."""
    return target.values.distinct * max(1.0, parent.rows / max(1, target.rows))


def rows_per_key(child: SourceProfile, keys: scratch.Values, parents: float) -> tuple[float, float]:
    """Rows of a child for each of its keys in one snapshot; NULL is none.

    The first figure is the average of keys, the second that of rows. Of a child of which only a
    part was read there may be more: all of its rows over the keys of the parent.
    """
    each = scratch.combined([keys, child.snapshot])
    mean = each.rows_per_key()
    if child.rows > len(keys) > 0:
        given = child.rows * mean * each.distinct / len(keys)
        mean = max(mean, given / max(1, child.snapshots_read) / max(1.0, parents))
    return mean, max(mean, each.rows_beside())


def _are_counters(
    child: SourceProfile, column: ColumnProfile, parent: SourceProfile, target: ColumnProfile
) -> bool:
    """Whether both are keys that count rows, such as `ROW_ID`, and are named for no table."""
    if not (is_sequence(column) and is_by_chance(column, target)):
        return False
    base = column_words(column.name, child.prefix).base
    is_same = bool(base) and base == column_words(target.name, parent.prefix).base
    return is_same and all(
        table_likeness(base, table_words(each.name)) < LIKE_NAME for each in (child, parent)
    )


def _names_own_table(
    child: SourceProfile, column: ColumnProfile, parent: SourceProfile, likeness: float
) -> bool:
    """Whether a column is the key that its own table is named for: invoice_id of invoices."""
    if not column.is_unique:
        return False
    base = column_words(column.name, child.prefix).base
    own = table_likeness(base, table_words(child.name))
    theirs = table_likeness(base, table_words(parent.name))
    if base and own >= max(LIKE_NAME, theirs):
        # Employee_jobs and employee_salaries may have the same employees.
        return own > theirs or is_sequence(column) or likeness < NAMED
    # The table may have a schema in front, as in Production_ProductCategory.
    return likeness < _OWN_KEY and (not base or own >= _OWN_KEY)
