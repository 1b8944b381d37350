"""Files on this machine that users name: read where they are plain files, and replaced as a whole.

A folder may be somebody else's, with links and pipes in it: what is written follows no link, and
nobody has to write into a pipe before a file is read.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path

_OTHER_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}


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

    Raises:
        OSError: as `open_plain`.
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
