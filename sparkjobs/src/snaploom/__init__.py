"""Snaploom weaves declared data sources into wide, point-in-time, query-ready tables on Spark.

`snaploom.read(spark, folder)` returns what an output has published, `snaploom.schema(folder)` under
which schema, and `snaploom.absences(folder)` why fields are NULL in whole snapshots. They are
resolved when first used, so that `import snaploom` stays light and works without Spark.
"""

from __future__ import annotations

from importlib.metadata import version

from snaploom import lazyimport

__version__ = version("snaploom")

__all__ = ["__version__", "absences", "read", "schema"]


def __getattr__(name: str) -> object:
    if name in lazyimport.READER:
        return lazyimport.resolve(lazyimport.READER[name])
    raise AttributeError(f"module 'snaploom' has no attribute {name!r}")
