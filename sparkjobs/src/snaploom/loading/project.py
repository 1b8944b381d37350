"""The project of some declarations: which `snaploom.yaml` counts, and the values it gives.

It is looked for in the folder of each path, and above it up to the folder that the process works
in; never above that, nor above a folder elsewhere, where somebody else may have put one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from snaploom.loading.composer import compose
from snaploom.loading.filetexts import SourceText, read_files
from snaploom.loading.nearmisses import did_you_mean, listing
from snaploom.loading.nodes import Node, Position, Scalar, plain, position_of, split_path
from snaploom.loading.pydanticerrors import findings_of, names_secret
from snaploom.models.codes import make_finding
from snaploom.models.finding import Finding, Severity
from snaploom.models.projectfile import (
    LONGEST_VALUE,
    NO_CHOICE,
    PROJECT_FILE,
    VARIABLE_PATTERN,
    ProjectFile,
    VariableChoice,
)

_DECLARES = re.compile(r"^apiVersion\s*:", re.MULTILINE)
_NAME = re.compile(VARIABLE_PATTERN)
_FORBIDDEN = re.compile(r"\$\(|[\x00-\x1f]")


@dataclass(frozen=True)
class AppliedProject:
    """The environment and the variables with which declarations were read."""

    file: str = ""
    """The project file, as the user would name it; empty without one."""
    environment: str = ""
    """The environment; empty for none."""
    values: Mapping[str, str] = field(default_factory=dict)
    """All variables that have a value, by name."""
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
        findings = (*findings, _several(found))
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
            hint=did_you_mean(name, (named | declared) - {name}) or "leave it out",
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
    composed = compose(source.text)
    faults = [fault for document in composed.documents for fault in document.faults]
    faults += [composed.fault] if composed.fault is not None else []
    if faults:
        return ProjectFile(), tuple(
            _placed(
                make_finding(
                    fault.code, fault.message, path=fault.path, found=fault.found,
                    expected=fault.expected, hint=fault.hint,
                ),
                source.file,
                fault.at,
            )
            for fault in faults
        )  # fmt: skip
    if len(composed.documents) > 1:
        at = composed.documents[1].at
        finding = make_finding(
            "SL123",
            "a project file is one document",
            found="several",
            expected="`variables` and `environments`, once",
            hint="remove the line `---`, and join the documents",
        )
        return ProjectFile(), (_placed(finding, source.file, at),)
    node = composed.documents[0].node if composed.documents else Scalar(None, "")
    if isinstance(node, Scalar) and node.value is None:
        return ProjectFile(), ()
    return _read(node, source.file)


def _read(node: Node, file: str) -> tuple[ProjectFile, tuple[Finding, ...]]:
    start = Position(1, 1)
    try:
        project = ProjectFile.parse(plain(node))
    except ValidationError as error:
        found = findings_of(error, ProjectFile, node, "")
    else:
        found = tuple(_secret_names(project))
    placed = (_placed(f, file, position_of(node, start, split_path(f.path))) for f in found)
    findings = tuple(placed)
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


def _several(found: Sequence[SourceText]) -> Finding:
    return make_finding(
        "SL123",
        "these files belong to several projects",
        path="-f",
        found=", ".join(each.file for each in found),
        expected=f"one {PROJECT_FILE} for all files",
        hint="give the files of one project at a time, or keep one project file above them all",
    ).model_copy(update={"file": found[1].file})


def nested_project(source: SourceText) -> Finding:
    """The finding about a project file among declarations of another project."""
    return make_finding(
        "SL123",
        "there is another project file above this one",
        found=source.file,
        expected=f"one {PROJECT_FILE} for all files",
        hint="move its variables to the other one, or load this folder by itself",
    ).model_copy(update={"file": source.file})


def _placed(finding: Finding, file: str, at: Position) -> Finding:
    return finding.model_copy(update={"file": file, "line": at.line, "column": at.column})
