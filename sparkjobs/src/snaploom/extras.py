"""Packages that only some installations have, and the extra by which each is installed."""

from __future__ import annotations

from snaploom.errors import SnaploomError

EXTRAS = {
    "numpy": "spark",
    "opensearchpy": "opensearch",
    "pandas": "spark",
    "py4j": "spark",
    "pyarrow": "spark",
    "pyspark": "spark",
}
"""By the name that is imported. `data` brings some of them too, for Sparks of others."""


class PackageMissing(SnaploomError):
    """A package of an extra is not installed."""


def missing_package(error: BaseException) -> PackageMissing | None:
    """The error to show where an import failed for want of an extra; None for other failures."""
    seen: BaseException | None = error
    while seen is not None:
        name = (seen.name or "").partition(".")[0] if isinstance(seen, ModuleNotFoundError) else ""
        if name in EXTRAS:
            return PackageMissing(
                "a package that this needs is not installed",
                found=f"no package {name}",
                expected=f"the extra {EXTRAS[name]} of snaploom",
                hint=f"pip install 'snaploom[{EXTRAS[name]}]'",
            )
        seen = seen.__cause__ or seen.__context__
    return None
