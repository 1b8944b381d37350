"""A store with given faults: loses answers, refuses writes, or dies with its process."""

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import NoReturn

from snaploom.errors import FolderNotWritable, StorageError
from snaploom.files.cloud import AccessDenied
from snaploom.files.objectstore import ObjectInfo, ObjectStore

READS = ("get", "head", "list")


class Fault(Enum):
    REQUEST_LOST = "nothing is done, and no answer comes"
    ANSWER_LOST = "it is done, and no answer comes"
    REFUSED = "nothing is done, and the store reports it"


class Killed(BaseException):
    """The process is gone: nothing it would still do has an effect."""


class FaultyStore:
    """Passes every call on, after asking `faults` (operation, key) what is to go wrong."""

    def __init__(self, inner: ObjectStore) -> None:
        self.inner = inner
        self.faults: Callable[[str, str], Fault | None] = lambda operation, key: None
        self.is_dead = False

    def die(self) -> NoReturn:
        self.is_dead = True
        raise Killed

    @property
    def uri(self) -> str:
        return self.inner.uri

    def put_if_absent(self, key: str, data: bytes) -> None:
        self._do("put_if_absent", key, lambda: self.inner.put_if_absent(key, data))

    def put(self, key: str, data: bytes) -> None:
        self._do("put", key, lambda: self.inner.put(key, data))

    def get(self, key: str, limit: int | None = None) -> bytes:
        self._do("get", key, lambda: None)
        return self.inner.get(key, limit)

    def get_range(self, key: str, start: int, length: int) -> bytes:
        self._do("get", key, lambda: None)
        return self.inner.get_range(key, start, length)

    def head(self, key: str) -> ObjectInfo | None:
        self._do("head", key, lambda: None)
        return self.inner.head(key)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        self._do("list", prefix, lambda: None)
        return self.inner.list(prefix)

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._do("delete", key, lambda k=key: self.inner.delete([k]))  # type: ignore[misc]

    def move_if_absent(self, source: str, target: str) -> None:
        self._do("move", target, lambda: self.inner.move_if_absent(source, target))

    def prune(self, prefix: str) -> None:
        self._do("prune", prefix, lambda: self.inner.prune(prefix))

    def _do(self, operation: str, key: str, action: Callable[[], None]) -> None:
        if self.is_dead:
            raise Killed
        fault = self.faults(operation, key)
        if fault is Fault.REFUSED:
            error = AccessDenied if operation in READS else FolderNotWritable
            raise error(f"{operation} {key} is refused")
        if fault is not Fault.REQUEST_LOST:
            action()
        if fault is not None:
            raise StorageError(f"{operation} {key}: no answer")


class DyingStore(FaultyStore):
    """Dies at its n-th write, before or after doing it."""

    def __init__(self, inner: ObjectStore, writes_left: int, is_done: bool) -> None:
        super().__init__(inner)
        self._left = writes_left
        self._is_done = is_done
        self.faults = self._count

    def _count(self, operation: str, key: str) -> Fault | None:
        if operation in ("get", "head", "list", "prune"):
            return None
        self._left -= 1
        return Fault.ANSWER_LOST if self._left == 0 else None

    def _do(self, operation: str, key: str, action: Callable[[], None]) -> None:
        is_last = self._left == 1 and operation not in ("get", "head", "list", "prune")
        if not is_last or self.is_dead:
            super()._do(operation, key, action)
            return
        if self._is_done:
            action()
        self.die()


def times(
    count: int, fault: Fault, operation: str, part: str
) -> Callable[[str, str], Fault | None]:
    """The same fault for the first `count` calls of an operation on keys that contain `part`."""
    left = [count]

    def faults(name: str, key: str) -> Fault | None:
        if name != operation or part not in key or left[0] == 0:
            return None
        left[0] -= 1
        return fault

    return faults
