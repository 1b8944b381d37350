"""Numbers that repeat at a fixed distance: what `c % 5 = 2` leaves for `c`."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Period:
    """All numbers x for which `(x - start) modulo distance` is at most `length`."""

    distance: Fraction
    """Greater than nought."""
    start: Fraction
    length: Fraction
    """Not negative; with `distance` or more, every number belongs to it."""

    def shifted(self, by: Fraction | int) -> Period:
        """Every number plus another one."""
        return Period(self.distance, self.start + by, self.length)

    def scaled(self, factor: Fraction) -> Period:
        """Every number times another one, which is not nought."""
        end = self.start + self.length
        start = self.start * factor if factor > 0 else end * factor
        return Period(self.distance * abs(factor), start, self.length * abs(factor))

    def widened(self, down: Fraction | int, up: Fraction | int) -> Period:
        """Numbers up to so far below and above, too."""
        return Period(self.distance, self.start - down, self.length + down + up)
