"""Few combinations of many choices, such that every pair of choices occurs in one of them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations, product


def pairwise(choices: Mapping[str, Sequence[Hashable]]) -> list[dict[str, int]]:
    """Combinations, each the number of the choice by name; the same for the same choices.

    Greedy: each combination takes up, name after name, the choice that covers most pairs that no
    earlier combination has.
    """
    names = sorted(choices, key=lambda name: -len(choices[name]))
    open_pairs = {
        frozenset({(one, i), (other, j)})
        for one, other in combinations(names, 2)
        for i, j in product(range(len(choices[one])), range(len(choices[other])))
    }
    found: list[dict[str, int]] = []
    while open_pairs:
        taken = dict(min(sorted(pair) for pair in open_pairs))
        for name in names:
            if name not in taken:
                taken[name] = max(
                    range(len(choices[name])),
                    key=lambda i, name=name: sum(  # type: ignore[misc]
                        frozenset({(name, i), each}) in open_pairs for each in taken.items()
                    ),
                )
        open_pairs -= {frozenset(pair) for pair in combinations(taken.items(), 2)}
        found.append(taken)
    return found
