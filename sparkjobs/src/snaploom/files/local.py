"""The local file system behind the object store port.

obstore's `LocalStore` is not used for it, though its put-if-absent is sound (written to `x#1`,
then hard-linked to `x`): a process killed between the two leaves `x#1`, and its listing hides
every name that ends in `#` and digits, so neither garbage collection nor the check that a folder
is empty would ever see it. It also filters `offset` only after listing everything, reports a
full disk as an untyped error, and follows links.

Here no link below the root is followed by any operation, even when others change the folder
meanwhile: each folder on the way to a name is opened by its own name in the one before (`openat`,
`O_NOFOLLOW`), and the last step names a file in a folder that is open. The root itself may be a
link: the user named it. Anything but a plain file (links, pipes, sockets, devices) is refused
before it is opened, so that a pipe cannot make a reader wait.

Unfinished writes live in one visible place (`TEMPORARY_PREFIX`), and errors keep their errno.
Put-if-absent is a hard link of a finished temporary file: `link` fails when the name exists, so
readers see the whole object or none. Nothing is synced to disk: a power failure may lose the
newest snapshots, a killed process does not.
"""

import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from snaploom import errors
from snaploom.confidential import visible
from snaploom.files.cloud import AccessDenied
from snaploom.files.objectstore import (
    TEMPORARY_PREFIX,
    ObjectInfo,
    absent,
    check_key,
    check_prefix,
    exists_already,
    too_large,
)
from snaploom.localfiles import write_new
from snaploom.models.common import EpochNanos

REFUSALS = frozenset({
    errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOTDIR,
})  # fmt: skip
"""Errors by which a file system refuses a write."""

NO_HARD_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.ENOSYS})
"""Errors of `link` on file systems that have no hard links (exFAT, some network mounts)."""

RACES_WITH_PRUNING = 20
"""Number of attempts to create a directory when others remove it for being empty; two processes
that collide need one or two rounds."""

DEEPEST = 100
"""Folders inside each other below a listed one: Snaploom makes 6, a committer of Hadoop's 5 more.
Every level holds a file descriptor while it is listed, of which a process has 1,024."""

