"""Windows: aggregates over lengths of time before each row's own time, of keys of any size.

Spark's own frames of a range hold the rows of a frame in memory, and go through all of them for
each row: a frequent key would take more than there is of both. So time is cut into blocks of the
window's length. The window before a row is the end of one block and the beginning of the next, and
both are running aggregates, one against and one along the order of time, which keep nothing but
themselves. Both sides go through one shuffle, by key, and are sorted there: once for what needs no
block, and twice for each length. Each row of the left side comes out once, as of an as-of join.

Rows of equal time are ordered by all values that are aggregated, so that a task that runs again
gives the same bits.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as sf
from pyspark.sql import types as spark

from snaploom.engine import asof
from snaploom.models.asof import AsOf
from snaploom.models.common import DataType, TimeOffset
from snaploom.models.windows import WindowAggregate, WindowFunction, Windows
from snaploom.spark.types import Found, find_field, from_spark
from snaploom.types.schemas import MOST_DIGITS

# Functions: running aggregates, two of them as one, and the value of one.

Parts = Sequence[Column]


@dataclass(frozen=True)
class Running:
    """A function of a window as one of the two parts of the window."""

    parts: Callable[[Column], Parts]
    """Aggregates over values of which those count that are not NULL."""
    merged: Callable[[Parts, Parts], Parts]
    """Those of a window from those of its earlier and of its later part."""
    value: Callable[[Parts], Column] = lambda parts: parts[0]


def _running(function: WindowFunction, of: spark.DataType) -> Running | None:
    """A function over values of a type; None for those that need the newest rows only."""
    is_decimal, is_whole = (isinstance(of, one) for one in (spark.DecimalType, spark.IntegralType))
    double = spark.DoubleType()
    match function:
        case WindowFunction.COUNT:
            return Running(lambda x: [sf.count(x)], lambda a, b: [a[0] + b[0]])
        case WindowFunction.SUM:
            added = _added(_more(of, 10, 0) if is_decimal else _LONG if is_whole else double)
            return Running(lambda x: [sf.sum(x)], added)
        case WindowFunction.AVG:
            added = _added(_more(of, 10, 0) if is_decimal else double)
            mean = _more(of, 4, 4) if is_decimal else double
            return Running(
                lambda x: [sf.sum(x if is_decimal else x.cast(double)), sf.count(x)],
                lambda a, b: [*added(a[:1], b[:1]), a[1] + b[1]],
                lambda parts: sf.when(parts[1] > 0, (parts[0] / parts[1]).cast(mean)),
            )
        case WindowFunction.MIN:
            return Running(lambda x: [sf.min(x)], lambda a, b: [sf.least(a[0], b[0])])
        case WindowFunction.MAX:
            return Running(lambda x: [sf.max(x)], lambda a, b: [sf.greatest(a[0], b[0])])
        case WindowFunction.FIRST:
            return Running(
                lambda x: [sf.min(_dated(x))],
                lambda a, b: [sf.coalesce(a[0], b[0])],
                lambda parts: parts[0].getField("value"),
            )
        case WindowFunction.APPROX_COUNT_DISTINCT:
            return Running(
                lambda x: [sf.hll_sketch_agg(x)],
                lambda a, b: [sf.hll_union(a[0], b[0])],
                lambda parts: sf.hll_sketch_estimate(parts[0]),
            )
        case WindowFunction.LAST | WindowFunction.LAST_K:
            return None


def _more(of: spark.DataType, digits: int, scale: int) -> spark.DecimalType:
    """Spark's type of a sum or a mean: some digits more, as far as there are any."""
    assert isinstance(of, spark.DecimalType)
    return spark.DecimalType(
        min(of.precision + digits, MOST_DIGITS), min(of.scale + scale, MOST_DIGITS)
    )


def _added(type_: spark.DataType) -> Callable[[Parts, Parts], Parts]:
    terms = type_
    if isinstance(type_, spark.DecimalType) and type_.precision == MOST_DIGITS:
        # Spark would round the sum of two to have a digit for what is carried.
        terms = spark.DecimalType(MOST_DIGITS - 1, type_.scale)

    def added(early: Parts, late: Parts) -> Parts:
        (a,), (b,) = early, late
        both = (a.cast(terms) + b.cast(terms)).cast(type_)
        return [sf.when(a.isNull(), b).when(b.isNull(), a).otherwise(both)]

    return added


