"""As-of joins: of the rows of a key, the one that holds at the time of each row of the left side.

Both sides go through one shuffle and one sort: rows of the right side leave behind, in the order of
time, what rows of the left side find. Each row of the left side is in it once, whole, so that it
comes out once, also where a task runs again; and all that a window keeps is the last row it met, so
that a frequent key needs no memory (Spark spills its rows).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as sf
from pyspark.sql import types as spark

from snaploom.engine.keys import holds
from snaploom.models.asof import AsOf, Direction
from snaploom.models.common import DataType, TimeOffset
from snaploom.models.windows import Windows
from snaploom.spark.types import Found, find_field, from_spark
from snaploom.types.schemas import MOST_DIGITS

# Types that are compared: one that has every value of all columns that take part.

_WHOLE = (spark.ByteType, spark.ShortType, spark.IntegerType, spark.LongType)
_DATE, _LOCAL, INSTANT = spark.DateType(), spark.TimestampNTZType(), spark.TimestampType()


def fault_of(rule: AsOf | Windows, types: Iterable[spark.DataType]) -> str:
    """The reason why columns of these types cannot be compared by a rule; empty if they can."""
    given = list(types)
    declared = [from_spark(one) for one in given]
    unknown = [one for one, known in zip(given, declared, strict=True) if known is None]
    if unknown:
        return f"{unknown[0].simpleString()} is neither a time nor a number"
    fault = rule.fault(DataType.variant_of(one) for one in declared if one is not None)
    if not fault and compared_as(given) is None:
        names = " and ".join(dict.fromkeys(one.simpleString() for one in given))
        return f"no type has every value of {names}: cast one of them by a fieldTransformer"
    return fault


def compared_as(types: Sequence[spark.DataType]) -> spark.DataType | None:
    """The type that has every value of columns of these types; None where there is none."""
    for times in (INSTANT, _LOCAL, _DATE):
        if times in types:
            return times
    if all(isinstance(one, _WHOLE) for one in types):
        return spark.LongType()
    double = spark.DoubleType()
    if any(isinstance(one, (spark.FloatType, spark.DoubleType)) for one in types):
        return double if all(holds(double, one) for one in types) else None
    exact = [one if isinstance(one, spark.DecimalType) else spark.DecimalType(19) for one in types]
    scale = max(one.scale for one in exact)
    digits = max(one.precision - one.scale for one in exact) + scale
    return spark.DecimalType(digits, scale) if digits <= MOST_DIGITS else None


def comparable(field: Found, wanted: spark.DataType, zone: str | None) -> Column:
    """The values of a field in the type that is compared; NaN is NULL, and -0.0 is 0.0."""
    value = sf.col(field.expression)
    if isinstance(wanted, spark.DoubleType):
        return sf.nanvl(value.cast(wanted), sf.lit(None)) + sf.lit(0.0)
    if wanted == INSTANT and field.data_type != INSTANT and zone is not None:
        return sf.to_utc_timestamp(value.cast(wanted), zone)  # a session's own zone is UTC
    return value.cast(wanted)


# The join.

NONE, MATCHED, BEYOND, TIED = range(4)
"""Outcomes for a row of the left side: no row of its key and time; one; one beyond the tolerance;
several."""

_MICROSECONDS = {
    "second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000, "day": 86_400_000_000,
    "week": 604_800_000_000,
}  # fmt: skip
_UNBOUNDED, _BEFORE_IT, _HERE = Window.unboundedPreceding, -1, Window.currentRow
TIME, _SIDE, _NEWEST, _UNTIL = "_time", "_side", "_newest", "_until"
LEFT, _RIGHT, _FOUND, OUTCOME = "_left", "_right", "_found", "_outcome"
_MET, _TIED = "_met", "_tied"
"""Columns of both sides together."""


@dataclass(frozen=True, slots=True)
class AsOfJoin:
    """An as-of join: its rule, and the columns by which it finds rows."""

    number: int
    rule: AsOf
    parent: Found
    child: Found
    until: Found | None
    newest: Found | None

    @property
    def left_time(self) -> str:
        """Name of the left side's column of times."""
        return f"at{self.number}"

    @property
    def right_times(self) -> list[str]:
        """Names of the columns that the right side has beside its key."""
        given = (("from", self.child), ("until", self.until), ("newest", self.newest))
        return [f"{name}{self.number}" for name, field in given if field is not None]

    @property
    def outcome(self) -> str:
        """Name of the column with the outcome for each row of the left side."""
        return f"as_of{self.number}"

    @property
    def compared_as(self) -> spark.DataType:
        """Type of the times as they are compared."""
        fields = [one for one in (self.parent, self.child, self.until) if one is not None]
        found = compared_as([one.data_type for one in fields])
        assert found is not None  # `fault_of` has refused what has none
        return found

    def counted(self) -> dict[str, Column]:
        """Conditions of rows that are counted: to have no match for one reason or another."""
        outcome = sf.col(self.outcome)
        return {f"beyond_{self.number}": outcome == BEYOND, f"tied_{self.number}": outcome == TIED}

    def left_column(self) -> Column:
        """The time of each row of the left side, over its source."""
        return comparable(self.parent, self.compared_as, self.rule.time_zone).alias(self.left_time)

    def right_columns(self) -> list[Column]:
        """The columns that the right side has beside its key, over its source."""
        times = [one for one in (self.child, self.until) if one is not None]
        zone, wanted = self.rule.time_zone, self.compared_as
        columns = [comparable(one, wanted, zone) for one in times]
        if self.newest is not None:
            columns.append(sf.col(self.newest.expression))
        return [one.alias(name) for one, name in zip(columns, self.right_times, strict=True)]

    def joined(
        self,
        left: DataFrame,
        right: DataFrame,
        keys: Sequence[tuple[str, str]],
        packed: str,
    ) -> DataFrame:
        """The rows of the left side with the row that each finds, and the outcome.

        `keys` has the columns of the key, left and right; `packed` is the column of the right side
        that is taken over.
        """
        found = self._found(left, right, keys, packed)
        row = sf.when(sf.col(OUTCOME) == MATCHED, sf.col(_FOUND).getField("row"))
        columns = left_columns(left, keys, self.left_time)
        return found.select(*columns, row.alias(packed), sf.col(OUTCOME).alias(self.outcome))

    def tied(
        self,
        left: DataFrame,
        right: DataFrame,
        keys: Sequence[tuple[str, str]],
        packed: str,
        most: int,
    ) -> DataFrame:
        """Keys and times of the right side of which several rows hold, with the rows that met them.

        The columns are the key, as the right side calls it, the time, and `rows`.
        """
        own = [own for _, own in keys]
        return (
            self._found(left, right, keys, packed)
            .where(sf.col(OUTCOME) == TIED)
            .groupBy(*(sf.col(f"_key{n}").alias(name) for n, name in enumerate(own)),
                     sf.col(_FOUND).getField(TIME).alias(TIME))
            .agg(sf.count(sf.lit(1)).alias("rows"))
            .orderBy(sf.desc("rows"), *own, TIME)
            .limit(most)
        )  # fmt: skip

    def _found(
        self, left: DataFrame, right: DataFrame, keys: Sequence[tuple[str, str]], packed: str
    ) -> DataFrame:
        both = self._both(left, right, keys, packed)
        names = [f"_key{n}" for n in range(len(keys))]
        sides = _PASSES[self.rule.direction]
        for each in sides:
            both = self._passed(both, names, each)
        held = both.where(sf.col(LEFT).isNotNull())
        (name, tied), *forward = ((each.value, f"{each}{_TIED}") for each in sides)
        if not forward:
            return self._judged(held.withColumnsRenamed({name: _FOUND, tied: _TIED}))
        [(other, other_tied)] = forward
        ahead = self._distance(sf.col(other))
        is_back = ahead.isNull() | (self._distance(sf.col(name)) <= ahead)
        is_back = sf.col(name).isNotNull() & is_back
        chosen = {
            _FOUND: sf.when(is_back, sf.col(name)).otherwise(sf.col(other)),
            _TIED: sf.when(is_back, sf.col(tied)).otherwise(sf.col(other_tied)),
        }
        return self._judged(held.withColumns(chosen))

    def _both(
        self, left: DataFrame, right: DataFrame, keys: Sequence[tuple[str, str]], packed: str
    ) -> DataFrame:
        """The rows of both sides, whole in one column each; of the right side those that hold."""
        time, *more = self.right_times
        given = ((_UNTIL, self.until), (_NEWEST, self.newest))
        own = dict(zip((name for name, field in given if field is not None), more, strict=True))
        holding = reduce(and_, (sf.col(name).isNotNull() for name in (*(k for _, k in keys), time)))
        if self.until is not None:
            until = sf.col(own[_UNTIL])
            holding &= until.isNull() | (until > sf.col(time))
        taken = {**own, _RIGHT: packed}
        return both_sides(left, right.where(holding), keys, (self.left_time, time), taken)

    def _passed(self, both: DataFrame, keys: Sequence[str], direction: Direction) -> DataFrame:
        """Each row with the last row of the right side before it, in one direction of time.

        Beside that, whether the one before the last is equal to it: both are found in one pass.
        """
        is_right = sf.col(LEFT).isNull()
        side = sf.when(is_right, int(self.rule.strict)).otherwise(int(not self.rule.strict))
        forth = direction is Direction.FORWARD
        order = [sf.desc(TIME) if forth else sf.asc(TIME), side]
        order += [sf.asc_nulls_last(_UNTIL)] * (self.until is not None)
        order += [sf.asc_nulls_first(_NEWEST)] * (self.newest is not None)
        window = Window.partitionBy(*keys).orderBy(*order)
        compared = [TIME, *((_NEWEST,) if self.newest is not None else ())]
        met = sf.when(is_right, sf.struct(*compared)).alias(_MET)
        marked = both.select("*", *self._marks(is_right, window), met)
        others = [name for name in marked.columns if name not in (*both.columns, _MET)]
        others += [_UNTIL] * (self.until is not None)
        row = sf.struct(sf.col(_RIGHT).alias("row"), *compared, *others)
        last = sf.last(sf.when(is_right, row), ignorenulls=True)
        found, tied = sf.col(direction.value), sf.col(f"{direction}{_TIED}")
        passed = marked.select(
            *both.columns,
            last.over(window.rowsBetween(_UNBOUNDED, _HERE)).alias(direction.value),
            sf.expr(f"lag({_MET}, 2) IGNORE NULLS").over(window).alias(f"{direction}{_TIED}"),
        )
        same = (tied.getField(name).eqNullSafe(found.getField(name)) for name in compared)
        is_tied = (tied.isNotNull() & reduce(and_, same)).alias(f"{direction}{_TIED}")
        return passed.select(*both.columns, direction.value, is_tied)

    def _marks(self, is_right: Column, window: WindowSpec) -> list[Column]:
        """Facts about rows of the right side that hold until a time: whether earlier ones do."""
        if self.until is None:
            return []
        earlier = window.rowsBetween(_UNBOUNDED, _BEFORE_IT)
        is_open = sf.bool_or(is_right & sf.col(_UNTIL).isNull())
        return [
            sf.coalesce(is_open.over(earlier), sf.lit(False)).alias("open_before"),
            sf.max(_UNTIL).over(earlier).alias("until_before"),
        ]

    def _judged(self, held: DataFrame) -> DataFrame:
        found, time, is_tied = sf.col(_FOUND), sf.col(TIME), sf.col(_TIED)
        outcome = sf.when(found.isNull() | time.isNull(), NONE)
        if self.until is not None:
            before = found.getField("until_before")
            is_tied = (
                is_tied | found.getField("open_before") | sf.coalesce(before > time, sf.lit(False))
            )
        limit = self._limit()
        if limit is not None:
            is_within = sf.coalesce(self._distance(found) <= limit, sf.lit(False))
            outcome = outcome.when(~is_within, BEYOND)
        outcome = outcome.when(is_tied, TIED)
        if self.until is not None:
            outcome = outcome.when(found.getField(_UNTIL) <= time, NONE)
        return held.withColumn(OUTCOME, outcome.otherwise(MATCHED).cast("byte"))

    def _limit(self) -> Column | None:
        if self.rule.number_tolerance is not None:
            return sf.lit(self.rule.number_tolerance)
        return None if self.rule.tolerance is None else sf.lit(microseconds(self.rule.tolerance))

    def _distance(self, found: Column) -> Column:
        """Time between a row and what it finds: of times in microseconds; NULL is beyond all."""
        times = [sf.col(TIME), found.getField(TIME)]
        if isinstance(
            self.compared_as, (spark.DateType, spark.TimestampType, spark.TimestampNTZType)
        ):
            times = [sf.unix_micros(one.cast(INSTANT)) for one in times]
        return sf.abs(sf.try_subtract(*times))


