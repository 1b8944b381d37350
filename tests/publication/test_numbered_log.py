"""A numbered log, explored to the end: every order of steps, lost answers, late puts and crashes.

Writers append to one log, and a reader goes through it
(`support.storage.modelcheck`). In every state:

- numbers have no gap, and what stands under one never changes;
- a document whose writer was answered stands in the log once, under the number that it was given;
- of a writer that got no answer, or died, it stands there once or not at all;
- a reader has seen the first documents of the log, in their order.

The manifest log, the states of an index and the versions of a table are such logs.
"""

import logging
from collections.abc import Hashable, Iterator
from functools import partial

import pytest
from support.runner.proofscope import IS_WHOLE
from support.storage.modelcheck import Actor, Call, Content, Explorer, Mishaps, PlayedStore, Seen

from snaploom.errors import StorageError
from snaploom.output import documents as numberedlog
from snaploom.output.documents import NumberedLog, rebased

LONGEST = 100


class Unanswered(StorageError):
    """What these logs raise for an outcome that nobody knows."""


class Contended(StorageError):
    """What they raise for too many lost races."""


def key(number: int) -> str:
    return f"log/{number}"


def log_of(store: PlayedStore) -> NumberedLog:
    return NumberedLog(store, key, LONGEST, Unanswered)


def append(name: str, life: int, store: PlayedStore) -> Hashable:
    log, document = log_of(store), f"{name} in life {life}".encode()

    def attempt() -> int | None:
        following = len(list(log.after(0))) + 1
        return following if log.append(following, document) else None

    try:
        return "appended", document, rebased(attempt, lambda races: Contended(f"{races}"))
    except StorageError as error:
        return type(error).__name__, document


def read(life: int, store: PlayedStore) -> Hashable:
    return "read", tuple(log_of(store).after(0))


WRITERS = tuple(Actor(name, partial(append, name)) for name in ("first", "second", "third"))
READER = Actor("reader", read)


def contents(content: Content) -> list[bytes]:
    documents = [content[key(number)] for number in range(1, len(content) + 1)]
    assert len(documents) == len(set(documents))
    return documents


def check(seen: Seen) -> None:
    documents = contents(seen.content)
    for outcome in seen.outcomes.values():
        match outcome:
            case ("appended", document, number):
                assert documents[number - 1] == document
            case ("read", found):
                assert documents[: len(found)] == list(found)
            case ("Unanswered", _):
                assert not seen.is_faultless
            case _:
                raise AssertionError(outcome)
    if seen.is_over and seen.is_faultless and not seen.has_crashed:
        assert len(documents) == len(seen.outcomes.keys() - {READER.name})


def is_quiet(call: Call, content: Content) -> bool:
    """A document that is there never changes."""
    return call[0] == "get" and call[1] in content


def explore(mishaps: Mishaps, *actors: Actor) -> int:
    explored = Explorer({}, actors, mishaps, is_quiet).explore(check)
    assert explored.ends
    return explored.states


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(numberedlog, "pause", lambda attempt: None)
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize(
    ("mishaps", "actors"),
    [
        (Mishaps(2, 1), (*WRITERS[:2], READER)),
        (Mishaps(1, 1), WRITERS),
        (Mishaps(6), WRITERS[:2]),
        *([(Mishaps(2, 2), (*WRITERS, READER))] if IS_WHOLE else []),
    ],
)
def test_each_answered_document_stands_once_under_its_number(mishaps, actors):
    assert explore(mishaps, *actors) > 100


def believe_every_name(log: NumberedLog, key: str, document: bytes) -> bool:
    return True


def believe_no_name(log: NumberedLog, key: str, document: bytes) -> bool:
    return False


@pytest.mark.parametrize("holds", [believe_every_name, believe_no_name])
def test_a_log_that_does_not_compare_what_is_there_is_caught(monkeypatch, holds):
    monkeypatch.setattr(NumberedLog, "_holds", holds)
    with pytest.raises(AssertionError):
        explore(Mishaps(2), *WRITERS[:2])


def test_a_log_that_takes_silence_for_a_lost_race_is_caught(monkeypatch):
    put = NumberedLog.append

    def hasty(log: NumberedLog, number: int, document: bytes) -> bool:
        try:
            return put(log, number, document)
        except Unanswered:
            return False

    monkeypatch.setattr(numberedlog, "PUT_ATTEMPTS", 1)
    monkeypatch.setattr(NumberedLog, "append", hasty)
    with pytest.raises(AssertionError):
        explore(Mishaps(1), *WRITERS[:2])
