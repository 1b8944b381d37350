"""Shares of rows that must find a match (`matchedRows`), against the counts at the joins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from snaploom.errors import CheckFailed
from snaploom.models.common import CheckMode
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.report import JoinMeasure


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
    """Warnings about joins of mode WARN with a lower share than `matchedRows` has.

    Raises:
        CheckFailed: a share of mode FAIL is not reached, with all of these.
    """
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
