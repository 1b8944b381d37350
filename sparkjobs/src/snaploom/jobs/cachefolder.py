"""The folder of what Snaploom keeps on a machine to be quicker, and what can be fetched again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

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
