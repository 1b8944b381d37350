"""Snaploom weaves declared data sources into wide, point-in-time, query-ready tables on Spark.

`snaploom.read(spark, folder)` returns what an output has published. It is resolved when it is
first used, so that `import snaploom` stays light and works without Spark.
"""

from __future__ import annotations

from importlib.metadata import version

from snaploom import lazy

__version__ = version("snaploom")

__all__ = ["__version__", "read"]


def __getattr__(name: str) -> object:
    if name == "read":
        return lazy.resolve(lazy.READ)
    raise AttributeError(f"module 'snaploom' has no attribute {name!r}")
