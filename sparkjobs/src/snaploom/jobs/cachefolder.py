"""The folder of what Snaploom keeps on a machine to be quicker, and what can be fetched again."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import gettempdir, mkdtemp

CACHE_VARIABLE = "XDG_CACHE_HOME"
"""Environment variable that names the folder of caches, as on any desktop."""


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Where the caches of Snaploom are, whether there are any or not.

    Args:
        environment: the process's.

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
    """Whether only this user can change what is in a folder; makes the folders that are missing.

    Args:
        folder: holds what is code to a JVM.
        depth: how many folders are looked at, this one and those around it.
    """
    folders = (folder, *folder.parents)[depth - 1 :: -1]
    for each in folders:
        each.mkdir(mode=0o700, parents=True, exist_ok=True)
    return all(map(is_own, folders))


def private_folder(place: str = "") -> Path:
    """The folder for this user's temporary files, which nobody else can enter; made if missing.

    Args:
        place: folder in which it is; empty for that of temporary files.

    Raises:
        OSError: it cannot be made.
    """
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
