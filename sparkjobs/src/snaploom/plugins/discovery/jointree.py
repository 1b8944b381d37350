"""The output that relationships lead to: a root, its joins, roles, and grouped children.

From the root on every relationship towards a parent is one join. A parent that is reached in
several ways gets a role for each of them. Other sources hang below what they refer to, grouped
where it has several rows a key.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

import networkx as nx

from snaploom.plugins.discovery import foundfiles, names
from snaploom.plugins.discovery.dates import Family
from snaploom.plugins.discovery.parents import Relationships
from snaploom.plugins.discovery.profiles import SourceProfile
from snaploom.plugins.discovery.relationships import Relationship

_LINK_COLUMNS = 1
"""Columns of its own, beside keys, up to which a source only links others."""
_GROUPED_WORTH = 0.5
_REACHED = 0.1
"""Share of a parent's keys from which its rows count as reached: not all customers have orders."""
_LINK_COST = 2.0
_UNDATED_COST = 0.5
_CLOSE_WORTH = 0.1
"""Difference from the best root up to which another one is as likely meant."""
_CLOSE_ROWS = 2
"""Times that the best root may have its rows then."""
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
    left_out: tuple[foundfiles.LeftOut, ...]
    close_root: str | None = None
    """The source that is as likely meant as the root."""

    @property
    def root(self) -> Joined:
        """The root."""
        return self.nodes[0]


def propose_tree(
    profiles: Sequence[SourceProfile],
    found: Relationships,
    root: str | None,
    depth: int = foundfiles.DEEPEST_JOIN,
) -> ProposedTree:
    """The output that is most likely meant.

    At least one profile is given; without `root` one is chosen. `depth` is the most joins between
    the root and a source.
    """
    by_name = {profile.name: profile for profile in profiles}
    worth = {name: _worth(name, by_name, found) for name in by_name}
    ranked = sorted(by_name, key=lambda name: (-worth[name], -by_name[name].rows, name))
    chosen = root or max(_alike(ranked, by_name, found), key=lambda name: by_name[name].rows)
    tree = _Growth(by_name, found.declared, chosen, depth)
    tree.grow()
    nodes = _with_roles(tree.nodes, by_name)
    others = [name for name in ranked if name != chosen and worth[name] > 0]
    joined = {node.table for node in nodes if not node.group_by}
    close = next(
        (
            name
            for name in others
            if worth[chosen] - worth[name] <= _CLOSE_WORTH and name not in joined
            and by_name[chosen].rows < _CLOSE_ROWS * by_name[name].rows
        ),
        None,
    )  # fmt: skip
    known = {node.table for node in nodes} | {each.what for each in tree.left_out}
    unreached = ", ".join(sorted(by_name.keys() - known))
    why = f"declared, but not in the output: no relationship leads there from {chosen}"
    left_out = [*tree.left_out, *_of_one_role(nodes)]
    left_out += [foundfiles.LeftOut(unreached, why)] if unreached else []
    return ProposedTree(tuple(nodes), tuple(others[:3]), tuple(left_out), close)


def _alike(
    ranked: Sequence[str], profiles: Mapping[str, SourceProfile], found: Relationships
) -> Sequence[str]:
    """The best root, and those that refer to all that it refers to: results and sprint_results."""
    parents = {name: {r.parent for r in found.declared if r.child == name} for name in ranked}
    best, *others = ranked
    return [best] + [
        name for name in others
        if len(parents[best]) > 1 and parents[name] >= parents[best]
        and bool(profiles[name].times) >= bool(profiles[best].times)
    ]  # fmt: skip


def _of_one_role(nodes: Sequence[Joined]) -> Iterator[foundfiles.LeftOut]:
    """Sources that hang below one role of a source and not below its others."""
    for node in (node for node in nodes if node.parent > 0):
        above, one = nodes[node.parent], node.relationship
        others = [n.field for n in nodes if n.table == above.table and n is not above]
        if others and one is not None and one.child == node.table != one.parent:
            yield foundfiles.LeftOut(
                node.table,
                f"in the output for {above.field} only, and not for {', '.join(others)}; for it, "
                "repeat its virtual source, its relationship and its entry of otherDataSources",
            )


