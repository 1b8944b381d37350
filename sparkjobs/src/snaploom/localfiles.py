"""Files on this machine: those that users name, our cache, and the end of our processes."""

import atexit
import errno
import os
import secrets
import stat
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from tempfile import gettempdir, mkdtemp
from typing import NoReturn

# Files on this machine that users name: read where they are plain files, and replaced as a whole.

_OTHER_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}


def absolute_path(place: Path | str) -> Path:
    """The absolute path of a place, without the `..` that no declaration may have.

    Links keep their names, unless `..` follows one of them.
    """
    path = Path(place)
    return path.resolve() if ".." in path.parts else path.absolute()


@contextmanager
def open_plain(path: Path | str) -> Iterator[BufferedReader]:
    """Open a file for reading, where it is a plain file or a link to one.

    Raises:
        OSError: it cannot be read, or is something else: a pipe, socket, device or folder.
    """
    # Looked at before it is opened, which does something with a device, and after it, since
    # another file may have its name by then.
    _refuse_others(os.stat(path), path)
    opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(opened, "rb") as stream:
        _refuse_others(os.fstat(opened), path)
        yield stream


def read_plain(path: Path | str, most: int) -> bytes:
    """Read a plain file, of a longer one the beginning: one byte more than it may have.

    `most` is the number of bytes that it may have.
    """
    with open_plain(path) as stream:
        return stream.read(most + 1)


def write_file(path: Path, content: str | bytes, *, is_durable: bool = False) -> None:
    """Write a file as a whole: readers see the former or the new one; a link there is replaced.

    Args:
        path: of the file, in an existing folder. A file that is replaced gives its permissions.
        content: text is written as UTF-8.
        is_durable: whether it is on the disk when this returns, for content that cannot be made
            again.

    Raises:
        OSError: the file system refuses; what was there is unchanged.
    """
    data = content.encode() if isinstance(content, str) else content
    beside = path.with_name(f".{secrets.token_hex(8)}.tmp")
    write_new(beside, data, is_durable=is_durable)
    try:
        with suppress(FileNotFoundError):
            before = path.lstat()
            if stat.S_ISREG(before.st_mode):
                beside.chmod(stat.S_IMODE(before.st_mode))
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def write_new(
    path: Path | str, data: bytes, folder: int | None = None, *, is_durable: bool = False
) -> None:
    """Write a file that must not be there; none is left where it cannot be written in full.

    A relative path counts from the folder of the descriptor `folder`; `is_durable` writes it to the
    disk first.

    Raises:
        OSError: the file system refuses, or something has the name, be it a link to nowhere.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(path, flags, 0o666, dir_fd=folder)
    try:
        with os.fdopen(file, "wb", buffering=0) as stream:
            left = memoryview(data)
            while left:
                left = left[stream.write(left) :]
            if is_durable:
                os.fsync(file)
    except BaseException:
        os.unlink(path, dir_fd=folder)
        raise


def _refuse_others(status: os.stat_result, path: Path | str) -> None:
    kind = _OTHER_KINDS.get(stat.S_IFMT(status.st_mode))
    if kind is not None:
        raise OSError(errno.EINVAL, f"{kind}, and no plain file", str(path))


# The folder of what Snaploom keeps on a machine to be quicker, and what can be fetched again.

CACHE_VARIABLE = "XDG_CACHE_HOME"
"""Environment variable that names the folder of caches, as on any desktop."""


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of Snaploom's caches, which need not exist.

    Raises:
        FileNotFoundError: no folder is named, and the user has no home, as in some containers.
    """
    named = environment.get(CACHE_VARIABLE)
    try:
        cache = Path(named) if named else Path.home() / ".cache"
    except RuntimeError as error:
        raise FileNotFoundError(
            f"the user has no home folder, and {CACHE_VARIABLE} is not set"
        ) from error
    return cache.absolute() / "snaploom"


def is_own_folder(folder: Path, depth: int) -> bool:
    """Whether only this user can change what is in a folder; makes the folders that are missing."""
    folders = (folder, *folder.parents)[depth - 1 :: -1]
    for each in folders:
        each.mkdir(mode=0o700, parents=True, exist_ok=True)
    return all(map(is_own, folders))


def private_folder(place: str = "") -> Path:
    """The folder for this user's temporary files, which nobody else can enter; made if missing."""
    folder = Path(place or gettempdir()).absolute() / f"snaploom-{os.geteuid()}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    state = folder.lstat()
    is_private = stat.S_ISDIR(state.st_mode) and not state.st_mode & 0o077
    if is_private and state.st_uid == os.geteuid():
        return folder
    return Path(mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))  # somebody else has the name


def is_own(path: Path) -> bool:
    """Whether only this user can write a file or folder; true where there is none."""
    try:
        state = path.stat()
    except FileNotFoundError:
        return True
    return state.st_uid == os.geteuid() and not state.st_mode & 0o022


# The end of a process of ours, once its work is done.


def end_process(code: int) -> NoReturn:
    """End this process without taking the interpreter down (decision 0061).

    Threads that nobody waits for (PySpark's, those of an interrupted run, Arrow's) may be at work
    still. Python ends them in the middle of C++ when it takes the interpreter down, upon which C++
    aborts the process, after everything was done.
    """
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()  # of logging and temporary folders; it has no public name
    for stream in (sys.stdout, sys.stderr):
        # The other end of a pipe may be closed.
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
