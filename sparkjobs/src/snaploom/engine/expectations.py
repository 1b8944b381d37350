"""Expectations about a woven snapshot: `checks[]`, `matchedRows` and `rootKey`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from operator import or_

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as spark_types
from sqlglot import exp

from snaploom.engine.fold import DATA, Observing, Point
from snaploom.engine.rowcounts import (
    LISTENER_PATIENCE,
    VALUE_LENGTH,
    await_listeners,
    ran_exactly_once,
)
from snaploom.errors import CheckFailed, CheckInvalid
from snaploom.models.common import CheckMode
from snaploom.models.outputdataset import Check, OutputDataset
from snaploom.models.report import CheckResult, JoinMeasure
from snaploom.policy.sqlconditions import parse_expression
from snaploom.policy.sqlfunctions import CHANGES_VERDICTS
from snaploom.policy.sqltext import SqlRefused, scan
from snaploom.spark.gate import SqlPlace, check_resolved, checked_expression
from snaploom.spark.trees import AGGREGATES
from snaploom.spark.types import find_field
from snaploom.types.schemas import quote

# Shares of rows that must find a match (`matchedRows`), against the counts at the joins.


@dataclass(frozen=True, slots=True)
class _LowShare:
    """A join with fewer matches than are expected."""

    place: int
    """Of the source in `otherDataSources`."""
    join: JoinMeasure
    at_least: float
    mode: CheckMode

    def __str__(self) -> str:
        share = self.join.matched / self.join.in_
        return (
            f"`{self.join.child}`: {self.join.matched} of {self.join.in_} rows found a match "
            f"({share:.2%}; matchedRows.atLeast is {self.at_least:g})"
        )


def low_match_warnings(output: OutputDataset, joins: Iterable[JoinMeasure]) -> tuple[str, ...]:
    """Warnings about joins of mode WARN with a lower share than `matchedRows` has."""
    low = tuple(_low_shares(output, {join.child: join for join in joins}))
    failing = [one for one in low if one.mode is CheckMode.FAIL]
    if failing:
        raise CheckFailed(
            "fewer rows found a match than matchedRows expects",
            resource=output.identity,
            path=f"spec.dataModel.otherDataSources[{failing[0].place}].matchedRows",
            found="\n            ".join(map(str, failing)),
            expected="the declared share of rows, or more",
            hint="look at the source's snapshot and at the keys of both sides; lower atLeast, or "
            "set mode: WARN, where so many rows are right",
        )
    return tuple(map(str, low))


def _low_shares(output: OutputDataset, joins: Mapping[str, JoinMeasure]) -> Iterable[_LowShare]:
    for place, other in enumerate(output.spec.data_model.other_data_sources):
        expected, join = other.matched_rows, joins.get(other.field_name)
        # Without its source, a snapshot has no such join; the Report has why.
        if expected is None or join is None:
            continue
        # In decimals: 0.07 of 100 rows are 7 rows, and 7.000000000000001 as floats.
        if join.matched < Decimal(repr(expected.at_least)) * join.in_:
            yield _LowShare(place, join, expected.at_least, expected.mode)


# Expectations about a woven snapshot (`checks[]`), and the uniqueness of its `rootKey`.

ROOT_KEY = "rootKey"
"""Name of the result about the uniqueness of the root's key."""
SAMPLES = 5
"""Keys that occur twice which a message shows: enough to look for the others."""
_MOST_VALUES = 5
"""Aggregates whose values a message shows."""
_TOP = Point(0, is_out=True)
"""The whole woven frame: an observation there always completes (rule W25)."""


@dataclass(frozen=True)
class _Measure:
    check: Check
    path: str
    column: Column
    """An aggregate: whether the expectation holds, or how many rows break it."""
    is_of_rows: bool

    def holds(self, value: object) -> bool:
        return value == 0 if self.is_of_rows else value is True