def _worth(name: str, profiles: Mapping[str, SourceProfile], found: Relationships) -> float:
    """Return the share of the data beside the rows of an output with this root."""
    growth = _Growth(profiles, found.declared, name)
    growth.grow()
    shares: dict[str, float] = {}
    for place, node in enumerate(growth.nodes):
        share = _GROUPED_WORTH ** growth.arrays_around(place)
        one = node.relationship
        if one is not None and one.parent == node.table:
            # Rows that the root does not have, as sales without a return, or without a footnote.
            share *= one.used if one.is_one_to_one else min(1.0, one.used / _REACHED)
        shares.setdefault(node.table, share)
    worth = sum(shares.values()) - 1.0
    if not profiles[name].rows:
        return -inf
    if worth > 0 and _is_link(name, profiles[name], found):
        worth -= _LINK_COST
    mine = [r for r in found.declared if r.child == name and r.parent != name]
    if len(mine) == 1 and not any(r.parent == name for r in found.declared):
        around = [r for r in found.declared
                  if mine[0].parent in (r.child, r.parent) and r.child != r.parent]  # fmt: skip
        worth -= _SATELLITE_COST if len(around) > 2 else 0.0
    dated = any(profile.times for profile in profiles.values())
    return worth - (_UNDATED_COST if dated and not profiles[name].times else 0.0)


def _is_link(name: str, profile: SourceProfile, found: Relationships) -> bool:
    """Whether a source has little but keys of two others, as members of groups do."""
    mine = [r for r in found.declared if r.child == name]
    keys = {column for r in mine for column in r.child_columns}
    own = [c for c in profile.columns if c.name not in keys]
    own = [c for c in own if names.column_words(c.name, profile.prefix).base]
    key = found.primary.get(name)
    if key is not None and len(key.columns) == 1 and key.columns[0] not in keys:
        has_measure = any(c.type.family in (Family.WHOLE, Family.OTHER) for c in own)
        if has_measure or key.columns[0] in {c.name for c in own}:
            return False  # sales with a number of their own
    return len({r.parent for r in mine}) >= 2 and len(own) <= _LINK_COLUMNS


class _Growth:
    """A tree as it grows."""

    def __init__(
        self,
        profiles: Mapping[str, SourceProfile],
        relationships: Sequence[Relationship],
        root: str,
        depth: int = foundfiles.DEEPEST_JOIN,
    ) -> None:
        self._profiles = profiles
        self._depth = depth
        self._relationships = sorted(relationships, key=lambda r: (r.child_columns, r.parent))
        self.nodes: list[Joined] = [Joined(root, root, False, -1, None, (), 0)]
        self._copies = [self._rows(root)]
        self._structs = 0.0
        self._places = nx.DiGraph()
        self._places.add_node(0)
        self.left_out: list[foundfiles.LeftOut] = []

    def arrays_around(self, place: int) -> int:
        """Arrays that a node is in, each in the one before."""
        path = {place, *nx.ancestors(self._places, place)}
        return sum(bool(self.nodes[each].group_by) for each in path)

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
                    if len(self.nodes) > foundfiles.MOST_JOINS or (table in known and not is_all):
                        continue
                    below.append(self._add(table, place, relationship, columns))
            layer = below

    def _one_row(self, place: int) -> Iterator[tuple[Relationship, str, tuple[str, ...]]]:
        node = self.nodes[place]
        if node.depth >= self._depth:
            return
        path = {place, *nx.ancestors(self._places, place)}
        for one in self._relationships:
            if one.child == node.table and one is not node.relationship:
                is_back = one.parent in {self.nodes[p].table for p in path}
                is_again = any(self.nodes[p].relationship is one for p in path)
                if is_back and (one.parent != one.child or is_again):
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

    def _rows(self, table: str) -> float:
        """Rows of one snapshot."""
        profile = self._profiles[table]
        return max(1.0, profile.rows / max(1, profile.snapshots_read))

    def _copies_of(self, parent: int, one: Relationship, *, is_grouped: bool) -> float:
        """Structs that a join below a node makes in one snapshot of the output."""
        copies = self._copies[parent]
        if not is_grouped:
            return copies
        # Where rows of the parent are repeated, those with many children are so more often.
        is_repeated = copies > self._rows(self.nodes[parent].table)
        return copies * (one.rows_beside if is_repeated else one.rows_per_key)

    def _add(
        self, table: str, parent: int, relationship: Relationship, group_by: tuple[str, ...]
    ) -> int:
        depth = self.nodes[parent].depth + 1
        copies = self._copies_of(parent, relationship, is_grouped=bool(group_by))
        self._places.add_edge(parent, len(self.nodes))
        self.nodes.append(Joined(table, table, False, parent, relationship, group_by, depth))
        self._copies.append(copies)
        if copies > max(self._rows(table), self._copies[0]):
            self._structs += copies
        return len(self.nodes) - 1

    def _hang_one(self) -> bool:
        known = {node.table for node in self.nodes}
        refused = {each.what for each in self.left_out}
        offers = [
            (node.depth, -one.odds, one.child, place, one)
            for one in self._relationships
            for place, node in enumerate(self.nodes)
            if one.parent == node.table and one.child not in known and one.child not in refused
            and node.depth < self._depth
            # What a person wrote is not about what else they wrote, unless the rows are persons.
            and not (place and names.is_about_change(one.child_columns[-1]))
            and not (place and self._is_by_day(one))
        ]  # fmt: skip
        if not offers or len(self.nodes) > foundfiles.MOST_JOINS:
            return False
        _, _, table, place, one = min(offers, key=lambda offer: offer[:4])
        group_by = () if one.is_one_to_one else one.child_columns
        copies = self._copies_of(place, one, is_grouped=bool(group_by))
        each = copies / self._copies[0]
        is_repeated = copies > self._rows(table)
        most = max(foundfiles.MOST_STRUCTS, foundfiles.MOST_REPEATED * self._copies[0])
        if each > foundfiles.MOST_ELEMENTS or (is_repeated and self._structs + copies > most):
            self.left_out.append(foundfiles.LeftOut(table, self._too_many(place, one, copies)))
            return True
        self._towards_parents(self._add(table, place, one, group_by), is_all=False)
        return True

    def _is_by_day(self, one: Relationship) -> bool:
        """Whether nothing but a day joins two sources: other rows of it are no part of a row."""
        parent = self._profiles[one.parent]
        is_list = not any(parent.column(name).may_be_key for name in one.parent_columns)
        return is_list and not one.is_one_to_one

    def _too_many(self, place: int, one: Relationship, copies: float) -> str:
        """Reason for which a child is no array, by counts, and the remedy."""
        rows = f"{one.rows_per_key:,.0f} rows a key of {one.parent}"
        if copies / self._copies[0] > foundfiles.MOST_ELEMENTS:
            path = self._copies[place] / self._copies[0]
            inner = f", {path:,.0f} of which are in each row," if path > 1 else ""
            why = f"{rows}{inner} are too many for an array in every row"
        else:
            why = f"{rows}, which many rows share, are too many together with other arrays"
        return (
            f"declared, but not in the output: {why} (about {copies:,.0f} structs a snapshot); "
            f"`--root {one.child}` makes it the root; or aggregate it; or add it to "
            f"otherDataSources with groupBy [{', '.join(one.child_columns)}], and its relationship "
            "to dataRelationships"
        )


