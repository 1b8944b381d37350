"""Follows every citation of a rule or a decision, and every relative link of a Markdown page.

`python .ci/lint/citations.py [ROOT]`. A citation of a rule (`rule W7`, `rules S7 and S15`) must be
a heading of a page in `docs/design`, one of a decision (`decision 0035`) a file in
`docs/decisions`, and a relative link must lead to a file and a heading. Citations of pages that are
not in the repository are refused. Looked at are all files that git knows, or would add.

Prints a line `file:line: what is wrong; what to write` for each fault. Ends with 0 when there is
none, 1 otherwise.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PAGES = {"W": "weaving.md", "S": "skipping.md", "R": "reconciling.md", "P": "publication.md"}
"""The page in `docs/design` of each letter of a rule."""
EXEMPT = frozenset({".ci/lint/citations.py", "tests/documentation/test_citations.py"})
"""Files that show wrong citations on purpose."""
_NOT_TEXT = (".parquet", ".svg", ".sum", ".json", ".csv")
"""Files in which people write no citations, and where anything might look like one."""

_HEADING = re.compile(r"^#+ ([A-Z]\d+)\. ", re.MULTILINE)
_GAP = r"\s+(?:#\s*|//\s*|\*\s*)?"
"""Between two words, which may stand on two lines, of a comment too."""


def _cited(word: str, number: str) -> re.Pattern[str]:
    """One citation: the word, and one number or several; group 1 has the numbers."""
    more = rf"(?:(?:,|,?{_GAP}and|{_GAP}to){_GAP}{number})*"
    return re.compile(rf"\b(?i:{word}s?){_GAP}({number}{more})")


_RULES = _cited("rule", r"[WSRP]\d+\b")
_DECISIONS = _cited("decision", r"\d+\b")
_RULE = re.compile(r"[WSRP]\d+")
_DECISION = re.compile(r"\d+")
_USE_RULE = "cite a heading of docs/design, as in `rule W7`, or leave the citation out"
_FORMER: tuple[tuple[str, re.Pattern[str], str], ...] = (
    ("ruling", re.compile(rf"\b(?i:ruling)s?{_GAP}[A-Z]\d+"), _USE_RULE),
    ("trap", re.compile(rf"\b(?i:trap)s?{_GAP}\d+"), "trap N is rule SN now: write `rule S5`"),
    ("(", re.compile(r"\([DKNX]\d{1,2}(?:(?:, | and )[DKNX]\d{1,2})*\)"), _USE_RULE),
    (".md", re.compile(r"(?<![\w/-])(?:join|rulings)\.md\b"), _USE_RULE),
    (".md`", re.compile(rf"`[a-z-]+\.md`,?{_GAP}sections?{_GAP}\d"), _USE_RULE),
    ("section", re.compile(rf"\b(?i:the){_GAP}design,?{_GAP}section\b"), _USE_RULE),
    ("seed's", re.compile(rf"\b(?i:the){_GAP}seed's\b"), "write what it is; no such page is here"),
)
"""Forms of citations that lead nowhere: a word without which there is none, the form, and what to
write. Words are looked for first because that takes a fifth of the time."""

_FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`(?!\])")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_TITLE = re.compile(r"^#+ (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Fault:
    """A citation or link that leads nowhere."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


class Targets:
    """What can be cited in a repository, and linked to."""

    def __init__(self, root: Path) -> None:
        """Read the rules and the names of the decisions."""
        self._root = root
        self._anchors: dict[Path, set[str]] = {}
        self.decisions = {
            path.name.partition("-")[0] for path in (root / "docs/decisions").glob("*-*.md")
        }
        self.rules: set[str] = set()
        self.faults: list[Fault] = []
        for letter, name in PAGES.items():
            self._read(letter, f"docs/design/{name}")

    def leads_somewhere(self, page: str, link: str) -> str:
        """What is wrong with a relative link of a page; empty when nothing is."""
        name, _, anchor = link.partition("#")
        target = (self._root / page).parent / name if name else self._root / page
        if not target.exists():
            return f"there is no {link}; link to a file that is here"
        if anchor and target.suffix == ".md" and anchor not in self._headings(target.resolve()):
            return f"{target.name} has no heading #{anchor}; link to one of its headings"
        return ""

    def _read(self, letter: str, page: str) -> None:
        path = self._root / page
        text = path.read_text("utf-8") if path.exists() else ""
        for heading in _HEADING.finditer(text):
            number = heading[1]
            if not number.startswith(letter):
                message = f"{number} is no number of this page; its rules begin with {letter}"
            elif number in self.rules:
                message = f"{number} is there twice; give the second rule a number of its own"
            else:
                self.rules.add(number)
                continue
            self.faults.append(Fault(page, _line(text, heading.start()), message))

    def _headings(self, page: Path) -> set[str]:
        if page not in self._anchors:
            titles = _TITLE.findall(page.read_text("utf-8"))
            self._anchors[page] = {
                re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles
            }
        return self._anchors[page]


def faults(root: Path, files: Iterable[str]) -> Iterator[Fault]:
    """Everything that is wrong in some files of a repository, named relative to its root."""
    targets = Targets(root)
    yield from targets.faults
    for name in files:
        if name in EXEMPT or name.endswith(_NOT_TEXT) or name.startswith(".ci/locks/"):
            continue
        try:
            text = (root / name).read_text("utf-8")
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue
        for place, message in sorted(_faults_in(name, text, targets)):
            yield Fault(name, _line(text, place), message)


def _faults_in(name: str, text: str, targets: Targets) -> Iterator[tuple[int, str]]:
    small = text.lower()
    for found in _RULES.finditer(text) if "rule" in small else ():
        for rule in _RULE.findall(found[1]):
            if rule not in targets.rules:
                page = PAGES[rule[0]]
                yield found.start(), f"there is no rule {rule} in docs/design/{page}; {_USE_RULE}"
    for found in _DECISIONS.finditer(text) if "decision" in small else ():
        for number in _DECISION.findall(found[1]):
            full = number.zfill(4)
            if full not in targets.decisions:
                yield (
                    found.start(),
                    f"there is no docs/decisions/{full}-*.md; cite one that is there",
                )
            elif number != full:
                yield found.start(), f"decision {number}: write `decision {full}`"
    for word, pattern, advice in _FORMER:
        for found in pattern.finditer(text) if word in small else ():
            yield (
                found.start(),
                f"{' '.join(found[0].split())!r} is not in the repository: {advice}",
            )
    if name.endswith(".md"):
        yield from _links(name, text, targets)


def _links(name: str, text: str, targets: Targets) -> Iterator[tuple[int, str]]:
    prose = _CODE.sub(_blank, _FENCE.sub(_blank, text))
    for found in _LINK.finditer(prose):
        if "://" not in found[1] and (fault := targets.leads_somewhere(name, found[1])):
            yield found.start(), fault


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def known_files(root: Path) -> list[str]:
    """Files that git knows, or would add, relative to the root."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    )
    return sorted(filter(None, set(listed.stdout.split("\0"))))


def main(arguments: list[str]) -> int:
    """Print every fault; see the module."""
    root = Path(arguments[0]) if arguments else REPOSITORY
    found = list(faults(root, known_files(root)))
    for fault in found:
        print(fault)  # noqa: T201
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
