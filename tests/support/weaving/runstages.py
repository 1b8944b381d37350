"""What is done to the sources of a run when it reaches a stage, on whichever store they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from typing import Any

import pytest

from snaploom.output.publication import Work
from snaploom.run.weaving import ahead, preparation, snapshot
from snaploom.sources.readers import Sources

STAGES = ("listing", "planned", "read", "writing", "written", "looked", "promoted")
"""Of a run, in their order: each follows what it is called after, but `writing`, which is before.
What is replaced until `written` is found by the look, and what is replaced later is not read."""
PAIRS = tuple(combinations_with_replacement(STAGES, 2))
"""When a child is replaced, and then the root."""
STORE_PAIRS = tuple(pair for pair in PAIRS if "written" in pair)
"""Those of which one is after the read and before the look: tried on each store."""
_CALLS = (
    (preparation, "_listing", "", "listing"),
    (preparation, "plan_listed", "", "planned"),
    (snapshot.SnapshotWeaver, "_write", "read", ""),
    (snapshot, "write_frame", "writing", "written"),
    (ahead, "write_frame", "writing", "written"),
    (Sources, "list_again", "again", ""),
    (Work, "stage", "", "looked"),
    (Work, "promote", "", "promoted"),
)
"""Functions that are called at stages: which, the stage before it, and the one after it."""
Act = Callable[[], object]


@dataclass
class Stages:
    """What is done when a run reaches a stage: for the first time, or each time."""

    acts: dict[str, list[Act]] = field(default_factory=dict)
    is_repeated: bool = False

    def at(self, stage: str, act: Act) -> None:
        """Do something at a stage."""
        self.acts.setdefault(stage, []).append(act)

    @contextmanager
    def in_runs(self) -> Iterator[None]:
        """Runs of this process reach stages, as long as the block lasts."""
        with pytest.MonkeyPatch.context() as patch:
            for owner, name, before, after in _CALLS:
                patch.setattr(owner, name, self._around(getattr(owner, name), before, after))
            yield

    def _around(self, original: Any, before: str, after: str) -> Callable[..., Any]:
        def wrapped(*given: Any, **named: Any) -> Any:
            self._reach(before)
            result = original(*given, **named)
            self._reach(after)
            return result

        return wrapped

    def _reach(self, stage: str) -> None:
        for act in self.acts.get(stage, []) if self.is_repeated else self.acts.pop(stage, []):
            act()


def versions_after(first: str, then: str) -> tuple[str, str]:
    """Which version of child and root is published, where they are replaced at two stages."""
    child, root = ("old" if stage in ("looked", "promoted") else "new" for stage in (first, then))
    return child, root