class Expectations:
    """The expectations of one output about one woven frame."""

    def __init__(
        self, output: OutputDataset, frame: DataFrame, *, is_written: bool = False
    ) -> None:
        """Resolve the expectations, and observe those that can be observed.

        `is_written` is whether all are measured in the written files: where the rows are there
        already, or an observation would cut a native plan.

        Raises:
            CheckInvalid: one that must hold cannot be measured on these rows.
        """
        self._output = output
        self._observing = Observing()
        self._broken: list[CheckResult] = []
        # A query that Spark refuses fails every observation in it, those of the joins included
        # (measured with 4.3): what is refused is found out on a frame that has none.
        shape = frame.sparkSession.createDataFrame([], frame.schema)
        measures = []
        for index, check in enumerate(self._output.spec.checks):
            path = f"spec.checks[{index}].expression"
            try:
                measures.append(self._measure(shape, check, path))
            except CheckInvalid as error:
                if check.mode is CheckMode.FAIL:
                    raise
                reason = f"it cannot be measured: {error.found}"[:VALUE_LENGTH]
                self._broken.append(_check_result(check, holds=False, measured=reason))
        self._measures = measures
        self._observed = [
            each for each in self._measures if not is_written and _is_observable(shape, each.column)
        ]
        key = output.spec.data_model.root_data_source.root_key
        self._key = key_columns(frame.schema, key, output.identity)
        self.frame = frame
        """The frame to write."""
        if self._observed:
            columns = [each.column.alias(_name(each)) for each in self._observed]
            self.frame = self._observing.at(_TOP, frame, columns)

    def settle(
        self, spark: SparkSession, job_group: str, staged: Callable[[], DataFrame]
    ) -> tuple[CheckResult, ...]:
        """Their results, once `frame` was written; call it before anything is published.

        `job_group` is that of the jobs that wrote. `staged` reads the written rows back, only when
        they are needed.

        Raises:
            CheckFailed: an expectation that must hold does not.
        """
        values = self._values(spark, job_group)
        doubtful = [
            each
            for each in self._measures
            if _name(each) not in values or not each.holds(values[_name(each)])
        ]
        rows = staged() if doubtful or self._key else None
        if rows is not None and doubtful:
            row = rows.agg(*(each.column.alias(_name(each)) for each in doubtful)).first()
            assert row is not None  # an aggregation without keys has one row
            values |= row.asDict()
        results = [self._result(each, values, rows) for each in self._measures]
        if rows is not None and self._key:
            results.append(uniqueness(rows, self._key))
        results.extend(self._broken)
        self._refuse(results)
        return tuple(results)

    def _measure(self, shape: DataFrame, check: Check, path: str) -> _Measure:
        place = SqlPlace(
            self._output.identity, path, CheckInvalid, "an expression of listed functions",
            varying=CHANGES_VERDICTS,
        )  # fmt: skip
        session = shape.sparkSession
        expression = checked_expression(session, check.expression, place, AGGREGATES).column
        try:
            selected = shape.select(expression.alias("holds"))
            check_resolved(selected, [shape], place, AGGREGATES)
        except AnalysisException as refusal:
            raise self._invalid(check, path, str(refusal).splitlines()[0]) from refusal
        kind = selected.schema.fields[0].dataType
        if not isinstance(kind, spark_types.BooleanType):
            raise self._invalid(check, path, f"a value of type {kind.simpleString()}")
        # Spark's own parser decides what an aggregate is: it knows functions that sqlglot does not.
        plan = selected._jdf.queryExecution().analyzed().getClass().getSimpleName()
        holds = sf.coalesce(expression, sf.lit(False))
        if plan == "Aggregate":
            return _Measure(check, path, holds, is_of_rows=False)
        return _Measure(check, path, sf.count_if(~holds), is_of_rows=True)

    def _invalid(self, check: Check, path: str, found: str) -> CheckInvalid:
        return CheckInvalid(
            f"the expectation `{check.name}` cannot be measured on this snapshot",
            resource=self._output.identity,
            path=path,
            found=found,
            expected="an expression over columns of the output that is true or false",
        )

    def _values(self, spark: SparkSession, job_group: str) -> dict[str, object]:
        if not self._observed:
            return {}
        heard = await_listeners(spark, LISTENER_PATIENCE)
        if not (heard and ran_exactly_once(spark, job_group)):
            return {}
        return dict(self._observing.read(patience=0.0).get(_TOP, {}))

    def _result(
        self, measure: _Measure, values: Mapping[str, object], rows: DataFrame | None
    ) -> CheckResult:
        value = values[_name(measure)]
        holds = measure.holds(value)
        if holds or rows is None:
            return _check_result(measure.check, holds=holds)
        if measure.is_of_rows:
            return _check_result(measure.check, holds=False, measured=f"{value} rows break it")
        return _check_result(measure.check, holds=False, measured=self._aggregates(rows, measure))

    def _aggregates(self, rows: DataFrame, measure: _Measure) -> str:
        place = SqlPlace(
            self._output.identity, measure.path, CheckInvalid, "an expression of listed functions"
        )
        try:
            parsed = parse_expression(scan(measure.check.expression))
            found = dict.fromkeys(one.sql("spark") for one in parsed.find_all(exp.AggFunc))
            texts = list(found)[:_MOST_VALUES]
            columns = [
                checked_expression(rows.sparkSession, text, place, AGGREGATES).column.cast("string")
                for text in texts
            ]
            row = None
            if columns:
                made = rows.agg(*columns)
                check_resolved(made, [rows], place, AGGREGATES)
                row = made.first()
        except (AnalysisException, CheckInvalid, SqlRefused):
            row = None  # an aggregate of a part only; its value would help, no more
        if row is None:
            return "it is not true"
        values = zip(texts, row, strict=False)
        return ", ".join(f"{text} = {str(value)[:VALUE_LENGTH]}" for text, value in values)

    def _refuse(self, results: Sequence[CheckResult]) -> None:
        failed = [one for one in results if one.mode is CheckMode.FAIL and not one.holds]
        if not failed:
            return
        raise CheckFailed(
            "the woven rows do not meet their expectations",
            resource=self._output.identity,
            path="spec.checks"
            if failed[0].name != ROOT_KEY
            else "spec.dataModel.rootDataSource.rootKey",
            found="; ".join(f"{one.name}: {one.measured}" for one in failed),
            expected="; ".join(self._expected(one.name) for one in failed),
            hint=_how_to_pass(failed),
        )

    def _expected(self, name: str) -> str:
        for check in self._output.spec.checks:
            if check.name == name:
                return check.expression
        return "every key of the root once, and no NULL in it"


