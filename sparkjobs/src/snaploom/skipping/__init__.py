"""Data skipping: indexes over files of any origin, used by ordinary Spark queries.

`enable(spark, ...)` is all a session needs. A file is skipped only when what is known about exactly
this file, read exactly this way, proves that no row of it can be in the result; every doubt
keeps it.
"""

from __future__ import annotations

from snaploom import lazyimport

__all__ = [
    "disable",
    "enable",
    "explain",
    "is_enabled",
    "reset_statistics",
    "skipping_index",
    "skipping_indexes",
    "sql",
    "statistics",
    "without_skipping",
]


def __getattr__(name: str) -> object:
    if name in lazyimport.SKIPPING:
        return lazyimport.resolve(lazyimport.SKIPPING[name])
    raise AttributeError(f"module 'snaploom.skipping' has no attribute {name!r}")
