"""The relationships of a set of sources, chosen together where columns may mean several.

Each candidate has odds of its own (`relationships`). At most one of those of a column is right, and
most sources are there to be referred to: so contested columns are decided at once, by a forest of
least cost that reaches as many sources as likely references can, and uses every column once. The
idea is that of Auto-BI (Lin, He and Chaudhuri, PVLDB 16, 2023), where sources are nodes, candidates
are arcs, and arcs of an artificial root stand for "nothing refers to it". A choice that stays close
to another one is a question, and without an answer a guess that is stated.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, inf, log

import networkx as nx

from snaploom.plugins.discovery import foundfiles
from snaploom.plugins.discovery.compounds import (
    almost_keys,
    compound_relationships,
    counted_by,
    doubt_about,
    is_period,
    many_to_many,
    of_foreign_key,
)
from snaploom.plugins.discovery.dates import Family
from snaploom.plugins.discovery.keys import (
    NAMED,
    Key,
    compound_keys,
    home,
    only_numbers,
    primary_key,
)
from snaploom.plugins.discovery.names import (
    LIKE_ENOUGH,
    STAGED,
    column_words,
    is_about_change,
    is_plural,
    stem,
    table_likeness,
    table_words,
    words_of,
)
from snaploom.plugins.discovery.profiles import SourceProfile
from snaploom.plugins.discovery.relationships import (
    Relationship,
    Verdict,
    candidates,
    describes,
    is_copy,
)

_CLEAR = 1.5
"""Difference of odds (natural logarithms) from which a choice needs no word: 4.5 to 1."""
_NEAR = 0.1
"""Difference below which nothing is chosen: 1.1 to 1."""
_UNREFERRED = 1.4
"""Cost of a source that nothing refers to: as if that were so for one in four."""
_SURE = 1 - exp(-_UNREFERRED) / 2
_MOST_FORESTS = 20
"""Forests that are tried while one uses a column twice."""

_Source = tuple[str, tuple[str, ...]]
"""A source, and columns of it that refer."""


@dataclass(frozen=True)
class Choice:
    """The parent of columns, among candidates."""

    options: tuple[Relationship, ...]
    """Best first."""
    chosen: Relationship | None
    is_clear: bool
    effect: float
    stopped: str = ""
    """Weakness of the evidence of the options."""

    @property
    def question(self) -> foundfiles.Question:
        """The question that decides it."""
        options = [f"{one.target}, which {_reasons(one)}" for one in self.options]
        options.append("none of them" if len(options) > 1 else "no")
        place = len(self.options) if self.chosen is None else self.options.index(self.chosen)
        why = f" ({self.stopped})" if self.stopped else ""
        return foundfiles.Question(
            f"What does {self.options[0].source} refer to?{why}", tuple(options), place, self.effect
        )

    @property
    def guess(self) -> foundfiles.Guess:
        """The choice that was made without an answer."""
        others = [one for one in self.options if one is not self.chosen]
        evidence = [f"{one.target} {_reasons(one)}" for one in self.options]
        remedy = "in relationships.yaml remove the mark of one line" if others else ""
        if self.chosen is not None:
            remedy = f"remove the relationship, and {remedy}" if others else "remove it"
        return foundfiles.Guess(
            what=f"{self.options[0].source} refers to",
            chosen="nothing" if self.chosen is None else self.chosen.target,
            others=tuple(one.target for one in others),
            evidence="; ".join([*evidence, self.stopped] if self.stopped else evidence),
            change=remedy,
        )


def _reasons(one: Relationship) -> str:
    return (
        f"has {percent(one.included.share)} of its values{one.spelling}, which are "
        f"{percent(one.used)} of the keys there; {one.names}"
    )


def percent(share: float) -> str:
    """A share, for people."""
    return "< 0.1 %" if 0 < share < 0.001 else f"{100 * share:.1f} %"


@dataclass(frozen=True)
class Relationships:
    """The relationships found."""

    declared: tuple[Relationship, ...]
    """Best first."""
    weak: tuple[Relationship, ...]
    """Candidates that only a person can decide, best first."""
    primary: Mapping[str, Key]
    """The key of each source that has one."""
    guesses: tuple[foundfiles.Guess, ...] = ()
    """Choices that are not certain, and that nobody confirmed; those of most effect first."""
    stopped: tuple[foundfiles.LeftOut, ...] = ()
    """Columns that look as if they joined, and what stops them."""
    compound: Mapping[str, tuple[Key, ...]] = field(default_factory=dict)


def find_relationships(
    profiles: Sequence[SourceProfile], ask: foundfiles.Ask = foundfiles.nobody
) -> Relationships:
    """The relationships between sources; the same for the same profiles in any order."""
    ordered = sorted(profiles, key=lambda profile: profile.name)
    by_name = {profile.name: profile for profile in ordered}
    compounds = {profile.name: compound_keys(profile) for profile in ordered}
    primary = {
        profile.name: key
        for profile in ordered
        if (key := primary_key(profile, compounds[profile.name])) is not None
    }
    known = [
        of_foreign_key(child, key, by_name[key.parent], primary)
        for child in ordered
        for key in child.foreign_keys
    ]
    keyed = set(map(source_of, known))
    backwards = {(_target(r), source_of(r)) for r in known}
    verdicts = [
        verdict
        for child in ordered
        for parent in ordered
        for verdict in candidates(child, parent, primary)
        if source_of(verdict.found) not in keyed and ends_of(verdict.found) not in backwards
    ]
    open_, singles = _decided(_choices(verdicts, by_name), ask)
    singles += [r for r in known if len(r.child_columns) == 1]
    ends = {frozenset((r.child, r.parent)) for r in known if len(r.child_columns) > 1}
    by_columns: dict[_Source, list[Relationship]] = defaultdict(list)
    lasting = {
        name: tuple(key for key in keys if not any(map(is_about_change, key.columns)))
        for name, keys in compounds.items()
    }  # when rows were changed is no entity
    for one in compound_relationships(ordered, lasting, singles, primary):
        if frozenset((one.child, one.parent)) not in ends:
            by_columns[source_of(one)].append(one)
    referring = {*map(source_of, singles), *(source_of(each.options[0]) for each in open_)}
    unsure, several, stopped = _compounds(by_columns, referring, by_name, primary)
    unsure, guessed = _decided(unsure, ask)
    open_ += unsure
    several += guessed
    several += [r for r in known if len(r.child_columns) > 1]
    declared = sorted((*singles, *several), key=lambda r: r.order)
    weak = [one for choice in open_ for one in choice.options if one is not choice.chosen]
    taken = {source_of(one) for one in (*declared, *weak)}
    others = [v for v in sorted(verdicts, key=lambda v: v.found.order)
              if source_of(v.found) not in taken]  # fmt: skip
    doubled = [each for each in others if each.is_repeated]
    apart = {source_of(each.found): each for each in others[::-1] if each.is_apart}
    explained = (*declared, *(each.found for each in doubled))
    joined = {frozenset((one.child, one.parent)) for one in explained}
    stopped += [
        foundfiles.LeftOut(f"{v.found.source} -> {v.found.target}", v.stopped)
        for v in (*doubled, *apart.values())
    ]
    return Relationships(
        declared=tuple(declared),
        weak=tuple(sorted(weak, key=lambda r: r.order)[: foundfiles.MOST_WEAK]),
        primary=primary,
        guesses=tuple(
            choice.guess for choice in open_ if choice.options[0] in weak or choice.chosen
        ),
        stopped=(*stopped, *almost_keys(ordered, joined), *many_to_many(ordered, taken, joined)),
        compound=compounds,
    )


def source_of(one: Relationship) -> _Source:
    """The columns that refer."""
    return one.child, tuple(sorted(one.child_columns))


def _target(one: Relationship) -> _Source:
    return one.parent, tuple(sorted(one.parent_columns))


def ends_of(one: Relationship) -> tuple[_Source, _Source]:
    """The columns that refer, and those that are referred to."""
    return source_of(one), _target(one)


def _compounds(
    options: Mapping[_Source, Sequence[Relationship]],
    referring: Collection[_Source],
    profiles: Mapping[str, SourceProfile],
    primary: Mapping[str, Key],
) -> tuple[list[Choice], list[Relationship], list[foundfiles.LeftOut]]:
    """Relationships by several columns: those to be decided, the clear ones, and the others."""
    unsure: list[Choice] = []
    clear: list[Relationship] = []
    others: list[foundfiles.LeftOut] = []
    for ones in options.values():
        homes = _homes(ones, options)
        if len(homes) != 1:
            targets = ", ".join(sorted(one.target for one in ones))
            others.append(
                foundfiles.LeftOut(ones[0].source, f"several sources have this key: {targets}")
            )
            continue
        (one,) = homes
        child, parent = profiles[one.child], profiles[one.parent]
        rest = [c for c in one.child_columns if (one.child, (c,)) not in referring]
        main = primary.get(one.parent)
        why = doubt_about(one, child, parent, main, all_refer=not rest)
        has_other_key = main is not None and len(main.columns) == 1
        is_shared = (has_other_key or len(rest) < len(one.child_columns)) and all(
            is_period(child.column(name)) for name in rest
        )
        is_shared |= bool(rest) and bool(counted_by(one, child, is_once=False))
        is_shared |= bool(only_numbers(parent, one.parent_columns))
        is_description = has_other_key and any(
            each.type.family is Family.TEXT and not is_period(each)
            and describes(parent, each, primary)
            for each in map(parent.column, one.parent_columns)
        )  # fmt: skip
        if not (is_shared or why or is_description or one.normalize):
            clear.append(one)
            continue
        unsure.append(Choice((one,), None if why else one, False, _effect(one, profiles), why))
    return unsure, clear, others


def _decided(
    choices: Sequence[Choice], ask: foundfiles.Ask
) -> tuple[list[Choice], list[Relationship]]:
    """Choices that nobody confirmed, those of most effect first, and the relationships chosen."""
    chosen = [each.chosen for each in choices if each.is_clear and each.chosen is not None]
    unclear = sorted((e for e in choices if not e.is_clear), key=lambda e: -e.effect)
    questions = [each.question for each in unclear]
    open_: list[Choice] = []
    for each, answer in zip(unclear, ask(questions), strict=True):
        one = each.chosen
        if answer is None:
            open_.append(each)
            one = one and replace(one, is_guess=True)
        else:
            one = each.options[answer] if answer < len(each.options) else None
        chosen += [one] if one is not None else []
    return open_, chosen


def _choices(verdicts: Sequence[Verdict], profiles: Mapping[str, SourceProfile]) -> list[Choice]:
    strong = _one_direction((v.found for v in verdicts if v.is_strong), profiles)
    backwards = {(_target(r), source_of(r)) for r in strong}
    weak = {v.found: v.stopped for v in verdicts if v.is_weak and ends_of(v.found) not in backwards}
    rivals: dict[_Source, float] = defaultdict(lambda: -inf)
    for verdict in verdicts:
        if verdict.is_repeated:
            source = source_of(verdict.found)
            rivals[source] = max(rivals[source], verdict.found.odds)
    options: dict[_Source, list[Relationship]] = defaultdict(list)
    for one in sorted(strong, key=lambda r: r.order):
        options[source_of(one)].append(one)
    options = {
        source: _originals(_homes(ones, options) or ones, profiles)
        for source, ones in options.items()
    }
    chosen = _together(options)
    found = [
        _choice(source, options, chosen, rivals[source], profiles) for source in sorted(options)
    ]
    for one in sorted(_one_direction(weak, profiles), key=lambda r: r.order):
        if source_of(one) not in options:
            options[source_of(one)] = [one]
            found.append(Choice((one,), None, False, _effect(one, profiles), weak[one]))
    return found


def _choice(
    source: _Source,
    options: Mapping[_Source, Sequence[Relationship]],
    chosen: Mapping[_Source, Relationship],
    stopped: float,
    profiles: Mapping[str, SourceProfile],
) -> Choice:
    """The choice of one column, by the distance to the next best one of all columns."""
    best = chosen[source]
    rest = [one for one in options[source] if one is not best]
    margin = min(best.odds, best.odds - stopped)
    if rest and best.odds - max(one.odds for one in rest) < _CLEAR + _UNREFERRED:
        without = {**options, source: rest}
        other = _together(without)
        margin = min(margin, _cost(other, options) - _cost(chosen, options))
    least = (
        foundfiles.LIKE_NAME if best.is_proved else foundfiles.SAME_NAME if rest else LIKE_ENOUGH
    )
    own = {one for one in rest if _is_of_child(one, best)}
    namesake = _namesake(best, rest, profiles)
    if (
        own
        or best.normalize
        or best.likeness < least
        or best.is_unsure
        or namesake
        or _is_repetition(best, chosen.values(), profiles)
        or (best.included.compared == 1 and best.likeness < 1)
    ):  # stated, however few others there are
        margin = min(margin, _CLEAR - 0.01) if margin >= _NEAR else margin
    if best.included.compared == 1 and best.likeness < 1 and is_plural(best.child_columns[0]):
        margin = min(margin, 0.0)  # a column that is called modes has a list of them
    near = tuple(o for o in rest if o in own or o.odds > best.odds - _CLEAR - _UNREFERRED)
    effect = _effect(best, profiles)
    if margin >= _CLEAR:
        return Choice((best,), best, True, effect)
    why = f"{namesake} has this name, but no column of it is their key" if namesake else ""
    return Choice((best, *near), best if margin >= _NEAR else None, False, effect, why)


def _namesake(
    best: Relationship, rest: Iterable[Relationship], profiles: Mapping[str, SourceProfile]
) -> str:
    """The source that a column is named for, if it is no candidate and the best one is not."""
    child, known = profiles[best.child], {one.parent for one in (best, *rest)}
    column = child.column(best.child_columns[0])
    if home(child, column, profiles[best.parent]) >= NAMED:
        return ""
    others = (each for each in profiles.values() if each.name not in {child.name, *known})
    return next((each.name for each in others if home(child, column, each) >= NAMED), "")


def _is_repetition(
    best: Relationship, chosen: Iterable[Relationship], profiles: Mapping[str, SourceProfile]
) -> bool:
    """Whether another column, whose name is likelier, has the same key in each row of the child.

    The patient_insurance_id beside a patient_id may be meant for something else.
    """
    child = profiles[best.child]
    column = child.column(best.child_columns[0])
    return any(
        (one.child, *_target(one)) == (best.child, *_target(best))
        and one.likeness > best.likeness
        and column.values.equal_rows(child.column(one.child_columns[0]).values)
        == column.rows - column.nulls
        for one in chosen
    )


def _is_of_child(one: Relationship, best: Relationship) -> bool:
    """Whether a parent is called as the best one and, in front, as the child: order_statuses.

    Of a child that refers to itself, as reserve_clerks, what its name has a word more than: clerks.
    """
    names, base = (list(map(stem, table_words(each.parent))) for each in (one, best))
    if best.child == best.parent:
        return set(names) < set(base)
    own = set(map(stem, table_words(best.child)))
    front = names[: -len(base)]
    return bool(front) and names[-len(base) :] == base and own.issuperset(front)


def _homes(
    ones: Sequence[Relationship], options: Mapping[_Source, Sequence[Relationship]]
) -> list[Relationship]:
    """Candidates without those whose key refers to another one, as details of orders.

    Where that may be the other way round, as both have the same keys, the other one is a guess.
    """
    keys = set(map(_target, ones))
    kept, is_unsure = [], False
    for one in ones:
        above = [
            r for r in options.get(_target(one), ())
            if _target(r) in keys and r.included.share >= foundfiles.INCLUDED_LIKE_NAME
        ]  # fmt: skip
        is_same = any(
            r.is_unsure and r.is_one_to_one
            and (r.used == r.included.share == 1 or not r.is_by_chance) for r in above
        )  # fmt: skip
        if is_same or any(not r.is_unsure for r in above):
            is_unsure |= is_same
        else:
            kept.append(one)
    return [replace(one, is_unsure=True) for one in kept] if is_unsure else kept


def _originals(
    ones: Sequence[Relationship], profiles: Mapping[str, SourceProfile]
) -> list[Relationship]:
    """Candidates without sums, and copies: sources called as others and more, and columns."""

    def is_older(one: Relationship, other: Relationship) -> bool:
        mine, theirs = set(table_words(one.parent)), set(table_words(other.parent))
        is_staged = STAGED.intersection(words_of(one.parent)) - set(words_of(other.parent))
        return (
            (mine > theirs or (mine == theirs and bool(is_staged)))
            and one.included.share <= other.included.share
            and is_copy(profiles[one.parent], profiles[other.parent])
        )

    def is_again(one: Relationship, other: Relationship) -> bool:
        """Whether a better candidate has the same in each row of the parent."""
        mine, theirs = (profiles[r.parent].column(r.parent_columns[0]) for r in (one, other))
        is_worse = one.parent == other.parent and one.order > other.order
        return is_worse and mine.values.equal_rows(theirs.values) == mine.rows

    def has_sums(one: Relationship) -> bool:
        """Whether a parent has sums of another source, whose name stands beside its key's."""
        parent = profiles[one.parent]
        base = {*map(stem, column_words(one.parent_columns[0], parent.prefix).base)}
        rest = tuple(word for word in table_words(parent.name) if stem(word) not in base)
        is_named = any(table_likeness(rest, table_words(name)) >= NAMED for name in profiles)
        return is_named and bool(base and only_numbers(parent, one.parent_columns))

    lists = [one for one in ones if not has_sums(one)]
    kept = lists if any(one.likeness >= foundfiles.SAME_NAME for one in lists) else ones
    return [
        one for one in kept
        if not any(is_older(one, other) or is_again(one, other) for other in kept)
    ]  # fmt: skip