_PASSES = {
    Direction.BACKWARD: (Direction.BACKWARD,),
    Direction.FORWARD: (Direction.FORWARD,),
    Direction.NEAREST: (Direction.BACKWARD, Direction.FORWARD),
}


def both_sides(
    left: DataFrame,
    right: DataFrame,
    keys: Sequence[tuple[str, str]],
    times: tuple[str, str],
    taken: Mapping[str, str],
) -> DataFrame:
    """The rows of both sides: of the left one whole in one column, of the right one what is taken.

    `keys` and `times` name columns, left and right; `taken` those of the right side by their names
    in both together.
    """
    left_time, right_time = times
    apart = _kept_apart(keys, left_time)
    rest = left.select(*([n for n in left.columns if n not in apart] or [left_time]))
    lefts = left.select(
        *(sf.col(name).alias(f"_key{n}") for n, (name, _) in enumerate(keys)),
        sf.col(left_time).alias(TIME),
        *(sf.lit(None).cast(right.schema[column].dataType).alias(name)
          for name, column in taken.items()),
        sf.struct(*(sf.col(name) for name in rest.columns)).alias(LEFT),
    )  # fmt: skip
    rights = right.select(
        *(sf.col(name).alias(f"_key{n}") for n, (_, name) in enumerate(keys)),
        sf.col(right_time).alias(TIME),
        *(sf.col(column).alias(name) for name, column in taken.items()),
        sf.lit(None).cast(rest.schema).alias(LEFT),
    )
    return lefts.unionAll(rights)


