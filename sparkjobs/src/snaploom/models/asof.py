"""Points in time: snapshots that go with one of the root, and as-of joins of their rows.

By an as-of join each row finds the one row of a source that holds at the row's own time.
"""

from collections.abc import Iterable, Set
from enum import StrEnum
from typing import Annotated, ClassVar, Self

from annotated_types import Ge
from pydantic import model_validator

from snaploom.models import common
from snaploom.models.base import ApiModel, CelRule, contradiction
from snaploom.models.shortforms import LENGTH, LENGTH_NOT_ZERO

# Snapshots of a source that go with one of the root.

MOST_PARTS = 1000
"""Parts of a history: days of almost three years, hours of forty days."""


class ChildSnapshot(ApiModel):
    """Snapshot of a source that goes with one of the root."""

    preference: common.Preference = common.Preference.NEWEST
    """Choice between several snapshots in the window."""
    snapshot_missing_mode: common.MissingMode = common.MissingMode.ERROR
    """Reaction to a window without a snapshot."""
    time_before: Annotated[common.TimeOffset, LENGTH] = common.TimeOffset()
    """Extent of the window before the root's snapshot, inclusive."""
    time_after: Annotated[common.TimeOffset, LENGTH] = common.TimeOffset()
    """Extent of the window after the root's snapshot, inclusive."""
    history: Annotated[common.TimeOffset, LENGTH_NOT_ZERO] | None = None
    """Takes all snapshots of this length up to the root's, its end included, as one: `30d`. In each
    part of it (30 days) one is expected; without a history, one snapshot of the window is taken."""

    @model_validator(mode="after")
    def _of_history(self) -> Self:
        if self.history is None:
            return self
        common.refuse_nothing("history", self.history)
        others = {
            "preference": self.preference is not common.Preference.NEWEST,
            "timeBefore": not self.time_before.is_zero,
            "timeAfter": not self.time_after.is_zero,
        }
        found = [name for name, given in others.items() if given]
        if found:
            raise contradiction(
                "history takes all snapshots of its length, and so chooses none of a window",
                found=f"history with {' and '.join(found)}",
                expected="history, or a window and a preference",
                hint=f"leave out {' and '.join(found)}, or history",
            )
        unit, number = self.parts
        if number > MOST_PARTS or self.history != common.TimeOffset(**{unit: number}):
            raise contradiction(
                "history is a number of one unit, in each of which a snapshot is expected",
                found=f"history {self.history.text}",
                expected=f"a length of one unit, at most {MOST_PARTS} of it",
                hint="write `30d` for daily snapshots, `48h` for hourly ones",
            )
        return self

    @property
    def parts(self) -> tuple[str, int]:
        """Unit of the history and number of them: `day` and 30; nothing of no unit without one."""
        given = {} if self.history is None else self.history.model_dump()
        return next(((unit, number) for unit, number in given.items() if number), ("", 0))


# As-of joins.


class Direction(StrEnum):
    """Side of a row's time on which its match lies."""

    BACKWARD = "BACKWARD"
    """The newest row at or before the time."""
    FORWARD = "FORWARD"
    """The oldest row at or after the time."""
    NEAREST = "NEAREST"
    """The nearer one of the two; of equally near ones, the earlier one."""


_WORDS = {
    Direction.BACKWARD: ("newest", "before"),
    Direction.FORWARD: ("oldest", "after"),
    Direction.NEAREST: ("nearest", "beside"),
}
TIMES = frozenset({"date", "timestamp", "timestampNtz"})
"""Types of times, by their names in declarations."""
NUMBERS = frozenset({"byte", "short", "integer", "long", "float", "double", "decimal"})
"""Types of numbers, by their names in declarations."""


def order_fault(found: Set[str], time_zone: str | None) -> str:
    """The reason why columns of these types have no common order, and a fix; empty if they have."""
    others = sorted(found - TIMES - NUMBERS)
    if others:
        return f"{others[0]} is neither a time nor a number: cast it by a fieldTransformer"
    if found & TIMES and found & NUMBERS:
        return "a time is not compared with a number: cast one of them by a fieldTransformer"
    if "timestamp" in found and len(found) > 1 and time_zone is None:
        return (
            "an instant is not compared with a time of no zone: give timeZone, in which the other "
            "is meant"
        )
    return ""


class Ties(ApiModel):
    """A choice between rows of one key and one time."""

    newest_by: common.ColumnName
    """Column of the source whose greatest value decides; NULL is the least. Rows that are equal in
    it as well fail the snapshot."""


