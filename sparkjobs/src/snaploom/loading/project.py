"""The project of some declarations: which `snaploom.yaml` counts, and which files are read."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from snaploom.loading import composer
from snaploom.loading.nearmisses import did_you_mean, listing
from snaploom.loading.pydanticerrors import findings_of, names_secret
from snaploom.localfiles import read_plain
from snaploom.models.allowances import (
    LONGEST_VALUE,
    NO_CHOICE,
    PROJECT_FILE,
    VARIABLE_PATTERN,
    ProjectFile,
    VariableChoice,
)
from snaploom.models.findings import Finding, InvalidDeclarations, Severity, make_finding

# Paths to texts: the files to read, and their faults as files.

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
    ).model_copy(
        update={
            "file": str(path),
            "line": before.count(b"\n") + 1,
            "column": error.start - (before.rfind(b"\n") + 1) + 1,
        }
    )


# The project of some declarations: which `snaploom.yaml` counts, and the values it gives.

_DECLARES = re.compile(r"^apiVersion\s*:", re.MULTILINE)
_NAME = re.compile(VARIABLE_PATTERN)
_FORBIDDEN = re.compile(r"\$\(|[\x00-\x1f]")


@dataclass(frozen=True)
class AppliedProject:
    """The environment and the variables with which declarations were read."""

    file: str = ""
    """The project file, as the user would name it; empty without one."""
    environment: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    project: ProjectFile = field(default_factory=ProjectFile)
    is_partial: bool = False
    """Whether the file, or the choice of environment and variables, has a fault."""


def is_project_file(source: SourceText) -> bool:
    """Whether a text is a project file: by its name, unless it declares resources."""
    return Path(source.file).name == PROJECT_FILE and not _DECLARES.search(source.text)


def applied_project(
    paths: Sequence[Path], choice: VariableChoice = NO_CHOICE
) -> tuple[AppliedProject, tuple[Finding, ...]]:
    """The project of some files and folders, in the environment that is chosen."""
    found, findings = _project_texts(paths)
    if len(found) > 1:
        findings = (
            *findings,
            make_finding(
                "SL123",
                "these files belong to several projects",
                path="-f",
                found=", ".join(each.file for each in found),
                expected=f"one {PROJECT_FILE} for all files",
                hint="give the files of one project at a time, or keep one project file above all",
            ).model_copy(update={"file": found[1].file}),
        )
    source = found[0] if found else None
    project, faults = _parsed(source) if source is not None else (ProjectFile(), ())
    problems = [] if faults else list(_choice_findings(choice, project, source))
    given = {name: value for name, value in choice.values.items() if _is_value(value)}
    values = {**project.values(choice.environment), **given}
    applied = AppliedProject(
        "" if source is None else source.file,
        choice.environment or "",
        values,
        project,
        is_partial=bool(findings or faults or problems),
    )
    return applied, (*findings, *faults, *problems)


def unused_findings(
    applied: AppliedProject, choice: VariableChoice, used: Iterable[str]
) -> tuple[Finding, ...]:
    """Values that were given and that no declaration names."""
    named = frozenset(used)
    declared = {*applied.project.variables, *_set_somewhere(applied.project)}
    return tuple(
        make_finding(
            "SL124",
            f"no declaration has the variable `{name}`",
            path=f"--set {name}",
            found=f"--set {name}=...",
            expected=listing(tuple(sorted(named | declared))) or "a variable that is in the files",
            hint=did_you_mean(name, (named | declared) - {name}),
            severity=Severity.WARNING if name in declared else Severity.ERROR,
        )
        for name in choice.values
        if name not in named
    )


def _set_somewhere(project: ProjectFile) -> Iterator[str]:
    for each in project.environments.values():
        yield from each.variables


def _project_texts(paths: Sequence[Path]) -> tuple[tuple[SourceText, ...], tuple[Finding, ...]]:
    """The project files of some paths, each once, and findings about unreadable ones."""
    places: dict[str, Path] = {}
    for path in paths:
        place = nearest_file(path, PROJECT_FILE, _is_project)
        if place is not None:
            places.setdefault(os.path.realpath(place), place)
    texts, findings = read_files(tuple(places.values())) if places else ((), ())
    return tuple(text for text in texts if is_project_file(text)), findings


def nearest_file(
    path: Path, name: str, is_wanted: Callable[[Path], bool] = lambda file: True
) -> Path | None:
    """The nearest file of a name beside or above a path, up to the working directory.

    `is_wanted` is whether a file of that name counts.
    """
    folder = path if os.path.isdir(path) else path.parent
    here = os.path.abspath(os.curdir)
    while True:
        file = folder / name
        if os.path.isfile(file) and is_wanted(file):
            return file
        place = os.path.abspath(folder)
        if place == here or os.path.commonpath((place, here)) != here:
            return None
        folder = Path(os.path.relpath(os.path.dirname(place)))


def _is_project(file: Path) -> bool:
    texts, findings = read_files((file,))
    return bool(findings) or any(map(is_project_file, texts))


def _parsed(source: SourceText) -> tuple[ProjectFile, tuple[Finding, ...]]:
    composed = composer.compose(source.text)
    faults = [fault for document in composed.documents for fault in document.faults]
    faults += [composed.fault] if composed.fault is not None else []
    if faults:
        return ProjectFile(), tuple(fault_finding(fault, source.file) for fault in faults)
    if len(composed.documents) > 1:
        at = composed.documents[1].at
        finding = make_finding(
            "SL123",
            "a project file is one document",
            found="several",
            expected="`variables` and `environments`, once",
            hint="remove the line `---`, and join the documents",
        )
        return ProjectFile(), (placed(finding, source.file, at),)
    node = composed.documents[0].node if composed.documents else composer.Scalar(None, "")
    if isinstance(node, composer.Scalar) and node.value is None:
        return ProjectFile(), ()
    start = composer.Position(1, 1)
    try:
        project = ProjectFile.parse(composer.plain(node))
    except ValidationError as error:
        found = findings_of(error, ProjectFile, node, "")
    else:
        found = tuple(_secret_names(project))
    findings = tuple(
        placed(each, source.file, composer.position_of(node, start, composer.split_path(each.path)))
        for each in found
    )
    return (ProjectFile() if findings else project), findings


def _secret_names(project: ProjectFile) -> Iterator[Finding]:
    """Variables that are called like secrets: their values would be shown by plans."""
    lists = {"variables": project.variables} | {
        f"environments.{name}.variables": each.variables
        for name, each in project.environments.items()
    }
    for path, variables in lists.items():
        for name in variables:
            if names_secret(name):
                yield _secret_name(name, f"{path}.{name}")


def _secret_name(name: str, path: str) -> Finding:
    return make_finding(
        "SL123",
        "a variable is no place for a secret: plans and `render` show its value",
        path=path,
        found=f"a variable called `{name}`",
        expected="names of variables that hold no secret",
        hint="use `credentials.fromEnvironment` or `credentials.fromSecret` of the source",
    )


def _choice_findings(
    choice: VariableChoice, project: ProjectFile, source: SourceText | None
) -> Iterator[Finding]:
    name = choice.environment
    if name is not None and name not in project.environments:
        file = "" if source is None else source.file
        known = listing(tuple(project.environments))
        yield make_finding(
            "SL123",
            f"there is no environment `{name}`",
            path=f"--env {name}",
            found=name,
            expected=known or f"an environment that {file or PROJECT_FILE} declares",
            hint=did_you_mean(name, project.environments)
            or (
                f"declare it under `environments` of {file}"
                if file
                else f"write {PROJECT_FILE} with `environments: {{{name}: {{}}}}` beside the files"
            ),
        )
    for variable, value in choice.values.items():
        if not _NAME.fullmatch(variable):
            yield make_finding(
                "SL123",
                "this cannot be the name of a variable",
                path=f"--set {variable}",
                found=variable or "no name",
                expected="letters, digits, `_` and `-`, not beginning with a digit",
                hint="write `--set name=value`",
            )
        elif names_secret(variable):
            yield _secret_name(variable, f"--set {variable}")
        elif not _is_value(value):
            yield make_finding(
                "SL123",
                f"this cannot be the value of the variable `{variable}`",
                path=f"--set {variable}",
                found=f"a text with `$(`, of several lines, or of over {LONGEST_VALUE} characters",
                expected="one line of text, without variables in it",
                hint="write the whole value",
            )


def _is_value(text: str) -> bool:
    return len(text) <= LONGEST_VALUE and _FORBIDDEN.search(text) is None


def nested_project(source: SourceText) -> Finding:
    """The finding about a project file among declarations of another project."""
    return make_finding(
        "SL123",
        "there is another project file above this one",
        found=source.file,
        expected=f"one {PROJECT_FILE} for all files",
        hint="move its variables to the other one, or load this folder by itself",
    ).model_copy(update={"file": source.file})


def fault_finding(fault: composer.Fault, file: str, resource: str = "") -> Finding:
    """The finding about a fault of a file's YAML."""
    finding = make_finding(
        fault.code,
        fault.message,
        resource=resource,
        path=fault.path,
        found=fault.found,
        expected=fault.expected,
        hint=fault.hint,
    )
    return placed(finding, file, fault.at)


def placed(finding: Finding, file: str, at: composer.Position) -> Finding:
    """A finding with its place in a file."""
    return finding.model_copy(update={"file": file, "line": at.line, "column": at.column})


# `--env` and `--set`: which values the variables of declarations have.


def chosen_variables(environment: str | None, texts: Iterable[str]) -> VariableChoice:
    """The choice of `--env` and `--set name=value`."""
    values: dict[str, str] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or values.get(name, value) != value:
            finding = make_finding(
                "SL191",
                "this gives no variable a value" if not sign else f"`{name}` is given two values",
                path="--set",
                found=name if not sign else f"--set {name}=... twice",
                expected="name=value, each name once",
                hint=f"write `--set {name or 'name'}=VALUE`",
            )
            raise InvalidDeclarations([finding])
        values[name] = value
    return VariableChoice(environment, values)
