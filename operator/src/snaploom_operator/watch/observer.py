"""What is noticed of watches, for metrics and logs."""

from __future__ import annotations

from typing import Protocol


class WatchObserver(Protocol):
    """Notices what happens to watches; `recoveries` counts and logs it."""

    def watch_began(self, kind: str, objects: int) -> None:
        """A watch started, or restarted, from a list of some objects."""
        ...

    def watch_missed(self, kind: str, changes: int) -> None:
        """A list found changes before the watch reported them."""
        ...

    def watch_died(self, kind: str) -> None:
        """A watch delivers no events."""
        ...

    def watches_restarted(self) -> None:
        """All watches were restarted."""
        ...


class Unobserved:
    """Notices nothing: for a process without metrics of single watches."""

    def watch_began(self, kind: str, objects: int) -> None:
        """Not counted."""

    def watch_missed(self, kind: str, changes: int) -> None:
        """Not counted."""

    def watch_died(self, kind: str) -> None:
        """Not counted."""

    def watches_restarted(self) -> None:
        """Not counted."""