class AsOf(ApiModel):
    """A match by key and time: at most one row, so that one row stays one row."""

    cel_rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule(
            "!has(self.childUntilField) || ((!has(self.direction) || self.direction == 'BACKWARD') "
            "&& !(has(self.strict) && self.strict) && !has(self.ties))",
            "childUntilField is for direction BACKWARD, without strict and ties",
        ),
        # CEL does not know `tolerance`, which has two forms: the validator refuses the two at once.
    )

    place: ClassVar[str] = "asOf"

    parent_field: common.ColumnName
    """Column with the time of the row that the source is joined to."""
    child_field: common.ColumnName
    """Column of the source with the time from which a row holds."""
    direction: Direction = Direction.BACKWARD
    """Side of the row's time on which the match lies."""
    strict: bool = False
    """Whether a row of the very same time is no match."""
    child_until_field: common.ColumnName | None = None
    """Column of the source with the time from which a row holds no longer; NULL is open. Rows of
    one key that overlap fail the snapshot."""
    tolerance: Annotated[common.TimeOffset, LENGTH] | None = None
    """Longest time between the two, inclusive, in weeks or less; a day has 24 hours."""
    number_tolerance: Annotated[float, Ge(0)] | None = None
    """The same for columns of numbers."""
    ties: Ties | None = None
    """Choice between rows of one key and time; omitted, they fail the snapshot if a row meets
    them."""
    time_zone: common.TimeZoneName | None = None
    """Zone of dates, and of times without a zone, that are compared with instants; needed there."""

    @model_validator(mode="after")
    def _combined(self) -> Self:
        beside = {
            f"direction {self.direction}": self.direction is not Direction.BACKWARD,
            "strict": self.strict,
            "ties": self.ties is not None,
        }
        found = [name for name, given in beside.items() if given]
        if self.child_until_field is not None and found:
            raise contradiction(
                "childUntilField is for direction BACKWARD, without strict and ties",
                found=f"childUntilField with {' and '.join(found)}",
                expected="rows that hold from childField on, up to and without childUntilField",
                hint=f"leave out {' and '.join(found)}, or childUntilField",
            )
        if self.tolerance is not None and self.number_tolerance is not None:
            raise contradiction(
                "tolerance and numberTolerance exclude each other",
                found="both",
                expected="tolerance for times, or numberTolerance for numbers",
                hint="leave one of them out",
            )
        return self

    @property
    def time_fields(self) -> tuple[str, ...]:
        """Those of `child_fields` that are times."""
        return tuple(path for path in self.child_fields if path != "ties.newestBy")

    @property
    def lengths(self) -> dict[str, common.TimeOffset]:
        """Lengths of time by the path of their fields."""
        return {} if self.tolerance is None else {"tolerance": self.tolerance}

    @property
    def child_fields(self) -> dict[str, str]:
        """Columns of the source, by the path of the field that names them."""
        found = {"childField": self.child_field}
        if self.child_until_field is not None:
            found["childUntilField"] = self.child_until_field
        if self.ties is not None:
            found["ties.newestBy"] = self.ties.newest_by
        return found

    @property
    def text(self) -> str:
        """The rule in a few words: `newest valid_from at or before ordered_at, within 7d`."""
        which, side = _WORDS[self.direction]
        at = "" if self.strict else "at or "
        parts = [f"{which} {self.child_field} {at}{side} {self.parent_field}"]
        if self.child_until_field is not None:
            parts.append(f"until {self.child_until_field}")
        if self.tolerance is not None:
            parts.append(f"within {self.tolerance.text}")
        if self.number_tolerance is not None:
            parts.append(f"within {self.number_tolerance:g}")
        if self.ties is not None:
            parts.append(f"of ties the greatest {self.ties.newest_by}")
        if self.time_zone is not None:
            parts.append(f"in {self.time_zone}")
        return ", ".join(parts)

    @property
    def short_text(self) -> str:
        """The rule in as few words as fit into a picture."""
        return f"as of {self.parent_field}"

    def fault(self, types: Iterable[str]) -> str:
        """The reason why columns of these types (`timestampNtz`) have no common order, and a fix.

        Empty where they have one.
        """
        found = set(types)
        fault = order_fault(found, self.time_zone)
        if fault:
            return fault
        if found & TIMES and self.number_tolerance is not None:
            return "numberTolerance is for numbers: give tolerance, such as 7d"
        if found & NUMBERS and self.tolerance is not None:
            return "tolerance is a length of time: give numberTolerance"
        return ""
