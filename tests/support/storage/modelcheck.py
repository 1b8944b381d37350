"""All interleavings of several actors on one store: breadth first, running the real code.

An actor is any function of a store. What it does next follows from the answers it had so far, so
it is run once for each sequence of answers that it can get, with those answers played back; from
then on the step is looked up. A state of the whole is the content of the store, what each actor has
received, and which requests are still under way. Equal states are visited once.

Every state that is reached is also the state after any of the unfinished actors died there, so that
what holds in all states holds after all crashes without a restart. A crash as a step of its
own has one: the actor starts again, as a new run without state. It may die between
any two calls, and with a call on its way, which then arrives at any later moment. Besides, requests
may get lost, answers may get lost, and a request without answer may arrive later.

Steps that no other actor can notice, or that always have the same answer, are taken at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from snaploom.errors import ObjectAlreadyExists, ObjectNotFound, StorageError
from snaploom.files.objectstore import ObjectInfo
from snaploom.models.common import EpochNanos
from snaploom.output import layout

Call = tuple[str, str, bytes]
"""Operation, key (or prefix), and data (or the target of a move)."""
Answer = tuple[str, Hashable]
Content = Mapping[str, bytes]
WRITES = frozenset({"put_if_absent", "put", "delete", "move"})
LOST: Answer = ("lost", None)


def perform(content: Content, call: Call) -> tuple[Content, Answer]:
    operation, key, data = call
    match operation:
        case "get":
            return content, ("bytes", content[key]) if key in content else ("absent", None)
        case "head":
            size = len(content[key]) if key in content else None
            return content, ("size", size)
        case "list":
            found = tuple((k, len(v)) for k, v in content.items() if k.startswith(key))
            return content, ("infos", tuple(sorted(found)))
        case "put_if_absent" if key in content:
            return content, ("exists", None)
        case "put" | "put_if_absent":
            return {**content, key: data}, ("done", None)
        case "delete":
            return {k: v for k, v in content.items() if k != key}, ("done", None)
        case "move":
            target = data.decode()
            if key not in content:
                return content, ("absent", None)
            if target in content:
                return content, ("exists", None)
            moved = {k: v for k, v in content.items() if k != key}
            return {**moved, target: content[key]}, ("done", None)
    raise AssertionError(operation)


class PlayedStore:
    """Plays answers back, and then goes on with the content as the only client."""

    uri = "memory:///"

    def __init__(self, answers: Sequence[Answer], content: Content) -> None:
        self._answers = deque(answers)
        self._content = content
        self.answered: list[tuple[Call, Answer]] = []

    def _ask(self, operation: str, key: str, data: bytes = b"") -> Hashable:
        call = (operation, key, data)
        if self._answers:
            answer = self._answers.popleft()
        else:
            self._content, answer = perform(self._content, call)
        self.answered.append((call, answer))
        match answer[0]:
            case "absent":
                raise ObjectNotFound(f"{key} does not exist")
            case "exists":
                raise ObjectAlreadyExists(f"{key} exists already")
            case "lost":
                raise StorageError(f"{operation} {key}: no answer")
        return answer[1]

    def get(self, key: str, limit: int | None = None) -> bytes:
        found = self._ask("get", key)
        assert isinstance(found, bytes)
        return found

    def get_range(self, key: str, start: int, length: int) -> bytes:
        return self.get(key)[start : start + length]

    def head(self, key: str) -> ObjectInfo | None:
        size = self._ask("head", key)
        return _info(key, size) if isinstance(size, int) else None

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        found = self._ask("list", prefix)
        assert isinstance(found, tuple)
        return iter([_info(key, size) for key, size in found])

    def put_if_absent(self, key: str, data: bytes) -> None:
        self._ask("put_if_absent", key, data)

    def put(self, key: str, data: bytes) -> None:
        self._ask("put", key, data)

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._ask("delete", key)

    def move_if_absent(self, source: str, target: str) -> None:
        self._ask("move", source, target.encode())

    def prune(self, prefix: str) -> None:
        return None


def _info(key: str, size: int) -> ObjectInfo:
    return ObjectInfo(key, size, EpochNanos(1), None)


@dataclass(frozen=True)
class Actor:
    """A client of the store, and how it ended."""

    name: str
    act: Callable[[int, PlayedStore], Hashable]
    """Called with the number of crashes that it has behind it."""


@dataclass(eq=False)
class _Position:
    """An actor after a sequence of answers: its next call, or its end."""

    parent: _Position | None
    answer: Answer | None
    life: int = 0
    """Crashes before."""
    call: Call | None = None
    outcome: Hashable = None
    after: dict[Answer, _Position] = field(default_factory=dict)

    def history(self) -> list[Answer]:
        node, answers = self, []
        while node.parent is not None:
            assert node.answer is not None
            answers.append(node.answer)
            node = node.parent
        return answers[::-1]


@dataclass(frozen=True)
class Seen:
    """One state, as invariants see it."""

    content: Content
    outcomes: Mapping[str, Hashable]
    """By name of each actor that has ended."""
    is_over: bool
    """Whether all have ended and nothing is under way."""
    is_faultless: bool
    """Whether no request or answer got lost on the way here."""
    has_crashed: bool
    """Whether anybody died on the way here."""


@dataclass(frozen=True)
class Explored:
    """How many states were visited."""

    states: int
    steps: int
    ends: int


@dataclass(frozen=True)
class Mishaps:
    """What may go wrong on the way to a state."""

    faults: int = 0
    """Requests or answers that get lost."""
    crashes: int = 0
    """Actors that die and begin again."""


_State = tuple[int, tuple[_Position, ...], tuple[Call, ...], Mishaps]
"""Content, answers of each, calls on their way, and what may still go wrong."""


class Explorer:
    """Visits every state that the actors can bring about.

    Args:
        content: what the store holds at first.
        actors: who works on it.
        mishaps: what may go wrong on the way to a state, at most.
        is_quiet: whether a call cannot be noticed by others, nor its answer changed by them.
    """

    def __init__(
        self,
        content: Content,
        actors: Sequence[Actor],
        mishaps: Mishaps,
        is_quiet: Callable[[Call, Content], bool],
    ) -> None:
        self._contents: list[Content] = []
        self._numbers: dict[frozenset[tuple[str, bytes]], int] = {}
        self._done: dict[tuple[int, Call], tuple[int, Answer]] = {}
        self._actors = actors
        self._is_quiet = is_quiet
        self._mishaps = mishaps
        self._starts: dict[tuple[int, int], _Position] = {}
        self._first = self._number(content)

    def explore(self, check: Callable[[Seen], None]) -> Explored:
        """Visit all states, and check each once."""
        positions = tuple(self._started(who, 0, self._first) for who in range(len(self._actors)))
        start = self._settled((self._first, positions, (), self._mishaps))
        visited, queue = {start}, deque([start])
        steps = ends = 0
        while queue:
            state = queue.popleft()
            seen = self._seen(state)
            check(seen)
            ends += seen.is_over
            for following in self._following(state):
                steps += 1
                if following not in visited:
                    visited.add(following)
                    queue.append(following)
        return Explored(len(visited), steps, ends)

    def _following(self, state: _State) -> Iterator[_State]:
        number, positions, under_way, left = state
        for at, call in enumerate(under_way):
            arrived, _ = self._perform(number, call)
            yield arrived, positions, under_way[:at] + under_way[at + 1 :], left
        for who, node in enumerate(positions):
            call = node.call
            if call is None:
                continue
            done, answer = self._perform(number, call)
            yield self._answered(state, who, done, answer, under_way, left)
            later = tuple(sorted((*under_way, call)))
            is_write = call[0] in WRITES
            if left.faults and is_write:
                fewer = replace(left, faults=left.faults - 1)
                yield self._answered(state, who, done, LOST, under_way, fewer)
                yield self._answered(state, who, number, LOST, under_way, fewer)
                yield self._answered(state, who, number, LOST, later, fewer)
            if left.crashes:
                fewer = replace(left, crashes=left.crashes - 1)
                if node.parent is not None:
                    yield self._restarted(state, who, under_way, fewer)
                if is_write:
                    yield self._restarted(state, who, later, fewer)

    def _answered(
        self,
        state: _State,
        who: int,
        number: int,
        answer: Answer,
        way: tuple[Call, ...],
        left: Mishaps,
    ) -> _State:
        positions = list(state[1])
        positions[who] = self._after(who, positions[who], answer, number)
        return self._settled((number, tuple(positions), way, left))

    def _restarted(self, state: _State, who: int, way: tuple[Call, ...], left: Mishaps) -> _State:
        """Restart an actor: what it had done stays done, what it knew is lost."""
        number, positions = state[0], list(state[1])
        positions[who] = self._started(who, positions[who].life + 1, number)
        return self._settled((number, tuple(positions), way, left))

    def _started(self, who: int, life: int, number: int) -> _Position:
        if (who, life) not in self._starts:
            node = self._starts[who, life] = _Position(None, None, life)
            self._play(who, node, number)
        return self._starts[who, life]

    def _settled(self, state: _State) -> _State:
        """The state once every actor has taken the steps that others do not notice."""
        number, positions, under_way, left = state
        nodes = list(positions)
        for who, start in enumerate(nodes):
            node = start
            while node.call is not None and self._is_quiet(node.call, self._contents[number]):
                number, answer = self._perform(number, node.call)
                node = self._after(who, node, answer, number)
            nodes[who] = node
        return number, tuple(nodes), under_way, left

    def _after(self, who: int, node: _Position, answer: Answer, number: int) -> _Position:
        if answer not in node.after:
            following = node.after[answer] = _Position(node, answer, node.life)
            self._play(who, following, number)
        return node.after[answer]

    def _play(self, who: int, node: _Position, number: int) -> None:
        """Find what an actor does next, and what it would do on its own from here on."""
        history = node.history()
        store = PlayedStore(history, self._contents[number])
        outcome = self._actors[who].act(node.life, store)
        for call, answer in store.answered[len(history) :]:
            node.call = call
            if answer in node.after:
                return
            node.after[answer] = _Position(node, answer, node.life)
            node = node.after[answer]
        node.outcome = outcome

    def _perform(self, number: int, call: Call) -> tuple[int, Answer]:
        if (number, call) not in self._done:
            content, answer = perform(self._contents[number], call)
            self._done[number, call] = self._number(content), answer
        return self._done[number, call]

    def _number(self, content: Content) -> int:
        key = frozenset(content.items())
        if key not in self._numbers:
            self._numbers[key] = len(self._contents)
            self._contents.append(content)
        return self._numbers[key]

    def _seen(self, state: _State) -> Seen:
        number, positions, under_way, left = state
        ended = {
            actor.name: node.outcome
            for actor, node in zip(self._actors, positions, strict=True)
            if node.call is None
        }
        is_over = not under_way and len(ended) == len(positions)
        return Seen(
            self._contents[number],
            ended,
            is_over,
            is_faultless=left.faults == self._mishaps.faults,
            has_crashed=left.crashes < self._mishaps.crashes,
        )


def is_quiet(call: Call, content: Content) -> bool:
    """Steps of the protocol that others do not notice.

    Entries of the log never change once they are there; the marker neither; checkpoints are written
    every 64 entries, which no run here reaches; documents are named by their content.
    """
    operation, key, _ = call
    if operation == "get":
        return key == layout.MARKER or (key.startswith(layout.MANIFEST) and key in content)
    if operation == "list":
        return key == layout.CHECKPOINTS
    return key.startswith((layout.SCHEMAS, layout.DATA_MODELS))