def _dated(value: Column) -> Column:
    return sf.when(
        value.isNotNull(), sf.struct(sf.col(asof.TIME).alias("time"), value.alias("value"))
    )


def value_fault(one: WindowAggregate, type_: spark.DataType) -> str:
    """The reason why values of a type cannot be aggregated, and a fix; empty if they can."""
    declared = from_spark(type_)
    fault = one.fault("" if declared is None else DataType.variant_of(declared))
    is_sum = one.function in (WindowFunction.SUM, WindowFunction.AVG)
    if is_sum and isinstance(type_, spark.DecimalType) and type_.scale == MOST_DIGITS:
        return f"{one.function} has no digit for what is carried: cast it by a fieldTransformer"
    return fault


# The join.

_LONG = spark.LongType()
_BLOCK, _BLOCK_BEFORE, _START, _NEWEST = "_block", "_block_before", "_start", "_newest"
"""Columns of both sides together: the number of a row's block, that of the block in which its
window begins, the time at which it does, and the time of the newest row of the right side so far;
a row of the right side is where its own time is."""
_LEAST = -(2**63)


@dataclass(frozen=True)
class WindowsJoin:
    """Windows of a source: their rule, and the columns that they need."""

    number: int
    rule: Windows
    parent: Found
    child: Found
    fields: Mapping[str, Found]
    """The fields that are aggregated, by their names in the rule."""

    @property
    def left_time(self) -> str:
        """Name of the left side's column of times, in microseconds."""
        return f"at{self.number}"

    @property
    def right_times(self) -> list[str]:
        """Names of the columns that the right side has beside its key: the time, and inputs."""
        return [f"from{self.number}", *self._inputs()]

    @property
    def outcome(self) -> str:
        return f"as_of{self.number}"

    def counted(self) -> dict[str, Column]:
        """Conditions of rows that are counted: to have a row in the longest window."""
        return {f"matched_{self.number}": sf.col(self.outcome) == asof.MATCHED}

    def left_column(self) -> Column:
        return self._micros(self.parent).alias(self.left_time)

    def right_columns(self) -> list[Column]:
        values = (value.alias(name) for name, (value, _) in self._inputs().items())
        return [self._micros(self.child).alias(self.right_times[0]), *values]

    def _micros(self, field: Found) -> Column:
        wanted = asof.compared_as([self.parent.data_type, self.child.data_type])
        assert wanted is not None  # `fault_of` has refused what has none
        return sf.unix_micros(
            asof.comparable(field, wanted, self.rule.time_zone).cast(asof.INSTANT)
        )

    def _inputs(self) -> dict[str, tuple[Column, spark.DataType]]:
        """Inputs by name, each once, with their types."""
        named = ((self._input(one), one) for one in self.rule.aggregates if one.field)
        return {name: self._value(one) for name, one in named if name is not None}

    def _input(self, one: WindowAggregate) -> str | None:
        """Name of the input of an aggregate; of counts and sketches it is not the value itself."""
        if one.field is None:
            return None
        forms = {WindowFunction.COUNT: "is", WindowFunction.APPROX_COUNT_DISTINCT: "hash"}
        place = list(self.fields).index(one.field)
        return f"{forms.get(one.function, 'in')}{self.number}_{place}"

    def _value(self, one: WindowAggregate) -> tuple[Column, spark.DataType]:
        found = self.fields[one.field or ""]
        value = sf.col(found.expression)
        if one.function is WindowFunction.COUNT:
            return sf.when(value.isNotNull(), sf.lit(True)), spark.BooleanType()
        if isinstance(found.data_type, (spark.FloatType, spark.DoubleType)):
            value += sf.lit(0.0).cast(found.data_type)  # -0.0 is 0.0
        if one.function is WindowFunction.APPROX_COUNT_DISTINCT:
            return sf.when(value.isNotNull(), sf.xxhash64(value)), _LONG
        return value, found.data_type

    def _of(self, one: WindowAggregate) -> Running | None:
        of = spark.NullType() if one.field is None else self.fields[one.field].data_type
        return _running(one.function, of)

    def joined(
        self, left: DataFrame, right: DataFrame, keys: Sequence[tuple[str, str]], packed: str
    ) -> DataFrame:
        """The rows of the left side with their windows, in a column `packed`, and the outcome.

        `keys` has the columns of the key, left and right.
        """
        names = [f"_key{n}" for n in range(len(keys))]
        both = self._over_all(self._both(left, right, keys), names)
        for size in sorted(
            {asof.microseconds(one.over) for one in self.rule.aggregates if one.over}
        ):
            both = self._over(both, names, size)
        columns = asof.left_columns(left, keys, self.left_time)
        numbered = enumerate(self.rule.aggregates)
        values = [self._result(n, one).alias(one.name) for n, one in numbered]
        row = sf.struct(sf.struct(*values).alias("data")).alias(packed)
        outcome = sf.when(self._has_met(), asof.MATCHED).otherwise(asof.NONE).cast("byte")
        held = both.where(sf.col(asof.LEFT).isNotNull())
        return held.select(*columns, row, outcome.alias(self.outcome))

    def _both(
        self, left: DataFrame, right: DataFrame, keys: Sequence[tuple[str, str]]
    ) -> DataFrame:
        """The rows of both sides: those of the left one whole in a column, and all inputs."""
        time, *inputs = self.right_times
        holding = (sf.col(name).isNotNull() for name in (*(own for _, own in keys), time))
        rights, recent = self._with_recent(right.where(reduce(and_, holding)), keys)
        taken = {name: name for name in (*inputs, *recent)}
        return asof.both_sides(left, rights, keys, (self.left_time, time), taken)

    def _with_recent(
        self, right: DataFrame, keys: Sequence[tuple[str, str]]
    ) -> tuple[DataFrame, list[str]]:
        """The right side with the last values up to each, for LAST_K, and the columns' names."""
        most: dict[str, int] = {}
        for one in self.rule.aggregates:
            name = self._input(one)
            if name is not None and one.k is not None:
                most[name] = max(one.k, most.get(name, 0))
        time = self.right_times[0]
        for name, k in most.items():
            value = sf.col(name)
            window = Window.partitionBy(*(own for _, own in keys), value.isNull()).orderBy(
                time, name
            )
            dated = sf.struct(sf.col(time).alias("time"), value.alias("value"))
            recent = sf.struct(
                sf.count(sf.lit(1)).over(_up_to_it(window)).alias("place"),
                sf.collect_list(dated).over(window.rowsBetween(1 - k, _HERE)).alias("rows"),
            )
            right = right.withColumn(f"recent_{name}", sf.when(value.isNotNull(), recent))
        return right, [f"recent_{name}" for name in most]

    def _order(self, both: DataFrame, *, rights_first: bool) -> list[Column]:
        side = sf.col(asof.LEFT).isNotNull()
        inputs = [name for name in self.right_times[1:] if name in both.columns]
        return [sf.asc(side) if rights_first else sf.desc(side), *map(sf.asc, inputs)]

    def _over_all(self, both: DataFrame, keys: Sequence[str]) -> DataFrame:
        """The newest rows, and aggregates of all time before, which need no blocks."""
        is_right = sf.col(asof.LEFT).isNull()
        order = self._order(both, rights_first=self.rule.inclusive)
        window = _up_to_it(Window.partitionBy(*keys).orderBy(sf.asc(asof.TIME), *order))
        found = {_NEWEST: sf.max(sf.when(is_right, sf.col(asof.TIME)))}
        for n, one in enumerate(self.rule.aggregates):
            running, name = self._of(one), self._input(one)
            if running is None and one.k is not None:
                found[f"last_k_{name}"] = sf.max(f"recent_{name}")
            elif running is None:
                found[f"last_{name}"] = sf.max(_dated(sf.col(name or "")))
            elif one.over is None:
                found |= self._parts(n, one, running)
        return _of_lefts(both, {name: column.over(window) for name, column in found.items()})

    def _over(self, both: DataFrame, keys: Sequence[str], size: int) -> DataFrame:
        """Windows of a length, in microseconds: from two running aggregates in blocks of it."""
        found: dict[str, Column] = {}
        functions: list[tuple[int, Running, int]] = []
        for n, one in enumerate(self.rule.aggregates):
            running = self._of(one)
            if running is not None and one.over and asof.microseconds(one.over) == size:
                parts = self._parts(n, one, running)
                functions.append((n, running, len(parts)))
                found |= parts
        if not found:
            return both
        is_right, time = sf.col(asof.LEFT).isNull(), sf.col(asof.TIME)
        block = sf.expr(f"{asof.TIME} div {size}L - CAST({asof.TIME} % {size}L < 0 AS BIGINT)")
        start = sf.coalesce(sf.try_subtract(time, sf.lit(size)), sf.lit(_LEAST))
        before = sf.when(is_right, block).otherwise(sf.try_subtract(block, sf.lit(1)))
        placed = both.select(
            "*",
            block.alias(_BLOCK),
            before.alias(_BLOCK_BEFORE),
            sf.when(is_right, time).otherwise(start).alias(_START),
        )
        inclusive = self.rule.inclusive
        along = self._order(both, rights_first=inclusive)
        late = _up_to_it(Window.partitionBy(*keys, _BLOCK).orderBy(sf.asc(asof.TIME), *along))
        against = self._order(both, rights_first=not inclusive)
        early = _up_to_it(
            Window.partitionBy(*keys, _BLOCK_BEFORE).orderBy(sf.desc(_START), *against)
        )
        placed = _of_lefts(placed, {f"late_{name}": one.over(late) for name, one in found.items()})
        placed = _of_lefts(
            placed, {f"early_{name}": one.over(early) for name, one in found.items()}
        )
        merged = {
            _part(n, place): part
            for n, running, count in functions
            for place, part in enumerate(
                running.merged(_columns("early_", n, count), _columns("late_", n, count))
            )
        }
        return placed.select(*both.columns, *(part.alias(name) for name, part in merged.items()))

    def _parts(self, n: int, one: WindowAggregate, running: Running) -> dict[str, Column]:
        name = self._input(one)
        value = sf.col(name) if name else sf.when(sf.col(asof.LEFT).isNull(), sf.lit(True))
        return {_part(n, place): part for place, part in enumerate(running.parts(value))}

    def _result(self, n: int, one: WindowAggregate) -> Column:
        """The value of an aggregate for a row of the left side."""
        running, name = self._of(one), self._input(one)
        if running is not None:
            count = len(running.parts(sf.lit(None)))
            return running.value(_columns("", n, count))
        if one.k is None:
            last = sf.col(f"last_{name}")
            return sf.when(self._is_within(last["time"], one.over), last["value"])
        rows = sf.reverse(sf.col(f"last_k_{name}")["rows"])
        within = sf.filter(rows, lambda row: self._is_within(row["time"], one.over))
        values = sf.slice(sf.transform(within, lambda row: row["value"]), 1, one.k)
        return sf.when(sf.size(values) > 0, values)

    def _has_met(self) -> Column:
        lengths = [one.over for one in self.rule.aggregates]
        known = [one for one in lengths if one is not None]
        longest = max(known, key=asof.microseconds) if len(known) == len(lengths) else None
        return self._is_within(sf.col(_NEWEST), longest)

    def _is_within(self, time: Column, over: TimeOffset | None) -> Column:
        """Whether a time before a row of the left side is not too long before it."""
        if over is None:
            return time.isNotNull()
        distance, size = sf.try_subtract(sf.col(asof.TIME), time), sf.lit(asof.microseconds(over))
        is_within = distance < size if self.rule.inclusive else distance <= size
        return sf.coalesce(is_within, sf.lit(False))


