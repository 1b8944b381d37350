"""Installed parts: the version, packages of extras, plug-ins, and modules imported on demand.

`import_module` stands here only: every other module of the library imports at its top (ruff holds
that), so that layers stay checkable.
"""

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points, version
from typing import cast

from snaploom.errors import IndexNotPossible, SnaploomError

VERSION = version("snaploom")
"""Written into Reports, manifests and metrics."""

EXTRAS = {
    "duckdb": "discover",
    "fastavro": "discover",
    "numpy": "spark",
    "opensearchpy": "opensearch",
    "pandas": "spark",
    "py4j": "spark",
    "pyarrow": "spark",
    "pyspark": "spark",
}
"""By the name that is imported. `data` brings some of them too, for Sparks of others."""


class PackageMissing(SnaploomError):
    """A package of an extra, or a plug-in, is not installed."""


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


def plugged(group: str, name: str, what: str) -> object:
    """Load the object that a plug-in registers as an entry point.

    `what` is the subject of messages.

    Raises:
        PackageMissing: no installed package registers it, or one cannot be loaded.
    """
    found = f"no entry point {name} of the group {group}"
    for entry in entry_points(group=group, name=name):
        try:
            return cast(object, entry.load())
        except (ImportError, AttributeError) as error:
            if missing := missing_package(error):
                raise missing from error
            found = f"{entry.value}: {error}"
    raise PackageMissing(
        f"{what} is not installed",
        found=found,
        expected="a plug-in that registers it; Snaploom's own are in snaploom.plugins",
        hint="install snaploom with all its packages: pip install --force-reinstall snaploom",
    )


def load_registered(
    entry: EntryPoint,
    what: str,
    members: Iterable[str] = (),
    error: type[SnaploomError] = IndexNotPossible,
) -> object:
    """Load the object of an entry point, which has `members`; `what` names its kind in messages.

    Raises:
        SnaploomError: an `error`, if its code cannot be loaded or is for another Snaploom.
    """
    try:
        found: object = entry.load()
    except (ImportError, AttributeError) as failure:
        raise error(
            f"{what} {entry.name} cannot be loaded: {failure}",
            found=entry.value,
            expected="a package whose modules can be imported",
            hint="install what the package that registers it needs, or uninstall that package",
        ) from failure
    missing = [member for member in members if not hasattr(found, member)]
    if missing:
        raise error(
            f"{what} {entry.name} lacks {', '.join(missing)}",
            found=entry.value,
            expected="what this version of Snaploom asks of it",
            hint="install a version of the package that registers it which fits this Snaploom",
        )
    return found


def attributes_of(module: str, places: Mapping[str, str]) -> Callable[[str], object]:
    """Return the `__getattr__` of a module whose names are imported when they are first used."""

    def found(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return _resolve(places[name])

    return found


def _resolve(place: str) -> object:
    """Import what `module:attribute` names."""
    module, _, attribute = place.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except ImportError as error:
        missing = missing_package(error)
        if missing is None:
            raise
        raise missing from error
