"""Verdicts about SQL that are kept, with a bound on their memory.

When it is reached, the namespace whose verdicts take most loses its oldest: whoever has very many
texts judged has their own judged again, and nobody else's.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from dataclasses import astuple

from snaploom.planning.sqlgate.facts import SqlFacts, SqlText, SqlVerdict

LARGEST_KEPT = 8_000_000
"""Bytes of texts and verdicts that are kept, about: some 10,000 ordinary ones."""
_OF_ONE = 500
"""Bytes of a kept verdict besides its texts."""
_OF_NAME = 60
"""Bytes of a short text of Python besides its characters, with its place in a tuple."""


class KeptVerdicts:
    """Verdicts by text; for any thread.

    Args:
        largest: bytes that they may take, about.
    """

    def __init__(self, largest: int = LARGEST_KEPT) -> None:
        self._largest = largest
        self._verdicts: dict[SqlText, SqlVerdict] = {}
        self._shares: dict[str, OrderedDict[SqlText, int]] = {}
        """By the namespace that had them judged: texts with their sizes, the oldest first."""
        self._sizes: Counter[str] = Counter()
        self._lock = threading.Lock()

    def get(self, text: SqlText) -> SqlVerdict | None:
        """The verdict about a text, where it is kept."""
        with self._lock:
            return self._verdicts.get(text)

    def put(self, namespace: str, text: SqlText, verdict: SqlVerdict) -> None:
        """Keep a verdict that a namespace asked for."""
        with self._lock:
            if text in self._verdicts:
                return
            size = _size(text, verdict)
            self._verdicts[text] = verdict
            self._shares.setdefault(namespace, OrderedDict())[text] = size
            self._sizes[namespace] += size
            while self._sizes.total() > self._largest:
                self._drop()

    def _drop(self) -> None:
        ((namespace, _),) = self._sizes.most_common(1)
        share = self._shares[namespace]
        text, size = share.popitem(last=False)
        del self._verdicts[text]
        self._sizes[namespace] -= size
        if not share:
            del self._shares[namespace], self._sizes[namespace]


def _size(text: SqlText, verdict: SqlVerdict) -> int:
    size = _OF_ONE + len(text.text)
    if isinstance(verdict, SqlFacts):
        lists = (each for each in astuple(verdict) if isinstance(each, tuple))
        size += sum(len(name) + _OF_NAME for names in lists for name in names)
    return size