_HERE = Window.currentRow


def _up_to_it(window: WindowSpec) -> WindowSpec:
    return window.rowsBetween(Window.unboundedPreceding, _HERE)


def _of_lefts(both: DataFrame, found: Mapping[str, Column]) -> DataFrame:
    """The rows with further columns, which only those of the left side need."""
    is_left = sf.col(asof.LEFT).isNotNull()
    return both.select("*", *(sf.when(is_left, one).alias(name) for name, one in found.items()))


def _part(n: int, place: int) -> str:
    return f"part{n}_{place}"


def _columns(side: str, n: int, count: int) -> Parts:
    return [sf.col(f"{side}{_part(n, place)}") for place in range(count)]


# Either way in which times count.

TimedJoin = asof.AsOfJoin | WindowsJoin


def timed_join(
    number: int, rule: AsOf | Windows, parent: spark.StructType, child: spark.StructType
) -> TimedJoin:
    """The join of a child by a rule; `snaploom.engine.schemachecks` has found all its fields."""
    if isinstance(rule, AsOf):
        return asof.as_of_join(number, rule, parent, child)
    at, since = find_field(parent, rule.parent_field), find_field(child, rule.child_field)
    assert at is not None
    assert since is not None
    names = dict.fromkeys(one.field for one in rule.aggregates if one.field is not None)
    found = {name: find_field(child, name) for name in names}
    fields = {name: field for name, field in found.items() if field is not None}
    return WindowsJoin(number, rule, at, since, fields)
