"""The output that relationships lead to: a root, its joins, roles, and grouped children.

From the root on every relationship towards a parent is one join. A parent that is reached in
several ways gets a role for each of them. Other sources hang below what they refer to, grouped
where it has several rows a key.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import networkx as nx

from snaploom.plugins.discovery.foundfiles import (
    DEEPEST_JOIN,
    MOST_ELEMENTS,
    MOST_JOINS,
    SAME_NAME,
    LeftOut,
)
from snaploom.plugins.discovery.names import (
    column_words,
    stem,
    table_words,
    word_likeness,
    words_of,
)
from snaploom.plugins.discovery.profiles import SourceProfile
from snaploom.plugins.discovery.relationships import Relationship, Relationships

_LINK_COLUMNS = 1
"""Columns of its own, beside keys, up to which a source only links others."""
_GROUPED_WORTH = 0.5
_LINK_COST = 2.0
_UNDATED_COST = 0.5
_SATELLITE_COST = 0.75
"""Cost as root of a source that refers to a single other, around which there are more: contacts of
a customer are better grouped below the customer than the other way round."""


@dataclass(frozen=True)
class Joined:
    """A source at its place in the output."""

    table: str
    field: str
    """Field of the output; the name of its role, where it has one."""
    is_role: bool
    parent: int
    """Place of its parent; -1 for the root."""
    relationship: Relationship | None
    group_by: tuple[str, ...]
    """Columns by which it is grouped; none for one row a key."""
    depth: int


@dataclass(frozen=True)
class ProposedTree:
    """The output."""

    nodes: tuple[Joined, ...]
    """The root first; every other one after its parent."""
    other_roots: tuple[str, ...]
    """Sources that could be the root as well, best first."""
    left_out: tuple[LeftOut, ...]

    @property
    def root(self) -> Joined:
        """The root."""
        return self.nodes[0]


def propose_tree(
    profiles: Sequence[SourceProfile], found: Relationships, root: str | None
) -> ProposedTree:
    """The output that is most likely meant.

    At least one profile is given; without `root` one is chosen.
    """
    by_name = {profile.name: profile for profile in profiles}
    ranked = sorted(
        by_name, key=lambda name: (-_worth(name, by_name, found), -by_name[name].rows, name)
    )
    chosen = root or ranked[0]
    tree = _Growth(by_name, found.declared, chosen)
    tree.grow()
    nodes = _with_roles(tree.nodes)
    others = [name for name in ranked if name != chosen and _worth(name, by_name, found) > 0]
    left_out = [*tree.left_out]
    for name in sorted(set(by_name) - {node.table for node in nodes}):
        if not any(each.what == name for each in left_out):
            why = f"declared, but not in the output: no relationship leads to it from {chosen}"
            left_out.append(LeftOut(name, why))
    return ProposedTree(tuple(nodes), tuple(others[:3]), tuple(left_out))


def _worth(name: str, profiles: Mapping[str, SourceProfile], found: Relationships) -> float:
    """Return the share of the data beside the rows of an output with this root."""
    growth = _Growth(profiles, found.declared, name)
    growth.grow()
    grouped = growth.grouped
    tables = {
        node.table: index in grouped for index, node in reversed(list(enumerate(growth.nodes)))
    }
    worth = sum(_GROUPED_WORTH if is_grouped else 1.0 for is_grouped in tables.values()) - 1.0
    if worth > 0 and _is_link(name, profiles[name], found):
        worth -= _LINK_COST
    mine = [r for r in found.declared if r.child == name and r.parent != name]
    if len(mine) == 1 and not any(r.parent == name for r in found.declared):
        around = [r for r in found.declared if mine[0].parent in (r.child, r.parent)]
        worth -= _SATELLITE_COST if len(around) > 2 else 0.0
    dated = any(profile.times for profile in profiles.values())
    return worth - (_UNDATED_COST if dated and not profiles[name].times else 0.0)


def _is_link(name: str, profile: SourceProfile, found: Relationships) -> bool:
    """Whether a source has little but keys of two others, as members of groups do."""
    mine = [r for r in found.declared if r.child == name]
    keys = {column for r in mine for column in r.child_columns}
    own = [c.name for c in profile.columns if c.name not in keys]
    own = [c for c in own if column_words(c, profile.prefix).base]
    return len({r.parent for r in mine}) >= 2 and len(own) <= _LINK_COLUMNS


class _Growth:
    """A tree as it grows."""

    def __init__(
        self,
        profiles: Mapping[str, SourceProfile],
        relationships: Sequence[Relationship],
        root: str,
    ) -> None:
        self._profiles = profiles
        self._relationships = sorted(relationships, key=lambda r: (r.child_columns, r.parent))
        self.nodes: list[Joined] = [Joined(root, root, False, -1, None, (), 0)]
        self._places = nx.DiGraph()
        self._places.add_node(0)
        self.left_out: list[LeftOut] = []

    @property
    def grouped(self) -> frozenset[int]:
        """Places of grouped nodes, and of all their descendants."""
        tops = [place for place, node in enumerate(self.nodes) if node.group_by]
        return frozenset(chain.from_iterable(nx.bfs_layers(self._places, tops)))

    def grow(self) -> None:
        """Add all there is."""
        self._towards_parents(0, is_all=True)
        while self._hang_one():
            pass

    def _towards_parents(self, start: int, *, is_all: bool) -> None:
        """Joins with one row a key, breadth first; only of new sources, unless `is_all`."""
        layer = [start]
        while layer:
            below: list[int] = []
            for place in layer:
                for relationship, table, columns in list(self._one_row(place)):
                    known = {node.table for node in self.nodes}
                    if len(self.nodes) > MOST_JOINS or (table in known and not is_all):
                        continue
                    below.append(self._add(table, place, relationship, columns))
            layer = below

    def _one_row(self, place: int) -> Iterator[tuple[Relationship, str, tuple[str, ...]]]:
        node = self.nodes[place]
        if node.depth >= DEEPEST_JOIN:
            return
        path = {place, *nx.ancestors(self._places, place)}
        for one in self._relationships:
            if one.child == node.table and one is not node.relationship:
                is_back = one.parent in {self.nodes[p].table for p in path}
                is_self = one.parent == one.child
                if is_back and not (is_self and not self._is_in(path, one)):
                    continue
                if not self._is_implied(node, one):
                    yield one, one.parent, ()
            elif (
                one.parent == node.table
                and one.is_one_to_one
                and one is not node.relationship
                and not any(one.child == each.table for each in self.nodes)
            ):
                yield one, one.child, ()

    def _is_in(self, path: Iterable[int], one: Relationship) -> bool:
        return any(self.nodes[place].relationship is one for place in path)

    def _is_implied(self, node: Joined, one: Relationship) -> bool:
        """Whether its target is beside the parent of the node already, for the same key."""
        came = node.relationship
        if came is None or came.parent != node.table:
            return False
        same = dict(zip(came.parent_columns, came.child_columns, strict=True))
        wanted = tuple(same.get(column, "") for column in one.child_columns)
        return any(
            other.child == came.child
            and other.child_columns == wanted
            and other.parent == one.parent
            and other.parent_columns == one.parent_columns
            for other in self._relationships
        )

    def _add(
        self, table: str, parent: int, relationship: Relationship, group_by: tuple[str, ...]
    ) -> int:
        depth = self.nodes[parent].depth + 1
        self._places.add_edge(parent, len(self.nodes))
        self.nodes.append(Joined(table, table, False, parent, relationship, group_by, depth))
        return len(self.nodes) - 1

    def _hang_one(self) -> bool:
        known = {node.table for node in self.nodes}
        refused = {each.what for each in self.left_out}
        offers = [
            (node.depth, -one.score, one.child, place, one)
            for one in self._relationships
            for place, node in enumerate(self.nodes)
            if one.parent == node.table and one.child not in known and one.child not in refused
        ]
        if not offers or len(self.nodes) > MOST_JOINS:
            return False
        _, _, table, place, one = min(offers, key=lambda offer: offer[:4])
        if one.rows_per_key > MOST_ELEMENTS:
            self.left_out.append(
                LeftOut(
                    table,
                    f"declared, but not in the output: {one.rows_per_key:,.0f} rows a key of "
                    f"{one.parent} are too many for an array in every row; make it a root of its "
                    "own, or aggregate it",
                )
            )
            return True
        group_by = () if one.is_one_to_one else one.child_columns
        self._towards_parents(self._add(table, place, one, group_by), is_all=False)
        return True


def _with_roles(nodes: Sequence[Joined]) -> list[Joined]:
    """Nodes with names of their own: those of a source that occurs several times by their role."""
    times = Counter(node.table for node in nodes)
    taken: set[str] = set()
    named: list[Joined] = []
    for place, node in enumerate(nodes):
        is_role = times[node.table] > 1 and place > 0
        field = _field(_role(node, named) if is_role else node.table)
        options = [field]
        if is_role and node.parent > 0:
            options.append(f"{named[node.parent].field}_{field}")
        options += [f"{field}_{number}" for number in range(2, len(nodes) + 2)]
        if field in ("data",):
            options = options[1:]
        field = next(option for option in options if option.lower() not in taken)
        taken.add(field.lower())
        named.append(replace(node, field=field, is_role=is_role))
    return named


def _role(node: Joined, named: Sequence[Joined]) -> str:
    """The name of a role by the column that refers to it: `origin`, `billing_address`."""
    one = node.relationship
    assert one is not None  # only the root has none
    base = column_words(one.child_columns[-1]).base or words_of(one.child_columns[-1])
    table = table_words(node.table)
    parent = named[node.parent]
    role = "_".join(base)
    is_table = {stem(word) for word in base} <= {stem(word) for word in table}
    if node.parent > 0 and (is_table or len(base[0]) <= 2):
        return f"{parent.field}_{role if is_table else '_'.join(table)}"
    names_table = any(word_likeness(one, other) >= SAME_NAME for one in base for other in table)
    return role if names_table else f"{role}_{'_'.join(table)}"


def _field(name: str) -> str:
    plain = "_".join(words_of(name)) or "source"
    return plain if plain[0].isalpha() else f"t_{plain}"
