"""The local file system behind the object store port.

obstore's `LocalStore` is not used for it, though its put-if-absent is sound (written to `x#1`,
then hard-linked to `x`): a process killed between the two leaves `x#1`, and its listing hides
every name that ends in `#` and digits, so neither garbage collection nor the check that a folder
is empty would ever see it. It also filters `offset` only after listing everything, and reports a
full disk as an untyped error. Here unfinished writes live in one visible place
(`TEMPORARY_PREFIX`), and errors keep their errno.

Put-if-absent is a hard link of a finished temporary file: `link` fails when the name exists, so
readers see the whole object or none. Nothing is synced to disk: a power failure may lose the
newest snapshots, a killed process does not.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from snaploom.errors import (
    FolderNotOurs,
    FolderNotWritable,
    ObjectAlreadyExists,
    ObjectNotFound,
    SnaploomError,
    StorageError,
    StoreNotSafe,
)
from snaploom.models.times import EpochNanos
from snaploom.storage.objectstore import TEMPORARY_PREFIX, ObjectInfo, check_key, check_prefix

REFUSALS = frozenset({
    errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOTDIR,
})  # fmt: skip
"""Errors by which a file system says that it will not take a write."""

NO_HARD_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.ENOSYS})
"""Errors of `link` on file systems that have no hard links (exFAT, some network mounts)."""

RACES_WITH_PRUNING = 20
"""How often a directory is made again when others remove it for being empty; two processes that
collide need one or two rounds."""


class LocalObjectStore:
    """Objects as files below one directory."""

    def __init__(self, root: Path, *, create: bool) -> None:
        """Open a directory, making it if asked.

        Raises:
            FolderNotOurs: a file is in its place.
            FolderNotWritable: it cannot be made.
        """
        self._root = root
        if root.is_file():
            raise FolderNotOurs(
                "a file is where the folder should be",
                found=str(root),
                expected="a folder, or nothing yet",
                hint="name another folder; the file was not touched",
            )
        if create:
            try:
                root.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise self._refused(str(root), error) from error

    @property
    def uri(self) -> str:
        """`file://` and the absolute path, with a final `/`."""
        path = str(self._root)
        return f"file://{path}" if path.endswith("/") else f"file://{path}/"

    def put_if_absent(self, key: str, data: bytes) -> None:
        """Write a temporary file and link it to its name, which fails when the name is taken."""
        target = self._path(key)
        temporary = self._write_temporary(data)
        try:
            self._link(temporary, target, key)
        finally:
            _unlink(temporary)

    def put(self, key: str, data: bytes) -> None:
        """Write a temporary file and rename it over its name."""
        target = self._path(key)
        temporary = self._write_temporary(data)
        try:
            self._in_directory(target, lambda: os.replace(temporary, target))
        except OSError as error:
            raise self._refused(key, error) from error
        finally:
            _unlink(temporary)

    def get(self, key: str) -> bytes:
        """Read a whole file."""
        try:
            return self._path(key).read_bytes()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            raise ObjectNotFound(f"{self.uri}{key} does not exist") from None
        except OSError as error:
            raise self._unreadable(key, error) from error

    def head(self, key: str) -> ObjectInfo | None:
        """Look at a file without opening it."""
        try:
            status = os.lstat(self._path(key))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise self._unreadable(key, error) from error
        return None if _is_directory(status) else _info(key, status)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Walk directories; symbolic links are listed and never followed."""
        check_prefix(prefix)
        try:
            yield from _walk(self._root / prefix, prefix)
        except OSError as error:
            raise self._unreadable(prefix, error) from error

    def delete(self, keys: Iterable[str]) -> None:
        """Unlink files, then the directories that this leaves empty."""
        parents: set[Path] = set()
        for key in keys:
            path = self._path(key)
            try:
                _unlink(path)
            except NotADirectoryError:
                continue
            except OSError as error:
                raise self._refused(key, error) from error
            parents.add(path.parent)
        for parent in parents:
            self._remove_empty(parent)

    def move_if_absent(self, source: str, target: str) -> None:
        """Link to the new name, then unlink the old one."""
        origin = self._path(source)
        if self.head(source) is None:
            raise ObjectNotFound(f"{self.uri}{source} does not exist")
        self._link(origin, self._path(target), target)
        self.delete([source])

    def prune(self, prefix: str) -> None:
        """Remove empty directories, deepest first."""
        top = self._root / check_prefix(prefix)
        for directory, _, _ in os.walk(top, topdown=False):
            if Path(directory) != self._root:
                _remove_if_empty(Path(directory))
        self._remove_empty(top.parent)

    def _path(self, key: str) -> Path:
        return self._root / check_key(key)

    def _write_temporary(self, data: bytes) -> Path:
        key = f"{TEMPORARY_PREFIX}{secrets.token_hex(16)}"
        path = self._root / key
        try:
            self._in_directory(path, lambda: _write_new(path, data))
        except OSError as error:
            _unlink(path)
            raise self._refused(key, error) from error
        except BaseException:
            _unlink(path)
            raise
        return path

    def _link(self, source: Path, target: Path, key: str) -> None:
        try:
            self._in_directory(target, lambda: os.link(source, target, follow_symlinks=False))
        except FileExistsError:
            raise ObjectAlreadyExists(f"{self.uri}{key} exists already") from None
        except FileNotFoundError:
            raise ObjectNotFound(f"{source} vanished before it had the name {key}") from None
        except OSError as error:
            if error.errno in NO_HARD_LINKS and os.access(target.parent, os.W_OK):
                raise StoreNotSafe(
                    f"the file system of {self._root} has no hard links, so that two runs could "
                    "both believe that they published",
                    found=str(error),
                    hint="publish to a local disk, or to an object store",
                ) from error
            raise self._refused(key, error) from error

    def _in_directory(self, path: Path, operation: Callable[[], None]) -> None:
        """Make the parent as needed; again when another process prunes it in between."""
        for _ in range(RACES_WITH_PRUNING):
            try:
                operation()
            except FileNotFoundError:
                _make_directories(path.parent)
            else:
                return
        operation()

    def _remove_empty(self, directory: Path) -> None:
        # A directory with a leading dot is a place of work (`.staging`, temporary files) in which
        # Spark may be about to make a directory: Hadoop's mkdirs does not survive its removal.
        while directory != self._root and not directory.name.startswith("."):
            if not _remove_if_empty(directory):
                return
            directory = directory.parent

    def _refused(self, key: str, error: OSError) -> SnaploomError:
        place = str(self._root) if key == str(self._root) else f"{self._root}/{key}"
        if error.errno in REFUSALS:
            return FolderNotWritable(
                f"the folder {self._root} refuses writes",
                found=f"{os.strerror(error.errno or 0)} at {place}",
                expected="a folder that this process may write to, with room for the data",
                hint="check permissions, mount options and free space",
            )
        return StorageError(f"writing {place} failed: {error}")

    def _unreadable(self, key: str, error: OSError) -> SnaploomError:
        return StorageError(f"reading {self._root}/{key} failed: {os.strerror(error.errno or 0)}")


def _write_new(path: Path, data: bytes) -> None:
    with path.open("xb") as stream:
        stream.write(data)


def _make_directories(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except FileNotFoundError:
        return  # an ancestor was pruned meanwhile: the caller tries again
    except FileExistsError:
        # A file in the way, or a directory that was there for `mkdir` and pruned before the look.
        if directory.is_file() or directory.is_symlink():
            raise NotADirectoryError(errno.ENOTDIR, "a file is in the way") from None


def _unlink(path: Path) -> None:
    path.unlink(missing_ok=True)


def _remove_if_empty(directory: Path) -> bool:
    try:
        directory.rmdir()
    except OSError:
        return False
    return True


def _walk(directory: Path, prefix: str) -> Iterator[ObjectInfo]:
    try:
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in entries:
        key = f"{prefix}{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(directory / entry.name, f"{key}/")
            continue
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue
        yield _info(key, status)


def _info(key: str, status: os.stat_result) -> ObjectInfo:
    tag = f"{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_size:x}"
    return ObjectInfo(key, status.st_size, EpochNanos(status.st_mtime_ns), tag)


def _is_directory(status: os.stat_result) -> bool:
    return stat.S_ISDIR(status.st_mode)