def _effect(one: Relationship, profiles: Mapping[str, SourceProfile]) -> float:
    return float(profiles[one.child].rows * len(profiles[one.parent].columns))


# The choice of all contested columns at once.


def _together(options: Mapping[_Source, Sequence[Relationship]]) -> dict[_Source, Relationship]:
    """The relationship of each column: that of a forest of least cost, else the likeliest one."""
    chosen = {source: ones[0] for source, ones in options.items()}
    contested = {s: ones for s, ones in options.items() if _share(ones[0], ones) < _SURE}
    reached = {
        one.parent for source, one in chosen.items()
        if source not in contested and not (one.is_one_to_one and one.is_unsure)
    }  # fmt: skip
    chosen.update((source_of(one), one) for one in _forest(contested, reached))
    return chosen


def _share(one: Relationship, ones: Iterable[Relationship]) -> float:
    """The probability of a candidate, given that one of them, or none, is right."""
    return 1 / (exp(-one.odds) + sum(exp(other.odds - one.odds) for other in ones))


def _cost(
    chosen: Mapping[_Source, Relationship], options: Mapping[_Source, Sequence[Relationship]]
) -> float:
    parents = {one.parent for ones in options.values() for one in ones}
    unreferred = parents - {one.parent for one in chosen.values()}
    return _UNREFERRED * len(unreferred) - sum(one.odds for one in chosen.values())


