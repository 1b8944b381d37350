"""The built-in part of each list that `Allowances` adds to, by the names that people see."""

from __future__ import annotations

from collections.abc import Mapping

from snaploom.planning.fileformats import FORMATS
from snaploom.planning.podsettings import ANNOTATIONS
from snaploom.planning.sparkconf import ALLOWED
from snaploom.planning.sqlgate.functions import FUNCTIONS

BUILT_IN_LISTS: Mapping[str, tuple[str, ...]] = {
    "formats": tuple(sorted(FORMATS)),
    "options": tuple(sorted(f"{name}.{option}" for name in FORMATS for option in FORMATS[name])),
    "functions": tuple(sorted(name for name, each in FUNCTIONS.items() if not each.refused)),
    "sparkConf": tuple(sorted(key for group in ALLOWED for key in group.keys)),
    "annotations": tuple(sorted(ANNOTATIONS)),
    "images": (),
    "endpoints": (),
}
"""Entries allowed without an administrator, by the name of the list."""
