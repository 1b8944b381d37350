"""Reads between declarations: sources that query others, and outputs read as sources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import chain

import networkx as nx

from snaploom.models.datasource import DataSource


class ReadGraph:
    """Names with edges to those that each reads."""

    def __init__(self, reads: Mapping[str, Iterable[str]]) -> None:
        """Build the graph.

        `reads` has the names that each name reads; others are not part of the graph.
        """
        self._graph = nx.DiGraph()
        self._graph.add_nodes_from(reads)
        for name, others in reads.items():
            self._graph.add_edges_from((name, other) for other in others if other in reads)

    def reached(self, names: Iterable[str]) -> frozenset[str]:
        """The known ones of some names, and all that they read, directly or through others."""
        known = [name for name in names if name in self._graph]
        return frozenset(chain.from_iterable(nx.bfs_layers(self._graph, known)))

    def in_order(self, name: str) -> tuple[str, ...]:
        """A name and all that it reads, each before those that only it reads."""
        return tuple(nx.dfs_preorder_nodes(self._graph, name))

    @cached_property
    def circles(self) -> tuple[frozenset[str], ...]:
        """The groups in which each reads all others, directly or through others; and itself."""
        return tuple(
            frozenset(group)
            for group in nx.strongly_connected_components(self._graph)
            if len(group) > 1 or any(self._graph.has_edge(one, one) for one in group)
        )

    def circle(self, name: str) -> tuple[str, ...]:
        """The shortest way from a name back to itself, of equally short ones the first by name.

        Nothing where there is none. Circles are never enumerated: there may be any number of them.
        """
        if not any(name in group for group in self.circles):
            return ()
        tree = nx.bfs_tree(self._graph, name, sort_neighbors=sorted)
        last = next(one for one in tree if self._graph.has_edge(one, name))
        return (*nx.shortest_path(tree, name, last), name)


def reads_of(sources: Mapping[str, DataSource]) -> ReadGraph:
    """The graph of sources by name: virtual ones read others."""
    return ReadGraph({name: source.spec.reads for name, source in sources.items()})