def _with_roles(nodes: Sequence[Joined], profiles: Mapping[str, SourceProfile]) -> list[Joined]:
    """Nodes with names of their own: those of a source that occurs several times by their role.

    A name has at most one word for the way to it: that of the nearest distinct source.
    """
    times = Counter(node.table for node in nodes)
    taken = {"data"}
    named: list[Joined] = []
    ways: list[tuple[str, ...]] = []
    """For each node, words that distinguish its children, the nearest first."""
    for place, node in enumerate(nodes):
        is_role = times[node.table] > 1 and place > 0
        field, way = field_of(node.table), field_of(node.table)
        above = ways[node.parent] if node.parent > 0 else ()
        options = [field]
        if is_role and node.relationship is not None:
            prefix = profiles[node.relationship.child].prefix
            role, own = role_name(node.relationship, node.table, prefix)
            options = [role] if own or not above else []
            options += [f"{each}_{role}" for each in above]
            field, way = options[0], own
        options += [f"{field}_{number}" for number in range(2, len(nodes) + 3)]
        field = next(o for o in map(field_of, options) if o.lower() not in taken)
        taken.add(field.lower())
        ways.append((way, *above) if way else above)
        named.append(replace(node, field=field, is_role=is_role))
    return named


def role_name(one: Relationship, table: str, prefix: str = "") -> tuple[str, str]:
    """The name of a source by the column that refers to it: `origin`, `billing_address`.

    The second text has the words beyond the source's own name: `billing`. A prefix is a word
    that all columns of the source that refers begin with.
    """
    column = one.child_columns[-1]
    base = names.column_words(column, prefix).base or names.words_of(column)
    words = names.table_words(table)
    role = "_".join(base)
    if {names.stem(word) for word in base} <= {names.stem(word) for word in words}:
        return role, ""
    if names.abbreviates(base[-1], words):  # cdemo of customer_demographics
        return role, role
    own = [
        word
        for word in base
        if all(names.word_likeness(word, o) < foundfiles.SAME_NAME for o in words)
    ]
    if len(own) == len(base):
        return f"{role}_{'_'.join(words)}", role
    return role, "_".join(own) or role


def field_of(name: str) -> str:
    """The field of the output that a source has by its name."""
    plain = "_".join(names.words_of(name)) or "source"
    return plain if plain[0].isalpha() else f"t_{plain}"
