"""Paths to texts: the files to read, and their faults as files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from snaploom.localfiles import read_plain
from snaploom.models.codes import make_finding
from snaploom.models.finding import Finding

SUFFIXES = (".yaml", ".yml")
"""Endings of the files that a folder is searched for; a file that is named may have any. JSON is
left out because on a laptop data, and manifests of outputs, lie beside declarations."""
MAX_BYTES = 4 * 1024 * 1024
"""Greatest size of a file. Kubernetes refuses single objects above 1.5 MiB (etcd's limit), so this
leaves room for thousands of resources in one file and is still read in a few seconds."""

_SURROGATE_PAIR = re.compile(
    r"(?<!\\)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"
)


@dataclass(frozen=True)
class SourceText:
    """The text of a file, under the name that the user knows it by."""

    file: str
    text: str


def read_files(paths: Sequence[Path]) -> tuple[tuple[SourceText, ...], tuple[Finding, ...]]:
    """Read files and folders (all levels, names sorted); each file once."""
    texts: list[SourceText] = []
    findings: list[Finding] = []
    seen: set[Path] = set()
    for candidate in (file for path in paths for file in _files(path)):
        if isinstance(candidate, Finding):
            findings.append(candidate)
            continue
        try:
            place = candidate.resolve()
        except (OSError, RuntimeError, ValueError) as error:
            findings.append(_not_readable(candidate, error))
            continue
        if place in seen:
            continue
        seen.add(place)
        result = _read(candidate)
        if isinstance(result, Finding):
            findings.append(result)
        else:
            texts.append(result)
    return tuple(texts), tuple(findings)


def _files(path: Path) -> Iterator[Path | Finding]:
    """The files of a path; hidden folders (.git, a ConfigMap's ..data) are not entered."""
    if not os.path.isdir(path):  # False, unlike `Path.is_dir`, where nobody may look
        yield path
        return
    refused: list[OSError] = []
    for folder, folders, names in os.walk(path, onerror=refused.append):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if name.endswith(SUFFIXES) and not name.startswith("."):
                yield Path(folder) / name
    for error in refused:
        yield _not_readable(Path(error.filename), error)


def _read(path: Path) -> SourceText | Finding:
    try:
        raw = read_plain(path, MAX_BYTES)
        size = max(os.stat(path).st_size, len(raw))
    except (OSError, ValueError) as error:
        return _not_readable(path, error)
    if len(raw) > MAX_BYTES:
        return make_finding(
            "SL102",
            "the file is too large",
            found=f"{size:,} bytes",
            expected=f"at most {MAX_BYTES:,} bytes",
            hint="split it, or check that it is the file that you meant",
        ).model_copy(update={"file": str(path)})
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return _not_utf8(path, raw, error)
    return SourceText(str(path), _joined_pairs(text) if path.suffix == ".json" else text)


def _joined_pairs(text: str) -> str:
    """JSON writes characters beyond 16 bits as two escapes, which YAML does not know."""

    def character(pair: re.Match[str]) -> str:
        return bytes.fromhex(pair[1] + pair[2]).decode("utf-16-be")

    return _SURROGATE_PAIR.sub(character, text)


def _not_readable(path: Path, error: Exception) -> Finding:
    missing = isinstance(error, FileNotFoundError)
    hint = "check the path, and where its links lead"
    if missing:
        hint = "check the spelling of the path"
    elif isinstance(error, PermissionError):
        hint = "check its permissions"
    return make_finding(
        "SL101",
        "there is no such file or folder" if missing else "the file cannot be read",
        found="nothing" if missing else (getattr(error, "strerror", None) or str(error)),
        expected="a YAML file, or a folder with YAML files",
        hint=hint,
    ).model_copy(update={"file": str(path)})


def _not_utf8(path: Path, raw: bytes, error: UnicodeDecodeError) -> Finding:
    before = raw[: error.start]
    utf16 = raw.startswith((b"\xff\xfe", b"\xfe\xff"))
    return make_finding(
        "SL103",
        "the file is not text in UTF-8",
        found="UTF-16" if utf16 else f"the byte 0x{raw[error.start]:02X}",
        expected="UTF-8",
        hint="save it as UTF-8",
    ).model_copy(
        update={
            "file": str(path),
            "line": before.count(b"\n") + 1,
            "column": error.start - (before.rfind(b"\n") + 1) + 1,
        }
    )
