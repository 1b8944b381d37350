"""Data skipping: indexes over files of any origin, used by ordinary Spark queries.

`enable(spark, ...)` is all a session needs. A file is skipped only when what is known about exactly
this file, read exactly this way, proves that no row of it can be in the result; every doubt
keeps it.
"""

from snaploom.installed import attributes_of

PLACES = {
    **{
        name: f"snaploom.skipping.spark.interfaces.enable:{name}"
        for name in (
            *("disable", "enable", "explain", "is_enabled", "reset_statistics", "sql"),
            *("statistics", "without_skipping"),
        )
    },
    **{
        name: f"snaploom.skipping.spark.interfaces.indexbuilder:{name}"
        for name in ("skipping_index", "skipping_indexes")
    },
}
"""The names of this package, all of which need Spark, each as `module:attribute`."""

__all__ = sorted(PLACES)
__getattr__ = attributes_of(__name__, PLACES)