def _forest(
    contested: Mapping[_Source, Sequence[Relationship]], reached: Iterable[str]
) -> tuple[Relationship, ...]:
    """The cheapest arcs by which sources are reached, each column used once.

    A forest that uses a column twice is tried again, once with each of the two uses only.
    """
    arcs = [
        (-log(_share(one, ones)), one)
        for ones in contested.values() for one in ones
        if one.child != one.parent
    ]  # fmt: skip
    best: tuple[float, tuple[Relationship, ...]] = (inf, ())
    waiting = [arcs]
    for _ in range(_MOST_FORESTS):
        if not waiting:
            break
        given = waiting.pop()
        cost, found = _arborescence(given, frozenset(reached))
        if cost >= best[0]:
            continue
        uses = Counter(map(source_of, found))
        source = next((source for source, times in sorted(uses.items()) if times > 1), None)
        if source is None:
            best = (cost, found)
            continue
        waiting += [
            [arc for arc in given if arc[1] is one or source_of(arc[1]) != source]
            for one in sorted(found, key=lambda r: r.odds)
            if source_of(one) == source
        ]
    return best[1]


def _arborescence(
    arcs: Iterable[tuple[float, Relationship]], reached: frozenset[str]
) -> tuple[float, tuple[Relationship, ...]]:
    graph = nx.DiGraph()
    for cost, one in arcs:
        for name in (one.child, one.parent):
            unreferred = 0.0 if name in reached else _UNREFERRED
            graph.add_edge("", name, weight=unreferred, one=None)
        before = graph.get_edge_data(one.child, one.parent)
        if before is None or cost < before["weight"]:
            graph.add_edge(one.child, one.parent, weight=cost, one=one)
    if not graph:
        return 0.0, ()
    tree = nx.minimum_spanning_arborescence(graph)
    found = tuple(graph.edges[edge]["one"] for edge in tree.edges)
    cost = sum(graph.edges[edge]["weight"] for edge in tree.edges)
    return cost, tuple(one for one in found if one is not None)


def _one_direction(
    found: Iterable[Relationship], profiles: Mapping[str, SourceProfile]
) -> list[Relationship]:
    """Of two relationships between the same columns, the one whose parent is their home."""
    by_pair: dict[frozenset[_Source], list[Relationship]] = defaultdict(list)
    for one in found:
        by_pair[frozenset([source_of(one), _target(one)])].append(one)
    return [_likelier(ones, profiles) for ones in by_pair.values()]


def _likelier(ones: Sequence[Relationship], profiles: Mapping[str, SourceProfile]) -> Relationship:
    """The better direction: of equal ones that to more columns, as a guess if not twice as many."""

    def width(one: Relationship) -> int:
        return len(profiles[one.parent].columns)

    best, *rest = sorted(ones, key=lambda r: (-r.odds, -r.included.share, -width(r), r.parent))
    is_tied = any(
        (r.odds, r.included.share) == (best.odds, best.included.share)
        and width(best) < 2 * width(r)
        for r in rest
    )
    return replace(best, is_unsure=best.is_unsure or is_tied)
