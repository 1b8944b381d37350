"""The one join tree of an output, or every tie and every unreachable source.

Every source is joined at the least possible number of hops from the root; among such trees the one
with the least sum of antiPriority is taken, and where several are equal the plan fails (rule W10;
the sum is over edges). At breadth-first depth d the parent of a
source is any of layer d-1 that has an arc to it, and these choices are independent: the least sum
is each source's cheapest arc, and it is unique exactly when each of those is. So one breadth-first
pass suffices, which handles each relationship once a layer; trees are never enumerated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from snaploom.models.common import PathMissingMode
from snaploom.planning.graph import JoinGraph, Link, Vertex


@dataclass(frozen=True, slots=True)
class JoinNode:
    """A source with its place in the tree; numbers are breadth-first, from 0 for the root."""

    number: int
    field_name: str
    source: str
    parent: str
    """Field name of the parent; empty for the root and for its children (rule W12)."""
    parent_number: int
    """Number of the parent; -1 for the root."""
    relationship: str
    """Empty for the root."""
    depth: int
    group_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """One of several equal ways to join a source."""

    number: int
    """Provisional number of the parent."""
    parent: str
    """Field name of the parent."""
    source: str
    """Source of the parent."""
    relationship: str


@dataclass(frozen=True, slots=True)
class Tie:
    """A source with several equally good parents."""

    number: int
    """Provisional number of the source."""
    field_name: str
    source: str
    depth: int
    anti_priority: int
    ways: tuple[tuple[str, tuple[JoinNode, ...]], ...]
    """Parents by relationship, ordered by name; equal tuples are shared between ties."""

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """Every way, ordered by parent and relationship."""
        found = [
            Candidate(parent.number, parent.field_name, parent.source, relationship)
            for relationship, parents in self.ways
            for parent in parents
        ]
        return tuple(sorted(found, key=lambda way: (way.number, way.relationship)))

    @property
    def count(self) -> int:
        """Number of ways."""
        return sum(len(parents) for _, parents in self.ways)


@dataclass(frozen=True, slots=True)
class Unreachable:
    """A source to which no path leads from the root."""

    field_name: str
    source: str
    mode: PathMissingMode


@dataclass(frozen=True)
class JoinTree:
    """The tree, as far as it is decided, with all that is undecided or out of reach."""

    nodes: tuple[JoinNode, ...]
    """The root first; without tied sources and what hangs on them."""
    ties: tuple[Tie, ...] = ()
    """The topmost ties, in breadth-first order."""
    ties_below: tuple[Tie, ...] = ()
    """Ties of sources all of whose parents are tied, or hang on a tie, themselves."""
    unreachable: tuple[Unreachable, ...] = ()
    """Ordered by field name."""
    depths: dict[str, int] = field(default_factory=dict, compare=False)
    """Depth of every source within reach, ties included."""

    @property
    def root(self) -> JoinNode:
        """The root."""
        return self.nodes[0]

    @property
    def joins(self) -> tuple[JoinNode, ...]:
        """All nodes but the root."""
        return self.nodes[1:]

    @property
    def is_complete(self) -> bool:
        """Whether the tree is unique and nothing that must be joined is out of reach."""
        return not self.ties and all(
            missing.mode is not PathMissingMode.ERROR for missing in self.unreachable
        )

    def node(self, field_name: str) -> JoinNode:
        """The node of a field name, case ignored; empty for the root.

        Raises:
            KeyError: when the tree has no such node.
        """
        wanted = field_name.casefold()
        for node in self.nodes:
            if node.field_name.casefold() == wanted:
                return node
        raise KeyError(field_name)

    def children(self, number: int) -> tuple[JoinNode, ...]:
        """The nodes that are joined to a node, ordered by field name."""
        return tuple(node for node in self.nodes if node.parent_number == number)


def plan_tree(graph: JoinGraph) -> JoinTree:
    """Find the tree of `graph`; a pure function of it, whatever the order of its configuration."""
    search = _Search(graph)
    while search.layer:
        search.advance()
    missing = (v for v in graph.vertices.values() if v.source not in search.placed)
    return JoinTree(
        nodes=tuple(n for n in search.placed.values() if n.number not in search.undecided),
        ties=tuple(search.ties),
        ties_below=tuple(search.ties_below),
        unreachable=tuple(
            Unreachable(v.field_name, v.source, v.path_missing_mode)
            for v in sorted(missing, key=lambda v: v.order)
        ),
        depths={source: node.depth for source, node in search.placed.items()},
    )


@dataclass
class _Offer:
    """The cheapest ways found so far to join one vertex to the current layer."""

    vertex: Vertex
    cost: int
    ways: list[tuple[str, tuple[JoinNode, ...]]]

    def add(self, link: Link, parents: tuple[JoinNode, ...]) -> None:
        if link.anti_priority < self.cost:
            self.cost, self.ways = link.anti_priority, []
        if link.anti_priority == self.cost:
            self.ways.append((link.name, parents))

    def best(self) -> tuple[str, JoinNode]:
        """The way with the lowest-numbered parent: the only one unless there is a tie."""
        firsts = ((relationship, parents[0]) for relationship, parents in self.ways)
        return min(firsts, key=lambda way: (way[1].number, way[0]))


class _Search:
    """The state of one breadth-first pass."""

    def __init__(self, graph: JoinGraph) -> None:
        root = JoinNode(0, graph.root.field_name, graph.root.source, "", -1, "", 0)
        self.graph = graph
        self.placed: dict[str, JoinNode] = {root.source: root}
        self.layer = [root]
        self.ties: list[Tie] = []
        self.ties_below: list[Tie] = []
        self.undecided: set[int] = set()
        self._waiting = {link.name: graph.targets(link) for link in graph.links}

    def advance(self) -> None:
        """Place everything that the current layer reaches; that is the next layer."""
        offers = self._offers()
        first = len(self.placed)
        ordered = sorted(offers.values(), key=lambda o: (o.best()[1].number, o.vertex.order))
        self.layer = [self._place(first + i, offer) for i, offer in enumerate(ordered)]

    def _offers(self) -> dict[str, _Offer]:
        offers: dict[str, _Offer] = {}
        for link, parents in self._links_of_layer():
            waiting = [v for v in self._waiting[link.name] if v.source not in self.placed]
            self._waiting[link.name] = waiting
            allowed: dict[frozenset[int], tuple[JoinNode, ...]] = {}
            for vertex in waiting:
                held = link.exclusions_of(vertex.source)
                if held not in allowed:
                    allowed[held] = _not_held(link, parents, held)
                if allowed[held]:
                    offer = offers.setdefault(vertex.source, _Offer(vertex, link.anti_priority, []))
                    offer.add(link, allowed[held])
        return offers

    def _links_of_layer(self) -> Iterator[tuple[Link, list[JoinNode]]]:
        parents: dict[str, list[JoinNode]] = {}
        links: dict[str, Link] = {}
        for node in self.layer:
            for link in self.graph.links_of(node.source):
                links[link.name] = link
                parents.setdefault(link.name, []).append(node)
        for name in sorted(links):
            yield links[name], parents[name]

    def _place(self, number: int, offer: _Offer) -> JoinNode:
        relationship, parent = offer.best()
        vertex = offer.vertex
        depth = parent.depth + 1
        node = JoinNode(
            number, vertex.field_name, vertex.source, parent.field_name, parent.number,
            relationship, depth, vertex.group_by,
        )  # fmt: skip
        self.placed[vertex.source] = node
        tie = Tie(number, vertex.field_name, vertex.source, depth, offer.cost, tuple(offer.ways))
        tied = tie.count > 1
        below = all(p.number in self.undecided for _, parents in tie.ways for p in parents)
        if tied:
            (self.ties_below if below else self.ties).append(tie)
        if tied or below:
            self.undecided.add(number)
        return node


def _not_held(
    link: Link, parents: Sequence[JoinNode], held: frozenset[int]
) -> tuple[JoinNode, ...]:
    return tuple(p for p in parents if held.isdisjoint(link.exclusions_of(p.source)))
