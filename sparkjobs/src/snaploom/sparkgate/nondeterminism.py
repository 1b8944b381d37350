"""Finds nondeterministic parts of a resolved plan.

The text shows most of it (`snaploom.planning.sqlgate.nondeterminism`). Only Spark knows whether a
bare `current_date` is a column, and where a quoted `now` becomes a date because of what it is
compared with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from snaploom.planning.sqlgate.functions import FUNCTIONS, Determinism
from snaploom.planning.sqlgate.nondeterminism import is_moment
from snaploom.sparkgate.kinds import USER_FUNCTIONS
from snaploom.sparkgate.treerules import Use, bare_kind

_OF_CONVERSIONS = frozenset({"UnixTimestamp"})
"""Classes that read the clock by an argument of their own class only, which is seen by itself."""
_OTHER_CLASSES: Mapping[str, tuple[Determinism, str]] = MappingProxyType(
    {
        "CurrentTimestampNanos": (Determinism.SESSION, "current_timestamp()"),
        "LocalTimestampNanos": (Determinism.SESSION, "localtimestamp()"),
        "Sample": (Determinism.RANDOM, "TABLESAMPLE"),
    }
)
"""Classes that functions and clauses come to, and that the list of functions does not name."""


def _classes() -> dict[str, tuple[Determinism, str]]:
    varying = (one for one in FUNCTIONS.values() if one.determinism is not Determinism.ROW)
    found = {name: (one.determinism, f"{one.name}()") for one in varying for name in one.classes}
    return {**found, **_OTHER_CLASSES}


_CLASSES = MappingProxyType(
    {name: shown for name, shown in _classes().items() if name not in _OF_CONVERSIONS}
)
"""Display names of classes, by simple name."""


def varying_uses(uses: Iterable[Use]) -> Iterator[tuple[Determinism, str]]:
    """Parts of a plan with varying results, in SQL's notation, and their cause."""
    for use in uses:
        name = bare_kind(use.class_name).rpartition(".")[2]
        if name in _CLASSES:
            yield _CLASSES[name]
        elif use.moment and is_moment(use.moment):
            yield Determinism.SESSION, f"'{use.moment}' as a date or a time"
        elif use.class_name in USER_FUNCTIONS and not use.is_deterministic:
            yield Determinism.RANDOM, f"{use.detail}()"
