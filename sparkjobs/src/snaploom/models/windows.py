"""Windows: aggregates of a source's rows over lengths of time before each row's own time."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, ClassVar, Self

from annotated_types import Ge, Le, MaxLen, MinLen
from pydantic import model_validator

from snaploom.models import common
from snaploom.models.asof import NUMBERS, TIMES, order_fault
from snaploom.models.base import ApiModel, CelRule, ListType, contradiction
from snaploom.models.shortforms import LENGTH_NOT_ZERO

MOST_AGGREGATES = 64
"""Of one source: each adds columns to all rows while they are sorted."""
MOST_VALUES = 100
"""That LAST_K gives: each row of the source has as many with it while rows are sorted."""
SHOWN_AGGREGATES = 4
"""Aggregates that a line of text names."""


class WindowFunction(StrEnum):
    """Value that a window gives. NULL values of the field count for none of them."""

    COUNT = "COUNT"
    """Number of values, or of rows where no field is given; 0 for none."""
    SUM = "SUM"
    """Sum of numbers: `bigint` of whole ones, `double` of `float` and `double`, and of decimals
    `decimal` with ten digits more; a sum beyond its type fails the snapshot."""
    AVG = "AVG"
    """Mean of numbers: `double`, of decimals `decimal` with four digits more."""
    MIN = "MIN"
    """Least value."""
    MAX = "MAX"
    """Greatest value; NaN is greater than all numbers."""
    FIRST = "FIRST"
    """Value of the earliest time; of several the least."""
    LAST = "LAST"
    """Value of the latest time; of several the greatest."""
    LAST_K = "LAST_K"
    """List of the `k` last values, the last one first; equal times are in the order of values."""
    APPROX_COUNT_DISTINCT = "APPROX_COUNT_DISTINCT"
    """Approximate number of different values, by a HyperLogLog sketch with a standard error of
    1.6 %; 0 for none."""


_ANY = frozenset(WindowFunction) - {WindowFunction.SUM, WindowFunction.AVG}
_PLAIN = TIMES | NUMBERS | {"boolean", "string", "binary"}


class WindowAggregate(ApiModel):
    """A value for each row of the parent, from the rows of the source in the window before it."""

    cel_rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule(
            "has(self.field) || self.__function__ == 'COUNT'",
            "field may be left out with COUNT only",
        ),
        CelRule(
            "has(self.k) == (self.__function__ == 'LAST_K')", "k is for LAST_K, which needs it"
        ),
    )

    name: common.FieldName
    """Column of the output that has the value."""
    function: WindowFunction
    """Value that the window gives."""
    field: common.ColumnName | None = None
    """Column of the source; omitted, COUNT counts rows."""
    over: Annotated[common.TimeOffset, LENGTH_NOT_ZERO] | None = None
    """Length of the window, in weeks or less; a day has 24 hours. Omitted, all time before."""
    k: Annotated[int, Ge(1), Le(MOST_VALUES)] | None = None
    """With LAST_K, the most values that the list has."""

    @model_validator(mode="after")
    def _combined(self) -> Self:
        if self.field is None and self.function is not WindowFunction.COUNT:
            raise contradiction(
                "field may be left out with COUNT only",
                found=f"{self.function} without a field",
                expected="a column of the source",
                hint="give field, or use COUNT",
            )
        if (self.k is None) == (self.function is WindowFunction.LAST_K):
            raise contradiction(
                "k is for LAST_K, which needs it",
                found=f"{self.function} {'without k' if self.k is None else f'and k {self.k}'}",
                expected=f"LAST_K with k, from 1 to {MOST_VALUES}",
                hint="give `k: 5`" if self.k is None else "leave out k, or use LAST_K",
            )
        if self.over is not None:
            common.refuse_nothing("over", self.over)
            if self.over.nano % 1000:
                raise contradiction(
                    "over must be a number of whole microseconds, which times have",
                    found=f"{self.over.nano} ns",
                    expected="a multiple of 1000 ns",
                    hint="round the length",
                )
        return self

    @property
    def text(self) -> str:
        """The aggregate in a few words: `SUM of amount over 30d`."""
        of = "" if self.field is None else f" of {self.field}"
        k = "" if self.k is None else f" ({self.k})"
        over = "" if self.over is None else f" over {self.over.text}"
        return f"{self.function}{k}{of}{over}"

    @property
    def example(self) -> str:
        """A type that the function takes, in SQL."""
        return "string" if self.function in _ANY else "double"

    def fault(self, type_: str) -> str:
        """The reason why a column of a type (`timestampNtz`) cannot be aggregated, and a fix.

        Empty if it can.
        """
        if self.function is WindowFunction.COUNT:
            return ""
        if self.function not in _ANY and type_ not in NUMBERS:
            return f"{self.function} needs numbers: cast it by a fieldTransformer, or use COUNT"
        if type_ not in _PLAIN:
            return (
                f"{self.function} needs plain values: name a field inside, or cast it by a "
                "fieldTransformer"
            )
        return ""


class Windows(ApiModel):
    """Aggregates of the rows with the same key in windows before each row's own time.

    A window of the length `over` at the time t has the rows from t - over on, up to and without t,
    so that a row has nothing of its own instant or of later ones. Each row has one value for each
    aggregate: NULL, and 0 for counts, where there is nothing in its window, or its key or time is
    NULL.
    """

    place: ClassVar[str] = "windows"

    parent_field: common.ColumnName
    """Column with the time of the row that the source is joined to."""
    child_field: common.ColumnName
    """Column of the source with the time of its row."""
    inclusive: bool = False
    """Whether rows of the very same time are in the window; it is later by an instant then: what
    lies back by `over` exactly is not in it."""
    time_zone: common.TimeZoneName | None = None
    """Zone of dates, and of times without a zone, that are compared with instants; needed there."""
    aggregates: Annotated[
        tuple[WindowAggregate, ...],
        MinLen(1),
        MaxLen(MOST_AGGREGATES),
        ListType("map", keys=("name",)),
    ]
    """The values, each a column."""

    @property
    def time_fields(self) -> tuple[str, ...]:
        """Those of `child_fields` that are times."""
        return ("childField",)

    @property
    def lengths(self) -> dict[str, common.TimeOffset]:
        """Lengths of time by the path of their fields."""
        named = enumerate(self.aggregates)
        return {f"aggregates[{n}].over": one.over for n, one in named if one.over is not None}

    @property
    def child_fields(self) -> dict[str, str]:
        """Columns of the source, by the path of the field that names them."""
        named = enumerate(self.aggregates)
        fields = {f"aggregates[{n}].field": one.field for n, one in named if one.field is not None}
        return {"childField": self.child_field, **fields}

    @property
    def fields_by_name(self) -> dict[str, str]:
        """Columns of the source by names of values in lower case.

        Rows are counted by their times.
        """
        return {one.name.casefold(): one.field or self.child_field for one in self.aggregates}

    @property
    def text(self) -> str:
        """The windows in a few words."""
        at = "at or " if self.inclusive else ""
        shown = ", ".join(f"{one.name} {one.text}" for one in self.aggregates[:SHOWN_AGGREGATES])
        more = len(self.aggregates) - SHOWN_AGGREGATES
        rest = f" and {more} more" if more > 0 else ""
        zone = "" if self.time_zone is None else f" in {self.time_zone}"
        times = f"{self.child_field} {at}before {self.parent_field}{zone}"
        return f"windows of {times}: {shown}{rest}"

    @property
    def short_text(self) -> str:
        """The windows in as few words as fit into a picture."""
        return f"windows before {self.parent_field}"

    def fault(self, types: Iterable[str]) -> str:
        """The reason why times of these types (`timestampNtz`) have no common order, and a fix.

        Empty where they have one.
        """
        found = set(types)
        fault = order_fault(found, self.time_zone)
        if not fault and found & NUMBERS:
            return "windows are lengths of time, not of numbers: cast it by a fieldTransformer"
        return fault
