"""Cycles among things that read each other, as a graph from each to those that it reads."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

Reads = Mapping[str, Iterable[str]]
"""By name, the names that each reads; one that reads nothing may be left out."""


def cyclic_groups(reads: Reads) -> list[frozenset[str]]:
    """The groups in which each reads all others, directly or through others; and itself.

    Time is linear in names and reads (Kosaraju's algorithm).
    """
    readers: dict[str, list[str]] = {}
    for name, read in reads.items():
        for other in read:
            readers.setdefault(other, []).append(name)
    groups, placed = list[frozenset[str]](), set[str]()
    for name in reversed(_in_order_of_end(reads)):
        if name in placed:
            continue
        group = _reached(name, readers, placed)
        if len(group) > 1 or name in reads.get(name, ()):
            groups.append(frozenset(group))
    return groups


def shortest_cycle(reads: Reads, name: str) -> list[str]:
    """The shortest way from a name in a cycle back to itself; of equally short ones, the first."""
    previous: dict[str, str] = {}
    waiting = deque([name])
    while name not in previous:
        one = waiting.popleft()
        for other in sorted(reads.get(one, ())):
            if other not in previous:
                previous[other] = one
                waiting.append(other)
    way = [name, previous[name]]
    while way[-1] != name:
        way.append(previous[way[-1]])
    return way[::-1]


def _in_order_of_end(reads: Reads) -> list[str]:
    """All that read something, each after what it reads, cycles aside."""
    ended, seen = list[str](), set[str]()
    for start in reads:
        if start in seen:
            continue
        seen.add(start)
        open_ = [(start, iter(reads[start]))]
        while open_:
            name, others = open_[-1]
            following = next((other for other in others if other not in seen), None)
            if following is None:
                ended.append(name)
                open_.pop()
            else:
                seen.add(following)
                open_.append((following, iter(reads.get(following, ()))))
    return ended


def _reached(name: str, readers: Reads, placed: set[str]) -> list[str]:
    """A name and those that lead to it, of those not placed yet; they are placed by it."""
    placed.add(name)
    found = [name]
    for one in found:
        new = [other for other in readers.get(one, ()) if other not in placed]
        placed.update(new)
        found.extend(dict.fromkeys(new))
    return found
