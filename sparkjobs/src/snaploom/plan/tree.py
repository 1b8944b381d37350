"""The graph of joins that a data model declares, and the one join tree of an output.

An arc leads from u to v by relationship r when both are listed, v is not the root, both are in r,
no exclusion of r holds both, and v's `groupBy` is empty or equals, ignoring case and order, the
fields of v's key in r (rule W9). Grouping happens after a node's
own children are joined, so it restricts the arcs *into* the node only. Sources that are in a
relationship but not in the output are no way through.

A relationship over k sources stands for k² arcs, which are never listed one by one: the graph is
bipartite, of sources (by name) and relationships (`Part`), with one edge for each source of each
relationship. Sources that are in the same exclusions of a relationship have the same arcs by it;
where it has exclusions, it is a node for each such set of sources.

Every source is joined at the least possible number of hops from the root; among such trees the one
with the least sum of antiPriority is taken, and where several are equal the plan fails (rule W10;
the sum is over edges). At breadth-first depth d the parent of a
source is any of layer d-1 that has an arc to it, and these choices are independent: the least sum
is each source's cheapest arc, and it is unique exactly when each of those is. So one breadth-first
pass suffices, which handles each relationship once a layer; trees are never enumerated.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, groupby, product, repeat
from operator import attrgetter
from typing import ClassVar

import networkx as nx

from snaploom.models.asof import AsOf
from snaploom.models.common import ROOT_FIELD, PathMissingMode, TimeOffset
from snaploom.models.datarelationship import DataRelationship
from snaploom.models.outputdataset import DataModel, UsedRelationship
from snaploom.models.windows import Windows
from snaploom.types.schemas import folded_path

NOT_EXCLUDED: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Vertex:
    """A source that the output lists."""

    source: str
    field_name: str
    group_by: tuple[str, ...] = ()
    path_missing_mode: PathMissingMode = PathMissingMode.ERROR
    timed: AsOf | Windows | None = None
    history: TimeOffset | None = None

    @property
    def order(self) -> str:
        """Sort key of siblings, so that the order of configuration does not matter."""
        return self.field_name.casefold()


@dataclass(frozen=True)
class Link:
    """A relationship as the output uses it: an edge to each of its sources."""

    name: str
    anti_priority: int
    keys: Mapping[str, tuple[str, ...]]
    """Fields of the key by source, of listed and unlisted sources."""
    exclusions: Mapping[str, frozenset[int]]
    """Numbers of the exclusions that hold a source, by the sources in any."""
    misgrouped: frozenset[str]
    """Listed sources whose groupBy is not their key: no arc leads to them."""
    normalized: Mapping[str, str]
    """By source, the components of its key that are normalised, for people."""


@dataclass(frozen=True, eq=False, slots=True)
class Part:
    """A relationship as the sources see it that the same of its exclusions hold."""

    relationship: str
    held: frozenset[int]
    """Numbers of these exclusions."""


@dataclass(frozen=True)
class JoinGraph:
    """The sources of an output and the links between them."""

    root: Vertex
    vertices: Mapping[str, Vertex]
    links: tuple[Link, ...]
    """Ordered by name."""
    network: nx.Graph = field(compare=False)
    """Sources, listed or not, and the parts of links; edges in the order of links."""
    max_depth: int = 32

    @cached_property
    def link(self) -> Mapping[str, Link]:
        return {link.name: link for link in self.links}

    @cached_property
    def parts(self) -> Mapping[str, tuple[Part, ...]]:
        """The parts of each link, by its name."""
        parts = (node for node in self.network if isinstance(node, Part))  # in the order of links
        return {name: tuple(found) for name, found in groupby(parts, attrgetter("relationship"))}

    def hops(self) -> dict[str | Part, int]:
        """Return the distance from the root of every source within reach, and of parts on the way.

        A join is two hops: from a source to a relationship, and on to a source. The search is
        breadth first; what an arc needs prunes it.
        """
        found: dict[str | Part, int] = {self.root.source: 0}
        edges = nx.generic_bfs_edges(self.network, self.root.source, _Pruned(self).following)
        for before, node in edges:
            found[node] = found[before] + 1
        return found

    def arcs(self, links: Iterable[Link]) -> Iterator[tuple[Vertex, Vertex, Link]]:
        """The arcs of links, one by one: for small graphs, or the first; planning needs none."""
        for link in links:
            members = [self.vertices[source] for source in link.keys if source in self.vertices]
            for child, parent in product(members, members):
                if child is parent or child is self.root or child.source in link.misgrouped:
                    continue
                held = link.exclusions.get(parent.source, NOT_EXCLUDED)
                if held.isdisjoint(link.exclusions.get(child.source, NOT_EXCLUDED)):
                    yield parent, child, link


def join_graph(model: DataModel, relationships: Iterable[DataRelationship]) -> JoinGraph:
    """The graph of a data model; every relationship that the model names must be given."""
    by_name = {relationship.name: relationship for relationship in relationships}
    root = Vertex(model.root_data_source.data_source, ROOT_FIELD)
    others = (
        Vertex(
            other.data_source,
            other.field_name,
            other.group_by,
            other.path_missing_mode,
            other.timed,
            other.snapshot.history,
        )
        for other in model.other_data_sources
    )
    vertices = {vertex.source: vertex for vertex in (*others, root)}
    grouped = {v.source: _folded(v.group_by) for v in vertices.values() if v.group_by}
    links = sorted(
        (_link(used, by_name[used.name], grouped) for used in model.data_relationships),
        key=lambda link: link.name,
    )
    return JoinGraph(root, vertices, tuple(links), _network(vertices, links), model.max_depth)


class _Network(nx.Graph):  # type: ignore[misc]  # networkx has no types
    """A graph without data on its edges, which all share one dictionary for it.

    A dense model has hundreds of thousands of edges: a dictionary for each takes a fifth longer.
    """

    _NO_DATA: ClassVar[dict[str, object]] = {}

    def edge_attr_dict_factory(self) -> dict[str, object]:
        return self._NO_DATA


def _network(vertices: Iterable[str], links: Iterable[Link]) -> nx.Graph:
    network = _Network()
    network.add_nodes_from(vertices)
    for link in links:
        alike: defaultdict[frozenset[int], list[str]] = defaultdict(list)
        for source in link.keys:
            alike[link.exclusions.get(source, NOT_EXCLUDED)].append(source)
        for held, sources in alike.items():
            network.add_edges_from(zip(sources, repeat(Part(link.name, held)), strict=False))
    return network


class _Pruned:
    def __init__(self, graph: JoinGraph) -> None:
        self._graph = graph
        self._entered: set[Part] = set()
        self._left = dict(graph.parts)

    def following(self, node: str | Part) -> Iterator[str | Part]:
        network, vertices = self._graph.network, self._graph.vertices
        if isinstance(node, Part):
            link = self._graph.link[node.relationship]
            yield from (s for s in network[node] if s in vertices and s not in link.misgrouped)
            return
        for part in network[node]:
            # One source speaks for all that are in the same exclusions, and a part is reached once.
            if part not in self._entered:
                self._entered.add(part)
                left = self._left[part.relationship]
                yield from (other for other in left if part.held.isdisjoint(other.held))
                self._left[part.relationship] = tuple(
                    other for other in left if not part.held.isdisjoint(other.held)
                )


def _folded(names: Iterable[str]) -> frozenset[str]:
    """Fields without case and order."""
    return frozenset(map(folded_path, names))


def _link(
    used: UsedRelationship, relationship: DataRelationship, grouped: Mapping[str, frozenset[str]]
) -> Link:
    """The link of a relationship; `grouped` has the fields of groupBy by grouped source."""
    keys: dict[str, tuple[str, ...]] = {}
    normalized: dict[str, str] = {}
    for representation in relationship.spec.representations:
        fields = (field.field_name for part in representation.join_key for field in part.fields_)
        keys |= dict.fromkeys(representation.data_sources, tuple(dict.fromkeys(fields)))
        if any(part.normalize for part in representation.join_key):
            texts = relationship.spec.normalized_keys
            normalized |= {each: texts(each) for each in representation.data_sources}
    held: defaultdict[str, set[int]] = defaultdict(set)
    for number, exclusion in enumerate(used.exclusions):
        for source in exclusion.data_source_set:
            held[source].add(number)
    return Link(
        used.name,
        used.anti_priority,
        keys,
        {source: frozenset(numbers) for source, numbers in held.items()},
        frozenset(s for s in grouped.keys() & keys.keys() if grouped[s] != _folded(keys[s])),
        normalized,
    )


# The join tree: every source at the least number of hops from the root.


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
    timed: AsOf | Windows | None = None
    history: TimeOffset | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """One of several equal ways to join a source."""

    number: int
    parent: str
    source: str
    relationship: str


@dataclass(frozen=True, slots=True)
class Tie:
    """A source with several equally good parents."""

    number: int
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
    """The root first; without tied sources and their descendants."""
    ties: tuple[Tie, ...] = ()
    """The topmost ties, in breadth-first order."""
    ties_below: tuple[Tie, ...] = ()
    """Ties of sources all of whose parents are tied, or hang on a tie, themselves."""
    unreachable: tuple[Unreachable, ...] = ()
    unused: frozenset[str] = frozenset()
    """Relationships that could join sources, and join none; empty until the tree is decided."""
    depths: dict[str, int] = field(default_factory=dict, compare=False)
    """Depth of every source within reach, ties included."""

    @property
    def root(self) -> JoinNode:
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
        """The node of a field name, case ignored; empty for the root."""
        wanted = field_name.casefold()
        for node in self.nodes:
            if node.field_name.casefold() == wanted:
                return node
        raise KeyError(field_name)

    @cached_property
    def by_number(self) -> Mapping[int, JoinNode]:
        return {node.number: node for node in self.nodes}

    @cached_property
    def network(self) -> nx.DiGraph:
        """Numbers of nodes with edges to those of their children, all in their order."""
        network = nx.DiGraph()
        network.add_nodes_from(self.by_number)
        network.add_edges_from((node.parent_number, node.number) for node in self.joins)
        return network

    @cached_property
    def _children(self) -> Mapping[int, tuple[JoinNode, ...]]:
        return {
            number: tuple(map(self.by_number.__getitem__, near))
            for number, near in self.network.adjacency()
        }

    @property
    def layers(self) -> Iterator[tuple[JoinNode, ...]]:
        """The nodes of each depth, from the root on."""
        for numbers in nx.bfs_layers(self.network, [0]):
            yield tuple(map(self.by_number.__getitem__, numbers))

    def children(self, number: int) -> tuple[JoinNode, ...]:
        """The nodes that are joined to a node, ordered by field name."""
        return self._children[number]

    def subtrees(self, tops: Iterable[int]) -> frozenset[int]:
        """Numbers of some nodes and of everything that hangs on them."""
        return frozenset(chain.from_iterable(nx.bfs_layers(self.network, list(tops))))

    def path(self, number: int) -> tuple[str, ...]:
        """Names of the fields of the output that lead to a node; none to the root."""
        above = nx.ancestors(self.network, number) | {number}
        return tuple(self.by_number[each].field_name for each in sorted(above) if each)


def plan_tree(graph: JoinGraph) -> JoinTree:
    """Find the tree of `graph`; a pure function, independent of the order of configuration."""
    search = _Search(graph)
    for depth in range(1, max(search.depths.values()) + 1):
        search.place_layer(depth)
    missing = [v for v in graph.vertices.values() if v.source not in search.placed]
    nodes = tuple(n for n in search.placed.values() if n.number not in search.undecided)
    used = {node.relationship for node in nodes}
    is_decided = not search.ties and not missing
    others = (link for link in graph.links if is_decided and link.name not in used)
    return JoinTree(
        nodes=nodes,
        ties=tuple(search.ties),
        ties_below=tuple(search.ties_below),
        unreachable=tuple(
            Unreachable(v.field_name, v.source, v.path_missing_mode)
            for v in sorted(missing, key=lambda v: v.order)
        ),
        unused=frozenset(link.name for link in others if any(graph.arcs([link]))),
        depths=search.depths,
    )


@dataclass
class _Offer:
    """The cheapest ways to join one vertex to the layer before it."""

    vertex: Vertex
    cost: int
    ways: list[tuple[str, tuple[JoinNode, ...]]] = field(default_factory=list)

    def best(self) -> tuple[str, JoinNode]:
        """The way with the lowest-numbered parent: the only one unless there is a tie."""
        firsts = ((relationship, parents[0]) for relationship, parents in self.ways)
        return min(firsts, key=lambda way: (way[1].number, way[0]))


class _Search:
    def __init__(self, graph: JoinGraph) -> None:
        root = JoinNode(0, graph.root.field_name, graph.root.source, "", -1, "", 0)
        self.graph = graph
        self.placed: dict[str, JoinNode] = {root.source: root}
        self.ties: list[Tie] = []
        self.ties_below: list[Tie] = []
        self.undecided: set[int] = set()
        self.depths: dict[str, int] = {}
        self._layers: defaultdict[int, list[str]] = defaultdict(list)
        self._parts: defaultdict[int, list[Part]] = defaultdict(list)
        for node, hops in graph.hops().items():
            if isinstance(node, Part):
                self._parts[hops // 2 + 1].append(node)
            else:
                self.depths[node] = hops // 2
                self._layers[hops // 2].append(node)

    def place_layer(self, depth: int) -> None:
        """Place the sources of a depth, those of the depths before it being placed."""
        offers = self._offers(depth)
        first = len(self.placed)
        ordered = sorted(offers.values(), key=lambda o: (o.best()[1].number, o.vertex.order))
        for number, offer in enumerate(ordered, start=first):
            self._place(number, offer)

    def _offers(self, depth: int) -> dict[str, _Offer]:
        offers: dict[str, _Offer] = {}
        waiting = set(self._layers[depth])
        above = sorted(
            (self.placed[source] for source in self._layers[depth - 1]),
            key=lambda node: node.number,
        )
        parts = ((self.graph.link[part.relationship], part) for part in self._parts[depth])
        ranked = sorted(parts, key=lambda way: (way[0].anti_priority, way[0].name))
        for cost, equal in groupby(ranked, key=lambda way: way[0].anti_priority):
            for link, part in equal:
                joined = waiting.intersection(self.graph.network[part])
                fitting = [self.graph.vertices[s] for s in joined if s not in link.misgrouped]
                parents = _not_held(link, above, part.held) if fitting else ()
                for vertex in fitting:
                    offer = offers.setdefault(vertex.source, _Offer(vertex, cost))
                    offer.ways.append((link.name, parents))
            waiting.difference_update(offers)
        return offers

    def _place(self, number: int, offer: _Offer) -> None:
        relationship, parent = offer.best()
        vertex = offer.vertex
        depth = parent.depth + 1
        self.placed[vertex.source] = JoinNode(
            number, vertex.field_name, vertex.source, parent.field_name, parent.number,
            relationship, depth, vertex.group_by, vertex.timed,
            vertex.history,
        )  # fmt: skip
        tie = Tie(number, vertex.field_name, vertex.source, depth, offer.cost, tuple(offer.ways))
        tied = tie.count > 1
        below = all(p.number in self.undecided for _, parents in tie.ways for p in parents)
        if tied:
            (self.ties_below if below else self.ties).append(tie)
        if tied or below:
            self.undecided.add(number)


def _not_held(
    link: Link, parents: Sequence[JoinNode], held: frozenset[int]
) -> tuple[JoinNode, ...]:
    """Those of a layer that are in a link, and in none of some of its exclusions."""
    return tuple(
        parent
        for parent in parents
        if parent.source in link.keys
        and held.isdisjoint(link.exclusions.get(parent.source, NOT_EXCLUDED))
    )