def _how_to_pass(failed: Sequence[CheckResult]) -> str:
    ways = []
    if any(one.name == ROOT_KEY for one in failed):
        ways.append(
            "remove the rows that repeat a key from the root's source, or name columns in rootKey "
            "that identify a row; without rootKey nothing is checked"
        )
    if any(one.name != ROOT_KEY for one in failed):
        ways.append("correct the source, or the expectation; mode: WARN publishes with a warning")
    return "; ".join(ways)


def check_warnings(results: Sequence[CheckResult]) -> tuple[str, ...]:
    """Warnings about expectations that do not hold and do not stop publication."""
    return tuple(
        f"the expectation `{one.name}` does not hold: {one.measured}"
        for one in results
        if not one.holds
    )


def _name(measure: _Measure) -> str:
    return measure.check.name


def _check_result(check: Check, *, holds: bool, measured: str = "") -> CheckResult:
    return CheckResult(name=check.name, mode=check.mode, holds=holds, measured=measured)


def _is_observable(shape: DataFrame, column: Column) -> bool:
    try:
        Observing().at(_TOP, shape, [column.alias("value")])
    except AnalysisException:
        return False  # Spark refuses DISTINCT and FILTER
    return True


def key_columns(
    schema: spark_types.StructType, names: Sequence[str], owner: str = ""
) -> tuple[str, ...]:
    """The columns of the root's key among those of a woven frame, as Spark's parser reads them."""
    expressions = []
    for name in names:
        root = find_field(schema, DATA)
        found = find_field(root.data_type, name) if root is not None else None
        if found is None:
            raise CheckInvalid(
                "the root has no such column in this snapshot",
                resource=owner,
                path="spec.dataModel.rootDataSource.rootKey",
                found=name,
                expected="a column of the root",
                hint="correct rootKey, or the root's data; 'snaploom schema' lists the columns",
            )
        expressions.append(f"{quote(DATA)}.{found.expression}")
    return tuple(expressions)


def uniqueness(rows: DataFrame, key: Sequence[str]) -> CheckResult:
    """Whether every key of the root is in the rows once, and none is NULL; the first few if not."""
    names = [f"k{number}" for number in range(len(key))]
    keys = rows.select(*(sf.col(text).alias(name) for text, name in zip(key, names, strict=True)))
    is_null = reduce(or_, [sf.col(name).isNull() for name in names])
    counted = keys.groupBy(*names).agg(sf.count(sf.lit(1)).alias("rows"))
    broken = counted.where((sf.col("rows") > 1) | is_null)
    samples = broken.orderBy(sf.desc("rows"), *names).limit(SAMPLES).collect()
    shown = (
        f"({', '.join(str(part)[:VALUE_LENGTH] for part in sample[:-1])}) in {sample[-1]} rows"
        for sample in samples
    )
    return CheckResult(
        name=ROOT_KEY, mode=CheckMode.FAIL, holds=not samples, measured=", ".join(shown)
    )