def left_columns(
    left: DataFrame, keys: Sequence[tuple[str, str]], left_time: str
) -> Iterator[Column]:
    """The columns of the left side, over rows of both."""
    apart = _kept_apart(keys, left_time)
    for name in left.columns:
        yield sf.col(apart[name]).alias(name) if name in apart else sf.col(f"{LEFT}.{name}")


def _kept_apart(keys: Sequence[tuple[str, str]], left_time: str) -> dict[str, str]:
    """Columns of the left side that both sides have, with their names in both together.

    A later join by the same key finds the rows where they are.
    """
    names = {name: f"_key{n}" for n, (name, _) in reversed(list(enumerate(keys)))}
    return {**names, left_time: TIME}


def microseconds(length: TimeOffset) -> int:
    """A length of days of 24 hours, and of less."""
    whole = sum(getattr(length, part) * size for part, size in _MICROSECONDS.items())
    return min(int(whole) + length.nano // 1000, 2**63 - 1)


def as_of_join(
    number: int, rule: AsOf, parent: spark.StructType, child: spark.StructType
) -> AsOfJoin:
    """The join of a child by a rule; `snaploom.engine.schemachecks` has found all its fields."""
    of_child = {name: find_field(child, path) for name, path in rule.child_fields.items()}
    at, since = find_field(parent, rule.parent_field), of_child["childField"]
    assert at is not None
    assert since is not None
    until, newest = of_child.get("childUntilField"), of_child.get("ties.newestBy")
    return AsOfJoin(number, rule, at, since, until, newest)
