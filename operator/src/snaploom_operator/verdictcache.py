"""A bounded cache of verdicts about texts.

At the limit the namespace with the largest share loses its oldest entry, so that a namespace with
very many texts does not evict the entries of others.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from dataclasses import astuple

from snaploom.planning.judging.regexlist import RegexList
from snaploom.planning.judging.texts import JudgedText, Verdict
from snaploom.planning.sqlgate.facts import SqlFacts

LARGEST_CACHE = 8_000_000
"""Approximate bytes of cached texts and verdicts: some 10,000 ordinary ones."""
_OF_ONE = 500
"""Bytes of a cached verdict besides its texts."""
_OF_NAME = 60
"""Bytes of a short text of Python besides its characters, with its place in a tuple."""


class VerdictCache:
    """A thread-safe cache of verdicts by text, of an approximate size in bytes."""

    def __init__(self, largest: int = LARGEST_CACHE) -> None:
        self._largest = largest
        self._verdicts: dict[JudgedText, Verdict] = {}
        self._shares: dict[str, OrderedDict[JudgedText, int]] = {}
        """Sizes of texts by namespace, the oldest first."""
        self._sizes: Counter[str] = Counter()
        self._lock = threading.Lock()

    def get(self, text: JudgedText) -> Verdict | None:
        """The cached verdict of a text; None when there is none."""
        with self._lock:
            return self._verdicts.get(text)

    def put(self, namespace: str, text: JudgedText, verdict: Verdict) -> None:
        """Cache a verdict that a namespace requested."""
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


def _size(text: JudgedText, verdict: Verdict) -> int:
    if isinstance(text, RegexList):
        return _OF_ONE + sum(len(pattern) + 2 * _OF_NAME for pattern in text.patterns)
    size = _OF_ONE + len(text.text)
    if isinstance(verdict, SqlFacts):
        lists = (each for each in astuple(verdict) if isinstance(each, tuple))
        size += sum(len(name) + _OF_NAME for names in lists for name in names)
    return size
