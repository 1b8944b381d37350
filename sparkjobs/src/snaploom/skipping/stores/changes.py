"""Commits of this process, by which caches of a store become invalid."""

from __future__ import annotations

import threading
from collections import Counter

_commits: Counter[str] = Counter()
_lock = threading.Lock()


def note_commit(store_uri: str) -> None:
    """Record a commit; every store calls it after its own."""
    with _lock:
        _commits[store_uri] += 1


def commits_noted(store_uri: str) -> int:
    """A number that changes with every commit to the store."""
    with _lock:
        return _commits[store_uri]
