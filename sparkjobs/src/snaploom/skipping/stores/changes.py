"""What this process committed, so that what it caches of a store is not older than that."""

from __future__ import annotations

import threading
from collections import Counter

_commits: Counter[str] = Counter()
_lock = threading.Lock()


def note_commit(store_uri: str) -> None:
    """Every store calls this after a commit of its own."""
    with _lock:
        _commits[store_uri] += 1


def commits_noted(store_uri: str) -> int:
    """A number that differs when something was committed in between."""
    with _lock:
        return _commits[store_uri]
