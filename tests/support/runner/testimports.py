"""Which tests a change can break: a test depends on all that it imports, directly or not.

What reads a group of entry points depends on all that `pyproject.toml` registers in it.

A test that may start a process depends on the whole product, as programs import what they like.
Files that are not Python (declarations, charts, settings) have no imports: they can break any test.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]

TESTS = REPOSITORY / "tests"

_ROOTS = {
    "snaploom": REPOSITORY / "sparkjobs/src",
    "snaploom_operator": REPOSITORY / "operator/src",
    "generation": REPOSITORY / "docs",
    "strategies": TESTS,
    "support": TESTS,
}

_STARTING = ("multiprocessing", "subprocess")
"""What a module of tests imports that starts processes."""


def files_to_test(changed: frozenset[Path]) -> list[Path]:
    """Test files, sorted, that changes of these files (absolute paths) can break."""
    if not changed:
        return []
    files = sorted(TESTS.rglob("test_*.py"))
    if any(_concerns_all(path) for path in changed):
        return files
    pages = any(path.suffix == ".md" for path in changed)
    return [
        path
        for path in files
        if (pages and TESTS / "documentation" in path.parents) or changed & everything_read(path)
    ]


def _concerns_all(path: Path) -> bool:
    """Whether every test may depend on a file: fixtures, and what is neither code nor page."""
    fixtures = TESTS / "support" in path.parents and path.stem.endswith("fixtures")
    return fixtures or path == TESTS / "conftest.py" or path.suffix not in {".py", ".md"}


def everything_read(test: Path) -> frozenset[Path]:
    """The files of the repository that a test file imports, itself and its conftests included."""
    found = {test, *_conftests(test)}
    waiting = list(found)
    while waiting:
        for path in _imported(waiting.pop()) - found:
            found.add(path)
            waiting.append(path)
    if any(_starts_programs(path) for path in found):
        found |= _product()
    return frozenset(found)


def _conftests(test: Path) -> Iterator[Path]:
    for folder in test.relative_to(TESTS).parents:
        conftest = TESTS / folder / "conftest.py"
        if conftest.exists():
            yield conftest


@cache
def _product() -> frozenset[Path]:
    return frozenset(
        path for name in ("snaploom", "snaploom_operator") for path in _ROOTS[name].rglob("*.py")
    )


@cache
def _starts_programs(path: Path) -> bool:
    """Or uses the library by its name, which imports what is asked of it."""
    names = _names(path)
    starts = "snaploom" in names or any(name.partition(".")[0] in _STARTING for name in names)
    return starts and TESTS in path.parents


@cache
def _imported(path: Path) -> frozenset[Path]:
    """The files of the modules that a file imports, and of the packages around them."""
    files: set[Path] = set()
    for name in _names(path) | _registered_for(path):
        parts = name.split(".")
        if root := _ROOTS.get(parts[0]):
            for n in range(1, len(parts) + 1):
                base = root.joinpath(*parts[:n])
                modules = (base.with_suffix(".py"), base / "__init__.py")
                files |= {each for each in modules if each.is_file()}
    return frozenset(files)


def _registered_for(path: Path) -> frozenset[str]:
    """Modules that are registered in the groups of entry points that a file reads."""
    if "importlib.metadata.entry_points" not in _names(path):
        return frozenset()
    text = path.read_text("utf-8")
    return frozenset(
        value.partition(":")[0]
        for group, entries in _entry_points().items()
        if f'"{group}"' in text
        for value in entries.values()
    )


@cache
def _entry_points() -> Mapping[str, Mapping[str, str]]:
    found: dict[str, Mapping[str, str]] = {}
    for folder in (REPOSITORY, REPOSITORY / "operator"):
        project: Mapping[str, Mapping[str, Mapping[str, str]]] = tomllib.loads(
            (folder / "pyproject.toml").read_text("utf-8")
        )["project"]
        found |= project["entry-points"]
    return found


@cache
def _names(path: Path) -> frozenset[str]:
    """Dotted names in the imports of a file, at any place in it that is run."""
    names: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(path.read_text("utf-8"))]
    while waiting:
        node = waiting.pop()
        if not _is_for_types(node):
            waiting.extend(ast.iter_child_nodes(node))
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(names)


def _is_for_types(node: ast.AST) -> bool:
    """Whether it is an `if TYPE_CHECKING:`, whose imports are never made."""
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Name)
        and node.test.id == "TYPE_CHECKING"
    )
