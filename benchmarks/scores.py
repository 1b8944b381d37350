"""What declared relationships are worth, held against what a publisher documents."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain

from support.discovery.datasetfiles import Link

Columns = frozenset[tuple[tuple[str, str], tuple[str, str]]]
"""A relationship without direction: pairs of a table and a column, each pair in order."""


@dataclass(frozen=True)
class Score:
    """What declared relationships are worth, held against what a publisher documents."""

    found: int
    missed: frozenset[Link]
    """One form of each."""
    wrong: frozenset[Link]
    silent: frozenset[Link]
    """Those of `wrong` that nobody was warned of."""


def scored(
    declared: Mapping[Link, bool],
    truth: Iterable[Collection[Link]],
    also_right: Iterable[Link] = (),
    is_key: Callable[[str, tuple[str, ...]], bool] = lambda table, columns: False,
) -> Score:
    """Hold declared relationships against documented ones.

    Columns that the documents trace to one entity are neither missed nor wrong, if one side is a
    key: the row that is found is that entity's, by way of another table.

    Args:
        declared: each with whether it was called a guess.
        truth: of each relationship the forms of which one is enough.
        also_right: what is neither missed nor wrong.
        is_key: whether columns of a table are unique.
    """
    documents = [list(forms) for forms in truth]
    others = list(also_right)
    given = {_undirected(link): link for link in declared}
    allowed = {_undirected(link) for link in chain(others, *documents)}
    entities = _entities(chain(others, *documents))
    missed = frozenset(
        forms[0] for forms in documents if not given.keys() & set(map(_undirected, forms))
    )
    wrong = frozenset(
        link
        for columns, link in given.items()
        if columns not in allowed
        and not (
            all(entities.get(one, one) == entities.get(other, other) for one, other in columns)
            and (is_key(link[0], link[1]) or is_key(link[2], link[3]))
        )
    )
    return Score(
        found=len(documents) - len(missed),
        missed=missed,
        wrong=wrong,
        silent=frozenset(link for link in wrong if not declared[link]),
    )


def plain(name: str) -> str:
    """A name of a table or column without what exports and resources change of it."""
    return re.sub(r"[\W_]", "", name.casefold())


def _undirected(link: Link) -> Columns:
    child, mine, parent, theirs = link
    pairs = (
        sorted(((plain(child), plain(one)), (plain(parent), plain(other))))
        for one, other in zip(mine, theirs, strict=True)
    )
    return frozenset((one, other) for one, other in pairs)


def _entities(links: Iterable[Link]) -> dict[tuple[str, str], tuple[str, str]]:
    """Of each column in links one column that stands for all that mean the same."""
    found: dict[tuple[str, str], tuple[str, str]] = {}
    for one, other in chain.from_iterable(map(_undirected, links)):
        kept, gone = found.setdefault(one, one), found.setdefault(other, other)
        found = {column: kept if entity == gone else entity for column, entity in found.items()}
    return found
