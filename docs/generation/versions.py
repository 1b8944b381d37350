"""The version number, wherever it stands: others are written from that of `pyproject.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_NUMBER = r"[^\s\"']+"
_PARTS = re.compile(r"(?P<release>\d+\.\d+\.\d+)(?:\.?(?P<stage>dev|a|b|rc)(?P<number>\d+))?")
_STAGES = {"dev": "dev", "a": "alpha", "b": "beta", "rc": "rc"}


@dataclass(frozen=True)
class Place:
    """Where a file has the number."""

    path: str
    """Below the root of the repository."""
    before: str
    """Regular expression of what stands before the number, on the same line."""
    is_semantic: bool = False
    """Whether it is written by the rules of Semantic Versioning instead of Python's."""


PLACES = (
    Place("operator/pyproject.toml", '^version = "'),
    Place("operator/pyproject.toml", '^  "snaploom=='),
    Place("charts/snaploom/Chart.yaml", "^version: ", is_semantic=True),
    Place("charts/snaploom/Chart.yaml", "^appVersion: "),
    Place("examples/cluster/flights/console.yaml", "^ *image: snaploom-spark:"),
)


def project_version(root: Path = ROOT) -> str:
    """The version of this checkout, by the rules of Python packages."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    return str(project["version"])


def semantic_version(version: str) -> str:
    """The same version by the rules of Semantic Versioning, as Helm wants it.

    Raises:
        ValueError: it is not of the form 1.2.3, 1.2.3.dev0, 1.2.3a1, 1.2.3b1 or 1.2.3rc1.
    """
    parts = _PARTS.fullmatch(version)
    if parts is None:
        raise ValueError(
            f"pyproject.toml: version {version!r}; expected 1.2.3, or 1.2.3 with .devN, aN, bN, rcN"
        )
    if not parts["stage"]:
        return parts["release"]
    return f"{parts['release']}-{_STAGES[parts['stage']]}.{int(parts['number'])}"


def versioned_files(root: Path = ROOT) -> dict[str, str]:
    """Every file that has the number: its path below the root, and its text with the number."""
    version = project_version(root)
    found: dict[str, str] = {}
    for place in PLACES:
        text = found.get(place.path) or (root / place.path).read_text("utf-8")
        number = semantic_version(version) if place.is_semantic else version
        pattern = re.compile(f"({place.before}){_NUMBER}", re.MULTILINE)
        found[place.path], count = pattern.subn(rf"\g<1>{number}", text)
        if count != 1:
            raise ValueError(f"{place.path}: {count} versions after {place.before!r}; expected one")
    return found


def write_versions(root: Path = ROOT) -> None:
    """Write the number into every file that has it."""
    for name, text in versioned_files(root).items():
        (root / name).write_text(text, encoding="utf-8")


def version_drift(root: Path = ROOT) -> Iterator[str]:
    """Files that have another number; as sentences."""
    for name, text in versioned_files(root).items():
        if (root / name).read_text("utf-8") != text:
            yield f"{name} has another version than pyproject.toml"
