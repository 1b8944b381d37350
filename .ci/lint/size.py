"""Counts the size of the tree, and holds it to a record that only falls.

    python .ci/lint/size.py            prints the numbers, and lowers the record where they fell
    python .ci/lint/size.py --check    prints a line for each number above its record

Ends with 0 when no number is above its record, 1 otherwise.
"""

from __future__ import annotations

import ast
import json
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from citations import known_files

REPOSITORY = Path(__file__).parents[2]
RECORD = Path(__file__).with_name("size.json")
PRODUCT = ("sparkjobs/src/", "operator/src/")
SMALL = 60
"""Lines below which a module hardly deserves a file of its own."""
MEDIAN = "median lines of a module"
"""Printed, and not held: merging modules raises it."""


def numbers(root: Path) -> dict[str, float]:
    """Return every number by name; each is better the lower it is, but for `MEDIAN`."""
    names = [name for name in known_files(root) if (root / name).is_file()]
    python = [name for name in names if name.endswith(".py")]
    product = {
        name: (root / name).read_text("utf-8") for name in python if name.startswith(PRODUCT)
    }
    tests = {name: _lines(root / name) for name in python if name.startswith("tests/")}
    trees = {name: ast.parse(text) for name, text in product.items()}
    lines = {name: text.count("\n") for name, text in product.items()}
    imports = sum(_import_lines(tree) for tree in trees.values())
    pages = [name for name in names if name.startswith("docs/") and name.endswith(".md")]
    modules = [count for name, count in lines.items() if not name.endswith("__init__.py")]
    return {
        "product files": len(product),
        "product lines, Python": sum(lines.values()),
        "product lines, Java": sum(
            _lines(root / name)
            for name in names
            if name.startswith(PRODUCT) and name.endswith(".java")
        ),
        "import lines, percent": _percent(imports, sum(lines.values())),
        MEDIAN: statistics.median(modules),
        "largest module, lines": max(modules),
        f"modules under {SMALL} lines": sum(count < SMALL for count in modules),
        "test files": len(tests),
        "test lines": sum(tests.values()),
        "test lines, support": sum(
            count for name, count in tests.items() if name.startswith("tests/support/")
        ),
        "top folders of tests": len({name.split("/")[1] for name in tests if name.count("/") > 1}),
        "words of docs": sum(len((root / name).read_text("utf-8").split()) for name in pages),
    }


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 1)


def _lines(path: Path) -> int:
    return path.read_text("utf-8").count("\n")


def _import_lines(tree: ast.Module) -> int:
    return sum(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
    )


def main(arguments: Sequence[str]) -> int:
    """Print and record, or check; return the exit code."""
    recorded: dict[str, float] = json.loads(RECORD.read_text("utf-8")) if RECORD.exists() else {}
    found = numbers(REPOSITORY)
    is_check = "--check" in arguments
    unknown = 0 if is_check else float("inf")  # so that a record that is taken away permits nothing
    above = {
        name: value
        for name, value in found.items()
        if name != MEDIAN and value > recorded.get(name, unknown)
    }
    if not is_check:
        for name, value in found.items():
            print(f"{name:<50} {value:>9,}")  # noqa: T201
        held = {name: value for name, value in found.items() if name != MEDIAN}
        lower = {name: min(value, recorded.get(name, value)) for name, value in held.items()}
        RECORD.write_text(json.dumps(lower, indent=2) + "\n", "utf-8")
    for name, value in above.items():
        print(  # noqa: T201
            f"{name}: {value:,}, recorded {recorded.get(name)}: the record only falls, so subtract",
            file=sys.stderr,
        )
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