_MORE = 4096
"""Bytes that are asked for beyond the length that a file had when it was opened: most have none."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_PASSED = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW
"""For folders on the way: a process that may not list one may still name what is in it."""
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK

_NOT_ALLOWED = (errno.EACCES, errno.EPERM)
_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class LocalObjectStore:
    """Objects as files below one directory."""

    def __init__(self, root: Path, *, create: bool) -> None:
        """Open a directory, making it if asked."""
        self._root = root
        if os.path.isfile(root):  # False, unlike `Path.is_file`, where nobody may look
            raise errors.FolderNotOurs(
                "a file is where the folder should be",
                found=str(root),
                expected="a folder, or nothing yet",
            )
        if create:
            try:
                root.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise self._refused(str(root), error) from error

    @property
    def uri(self) -> str:
        """Open a directory, making it if asked.

        Raises `FolderNotOurs` for a file in its place, `FolderNotWritable` if it cannot be made.
        """
        path = str(self._root)
        return f"file://{path}" if path.endswith("/") else f"file://{path}/"

    def put_if_absent(self, key: str, data: bytes) -> None:
        """Write a temporary file and link it to its name, which fails when the name is taken."""
        check_key(key)
        with self._temporary(data) as (folder, name):
            self._link(folder, name, key)

    def put(self, key: str, data: bytes) -> None:
        """Write a temporary file and rename it over its name; a link there is replaced itself."""
        check_key(key)

        with self._temporary(data) as (source, temporary):

            def rename(folder: int, name: str) -> None:
                os.replace(temporary, name, src_dir_fd=source, dst_dir_fd=folder)

            try:
                self._in_folder(key, rename)
            except OSError as error:
                raise self._refused(key, error) from error

    def get(self, key: str, limit: int | None = None) -> bytes:
        """Read a whole file, or refuse it when it is longer than it may be."""
        with self._reading(key) as file:
            return self._content(file, key, limit)

    def get_range(self, key: str, start: int, length: int) -> bytes:
        with self._reading(key) as file:
            return os.pread(file, length, start)

    @contextmanager
    def _reading(self, key: str) -> Iterator[int]:
        folders, name = _parts(check_key(key))
        try:
            with self._opened(folders) as folder, self._file(folder, name, key) as file:
                yield file
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            raise absent(f"{self.uri}{key}") from None
        except OSError as error:
            raise self._unreadable(key, error) from error

    def head(self, key: str) -> ObjectInfo | None:
        folders, name = _parts(check_key(key))
        try:
            with self._opened(folders) as folder:
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise self._unreadable(key, error) from error
        if stat.S_ISDIR(status.st_mode):
            return None
        self._refuse_special(key, status)
        return _info(key, status)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Walk directories; anything but a plain file is listed, never followed or opened."""
        folders = check_prefix(prefix).split("/")[:-1]
        try:
            with self._opened(folders) as folder:
                yield from self._walk(folder, ".", prefix, DEEPEST)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise self._unreadable(prefix, error) from error

    def delete(self, keys: Iterable[str]) -> None:
        """Unlink files, then the directories that this leaves empty."""
        parents: dict[tuple[str, ...], None] = {}
        for key in keys:
            folders, name = _parts(check_key(key))
            try:
                with self._opened(folders) as folder, suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=folder)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise self._refused(key, error) from error
            parents[tuple(folders)] = None
        for parent in parents:
            self._remove_empty(parent)

    def move_if_absent(self, source: str, target: str) -> None:
        """Link to the new name, then unlink the old one."""
        folders, name = _parts(check_key(source))
        check_key(target)
        try:
            with self._opened(folders) as folder:
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                self._refuse_special(source, status)
                if stat.S_ISDIR(status.st_mode):
                    raise FileNotFoundError(source)
                self._link(folder, name, target)
        except (FileNotFoundError, NotADirectoryError):
            raise absent(f"{self.uri}{source}") from None
        except OSError as error:
            raise self._refused(source, error) from error
        self.delete([source])

    def prune(self, prefix: str) -> None:
        folders = check_prefix(prefix).split("/")[:-1]
        try:
            with self._opened(folders) as folder:
                self._prune(folder, ".", prefix, DEEPEST)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise self._refused(prefix, error) from error
        self._remove_if_empty(folders)
        self._remove_empty(folders[:-1])

    @contextmanager
    def _opened(self, folders: Sequence[str], *, make: bool = False) -> Iterator[int]:
        """Open a folder below the root; none of those on the way is a link."""
        opened = self._open_root(make)
        try:
            for number, name in enumerate(folders):
                key = "/".join(folders[: number + 1])
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(name, dir_fd=opened)
                below = self._step(opened, name, key, _PASSED)
                os.close(opened)
                opened = below
            yield opened
        finally:
            os.close(opened)

    def _open_root(self, make: bool) -> int:
        flags = _PASSED & ~os.O_NOFOLLOW
        try:
            return os.open(self._root, flags)
        except FileNotFoundError:
            if not make:
                raise
            self._root.mkdir(parents=True, exist_ok=True)
            return os.open(self._root, flags)

    def _in_folder(self, key: str, operation: Callable[[int, str], None]) -> None:
        """Run an operation in the folder of a key, again when a process prunes it in between."""
        folders, name = _parts(key)
        for attempt in range(1, RACES_WITH_PRUNING + 1):
            try:
                with self._opened(folders, make=attempt > 1) as folder:
                    operation(folder, name)
            except FileNotFoundError:
                if attempt == RACES_WITH_PRUNING:
                    raise
            else:
                return

    def _step(self, folder: int, name: str, key: str, flags: int) -> int:
        """Open a folder in an open one; `NotAPlainFile` for a link."""
        try:
            return os.open(name, flags, dir_fd=folder)
        except OSError as error:
            if error.errno in (errno.ENOTDIR, errno.ELOOP):
                self._refuse_special(key, os.stat(name, dir_fd=folder, follow_symlinks=False))
            raise

    @contextmanager
    def _file(self, folder: int, name: str, key: str) -> Iterator[int]:
        # Looked at before it is opened, which does something with a device, and after it, since
        # another file may have its name by then.
        self._refuse_special(key, os.stat(name, dir_fd=folder, follow_symlinks=False))
        try:
            opened = os.open(name, _FILE, dir_fd=folder)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO):
                self._refuse_special(key, os.stat(name, dir_fd=folder, follow_symlinks=False))
            raise
        try:
            status = os.fstat(opened)
            self._refuse_special(key, status)
            if stat.S_ISDIR(status.st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            yield opened
        finally:
            os.close(opened)

    def _content(self, file: int, key: str, limit: int | None) -> bytes:
        size, read = os.fstat(file).st_size, 0
        if limit is not None and size > limit:
            raise too_large(f"{self.uri}{key}", size, limit)
        pieces: list[bytes] = []
        while piece := os.read(file, max(size - read, 0) + _MORE):
            pieces.append(piece)
            read += len(piece)
            if limit is not None and read > limit:
                raise too_large(f"{self.uri}{key}", read, limit)
        return b"".join(pieces)

    @contextmanager
    def _temporary(self, data: bytes) -> Iterator[tuple[int, str]]:
        """Write a file that has no final name yet; yields its folder and temporary name."""
        name = secrets.token_hex(16)
        key = f"{TEMPORARY_PREFIX}{name}"
        kept: list[int] = []

        def write(folder: int, name: str) -> None:
            write_new(name, data, folder)
            kept.append(os.dup(folder))

        try:
            self._in_folder(key, write)
        except OSError as error:
            raise self._refused(key, error) from error
        (folder,) = kept
        try:
            yield folder, name
        finally:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
            os.close(folder)

    def _link(self, source: int, name: str, target: str) -> None:
        def link(folder: int, new: str) -> None:
            try:
                os.link(name, new, src_dir_fd=source, dst_dir_fd=folder, follow_symlinks=False)
            except OSError as error:
                if error.errno in NO_HARD_LINKS and os.access(".", os.W_OK, dir_fd=folder):
                    raise errors.StoreNotSafe(
                        f"the file system of {self._root} has no hard links, so that two runs "
                        "could both believe that they published",
                        found=str(error),
                    ) from error
                raise
            status = os.stat(new, dir_fd=folder, follow_symlinks=False)
            if not stat.S_ISREG(status.st_mode):  # it took the file's name a moment ago
                os.unlink(new, dir_fd=folder)
                self._refuse_special(target, status)

        try:
            self._in_folder(target, link)
        except FileExistsError:
            raise exists_already(f"{self.uri}{target}") from None
        except FileNotFoundError:
            raise errors.ObjectNotFound(
                f"a file of {self.uri} vanished before it had the name {target}",
                expected="files that nobody else removes",
                hint="find out what removed it, and run again",
            ) from None
        except OSError as error:
            raise self._refused(target, error) from error

    def _walk(self, folder: int, name: str, prefix: str, depth: int) -> Iterator[ObjectInfo]:
        with self._readable(folder, name, prefix, depth) as opened:
            for entry in _entries(opened):
                key = f"{prefix}{entry.name}"
                try:
                    if entry.is_dir(follow_symlinks=False):
                        yield from self._walk(opened, entry.name, f"{key}/", depth - 1)
                    else:
                        yield _info(key, entry.stat(follow_symlinks=False))
                except (FileNotFoundError, NotADirectoryError):
                    continue

    def _prune(self, folder: int, name: str, prefix: str, depth: int) -> None:
        with self._readable(folder, name, prefix, depth) as opened:
            for entry in _entries(opened):
                if entry.is_dir(follow_symlinks=False):
                    with suppress(FileNotFoundError, NotADirectoryError):
                        self._prune(opened, entry.name, f"{prefix}{entry.name}/", depth - 1)
                    with suppress(OSError):
                        os.rmdir(entry.name, dir_fd=opened)

    @contextmanager
    def _readable(self, folder: int, name: str, prefix: str, depth: int) -> Iterator[int]:
        if not depth:
            raise errors.StorageError(
                f"{self.uri}{prefix} is nested too deep",
                found=f"more than {DEEPEST} folders inside each other",
                expected="a folder as Snaploom wrote it",
                hint="look at what made it",
            )
        opened = self._step(folder, name, prefix[:-1], _FOLDER)
        try:
            yield opened
        finally:
            os.close(opened)

    def _remove_empty(self, folders: Sequence[str]) -> None:
        # A directory with a leading dot is a place of work (`.staging`, temporary files) in which
        # Spark may be about to make a directory: Hadoop's mkdirs does not survive its removal.
        while folders and not folders[-1].startswith("."):
            if not self._remove_if_empty(folders):
                return
            folders = folders[:-1]

    def _remove_if_empty(self, folders: Sequence[str]) -> bool:
        if not folders:
            return False
        try:
            with self._opened(folders[:-1]) as folder:
                os.rmdir(folders[-1], dir_fd=folder)
        except (OSError, errors.NotAPlainFile):
            return False
        return True

    def _refuse_special(self, key: str, status: os.stat_result) -> None:
        kind = _KINDS.get(stat.S_IFMT(status.st_mode))
        if kind is not None:
            raise errors.NotAPlainFile(
                f"{self.uri}{visible(key)} is {kind}, which is not followed or opened",
                found=kind,
                expected="a plain file or folder, as Snaploom writes them",
            )

    def _refused(self, key: str, error: OSError) -> errors.SnaploomError:
        place = str(self._root) if key == str(self._root) else f"{self._root}/{visible(key)}"
        if error.errno in REFUSALS:
            return errors.FolderNotWritable(
                f"the folder {self._root} refuses writes",
                found=f"{os.strerror(error.errno or 0)} at {place}",
                expected="a folder that this process may write to, with room for the data",
            )
        return errors.StorageError(
            f"writing {place} failed",
            found=os.strerror(error.errno or 0),
            expected="a file system that takes the file",
        )

    def _unreadable(self, key: str, error: OSError) -> errors.SnaploomError:
        place = f"{self._root}/{visible(key)}"
        found = os.strerror(error.errno or 0)
        if error.errno in _NOT_ALLOWED:
            return AccessDenied(
                f"{place} may not be read by this user",
                found=f"{found}, for the user with the number {os.geteuid()}",
                expected="a folder that this user may enter, with files that it may read",
            )
        return errors.StorageError(
            f"reading {place} failed", found=found, expected="a file or folder that can be read"
        )


def _parts(key: str) -> tuple[Sequence[str], str]:
    *folders, name = key.split("/")
    return folders, name


def _entries(folder: int) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as found:
        return sorted(found, key=lambda entry: entry.name)


def _info(key: str, status: os.stat_result) -> ObjectInfo:
    tag = f"{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_size:x}"
    is_plain = stat.S_ISREG(status.st_mode)
    return ObjectInfo(key, status.st_size, EpochNanos(status.st_mtime_ns), tag, is_plain)
