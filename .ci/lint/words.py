"""Refuses private words where Snaploom has a standard term (docs/glossary.md).

`python .ci/lint/words.py [ROOT]`. Looked at are names of modules, functions, classes and variables,
docstrings, comments and strings of Python files, the text of Markdown pages, and comments of YAML
and the Makefile, of all files that git knows, or would add. Code in pages and names in backticks of
pages are not looked at. A docstring of the product, also of an attribute, begins with a noun or a
verb and not with a clause without a head ("What it does", "How long it takes").

Prints a line `file:line: "word": what to write` for each fault. Ends with 0 when there is none,
1 otherwise.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from citations import known_files

REPOSITORY = Path(__file__).parents[2]
CHECKED = (".py", ".md", ".yaml", ".yml", "Makefile")
EXEMPT = (
    ".ci/lint/words.py",
    "tests/documentation/test_citations.py",
    "docs/decisions",
    "CHANGELOG.md",
)
"""Files that show such words on purpose, and what stays as it was written."""

WORDS: tuple[tuple[str, str], ...] = (
    (r"tell|tells|told|telling|teller", "report, show, return, emit, distinguish"),
    (r"say|says|said|saying", "state, declare, contain, log, print"),
    (r"voice|hearing", "log, signal handler"),
    (r"sight|sighting", "observation, state"),
    (r"dear", "expensive"),
    (r"let go|lets go|letting go", "release, ready for removal"),
    (r"strangers?", "another owner"),
    (r"whoever", "the caller, the writer, the administrator"),
    (r"looks? around|looking around|looked around", "observe"),
    (r"makes? of|making of", "derive from, use for"),
    (r"works? off|worked off", "process"),
    (r"mend|mends|mended|mending", "repair, update"),
    (r"byhand", "handwritten"),
    (r"doors?", "entry point, interface"),
    (r"alone", "only, exclusive"),
    (r"ground", "background, environment"),
    (r"outline", "listing"),
)
"""Private words, as regular expressions of whole words, and what to write instead."""
_WORDS = tuple(
    (re.compile(rf"(?<![a-z])(?:{word.replace(' ', r'[ _]')})(?![a-z])"), advice)
    for word, advice in WORDS
)
_ORDINARY = re.compile(
    r"\.tell\(|\bseek or tell\b|\bhome directory\b|let alone|stand-?alone|\bin the background\b",
)
"""Where such a word is somebody else's term."""
GERUNDS = frozenset({"finding", "rendering"})
"""Names of modules that end in -ing and are nouns."""

_FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_PARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PRODUCT = ("sparkjobs/src/", "operator/src/")
_HEADLESS = re.compile(r'\s*"""(What|Who|Whose|Which|How|Why)\b')


@dataclass(frozen=True)
class Fault:
    """A private word."""

    path: str
    line: int
    word: str
    advice: str

    def __str__(self) -> str:
        return f'{self.path}:{self.line}: "{self.word}": write {self.advice}'


def faults(
    root: Path,
    files: Iterable[str],
) -> Iterator[Fault]:
    """Every private word in some files of a repository, named relative to its root."""
    for name in files:
        if name.startswith(EXEMPT) or not name.endswith(CHECKED):
            continue
        yield from _in_path(name)
        try:
            text = (root / name).read_text("utf-8")
        except (UnicodeDecodeError, FileNotFoundError):
            continue
        if name.endswith(".py") and name.startswith(_PRODUCT):
            yield from _headless(name, text)
        pieces = _PIECES.get(Path(name).suffix, _comments)(text)
        yield from sorted({fault for piece in pieces for fault in _in(name, *piece)}, key=_place)


def _in_path(name: str) -> Iterator[Fault]:
    stem = Path(name).stem
    yield from _in(name, 1, stem)
    if name.endswith(".py") and stem.endswith("ing") and stem not in GERUNDS:
        yield Fault(name, 1, stem, "a noun: what the module holds")


def _headless(name: str, text: str) -> Iterator[Fault]:
    for number, line in enumerate(text.splitlines(), 1):
        if found := _HEADLESS.match(line):
            yield Fault(name, number, found[1], 'a noun or a verb: "Number of", "Return"')


def _in(name: str, line: int, text: str) -> Iterator[Fault]:
    plain = _ORDINARY.sub(" ", text.lower())
    for pattern, advice in _WORDS:
        for found in pattern.finditer(plain):
            yield Fault(name, line, found[0], advice)


def _page(text: str) -> Iterator[tuple[int, str]]:
    prose = _CODE.sub(" ", _FENCE.sub(lambda found: "\n" * found[0].count("\n"), text))
    yield from enumerate(prose.splitlines(), 1)


def _code(text: str) -> Iterator[tuple[int, str]]:
    """Names that are defined, comments and strings, each with its line."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, _PARTS.sub("_", node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, _PARTS.sub("_", node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, _PARTS.sub("_", node.attr)
        elif isinstance(node, ast.arg):
            yield node.lineno, _PARTS.sub("_", node.arg)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from enumerate(node.value.splitlines(), node.lineno)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def _comments(text: str) -> Iterator[tuple[int, str]]:
    """What stands behind a number sign: comments, and help of targets."""
    for number, line in enumerate(text.splitlines(), 1):
        yield number, line.partition("#")[2]


_PIECES = {".md": _page, ".py": _code}


def _place(fault: Fault) -> tuple[int, str]:
    return fault.line, fault.word


def main(arguments: list[str]) -> int:
    """Print every fault; see the module."""
    root = Path(arguments[0]) if arguments else REPOSITORY
    found = list(faults(root, known_files(root)))
    for fault in found:
        print(fault)  # noqa: T201
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
