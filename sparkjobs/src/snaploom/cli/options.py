"""Options that several commands share, so that they are spelt and explained alike."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from snaploom import ondemand
from snaploom.cli.console import OutputForm
from snaploom.errors import FolderNotWritable
from snaploom.loading.project import chosen_variables
from snaploom.localfiles import absolute_path
from snaploom.models.allowances import Allowances, VariableChoice
from snaploom.models.common import EpochNanos, now, parse_instant, with_zone
from snaploom.models.findings import InvalidDeclarations, make_finding
from snaploom.policy.pods import allowances_of
from snaploom.run.weaving.requests import MOST_PARALLEL_SNAPSHOTS

if TYPE_CHECKING:
    from snaploom.run.declarations import Declarations

EMPTY_TEXT = "an empty text"
"""Value found where nothing but quotes was given."""

OutputName = Annotated[str, Parameter(name="OUTPUT", help="Name of an OutputDataset.")]

Files = Annotated[
    list[Path],
    Parameter(
        name=["--file", "-f"],
        consume_multiple=True,
        help="YAML files and folders with the declarations.",
    ),
]
Form = Annotated[
    OutputForm,
    Parameter(name=["--output", "-o"], show_default=True, help="Form of the result."),
]
Now = Annotated[
    str | None,
    Parameter(
        name="--now",
        help="Time to plan for, ISO 8601 with `Z` or an offset; omitted, the present.",
    ),
]

Limit = Annotated[
    int | None, Parameter(validator=Number(gte=1), help="Maximum number of snapshots to publish.")
]
KeepGoing = Annotated[
    bool,
    Parameter(help="Continue after a failed snapshot; the exit code reports it."),
]
ParallelSnapshots = Annotated[
    int,
    Parameter(
        validator=Number(gte=1, lte=MOST_PARALLEL_SNAPSHOTS),
        show_default=True,
        help="Snapshots of an output to weave at a time; published in order.",
    ),
]
Strict = Annotated[
    bool,
    Parameter(
        negative="",
        help="Fail if the root has no snapshot, as with `run.onEmptyRoot: Fail`; "
        "otherwise that is a warning.",
    ),
]
Acknowledged = Annotated[
    bool,
    Parameter(
        name="--acknowledge-readers",
        negative="",
        help="Replace what is published, although readers that list folders see both versions "
        "until `gc` has removed the old one.",
    ),
]

Allow = Annotated[
    tuple[str, ...],
    Parameter(
        name="--allow",
        help="Entry to allow beyond the built-in lists, as `LIST=ENTRY`: "
        "`formats=xml2`, `options=csv.basePath`, `functions=NAME`, `sparkConf=KEY`. "
        "May be repeated.",
    ),
]


@Parameter(name="*")
@dataclass(frozen=True)
class ProjectOptions:
    """The environment of the project, and variables."""

    env: Annotated[
        str | None,
        Parameter(name="--env", help="Environment of the project file, `snaploom.yaml`."),
    ] = None
    set_: Annotated[
        tuple[str, ...],
        Parameter(
            name="--set",
            help="Value of a variable, as `name=value`; overrides the project file. "
            "May be repeated.",
        ),
    ] = ()

    @property
    def choice(self) -> VariableChoice:
        return chosen_variables(self.env, self.set_)

    def read(self, files: Iterable[Path], allow: Iterable[str] = ()) -> Declarations:
        """Read and validate declarations; findings about them are not raised."""
        return ondemand.read_declarations([*files], allowed_by(allow), self.choice)


DEFAULT_PROJECT = ProjectOptions()
"""The variables of the project file as they are."""


def allowed_by(texts: Iterable[str]) -> Allowances:
    """The allowances of `--allow` and of the environment of this process."""
    return allowances_of(os.environ, texts)


def instant_of(text: str | None) -> EpochNanos:
    """The instant that `--now` names, or the present."""
    return now() if text is None else time_of(text, "--now", "leave it out to plan for the present")


def refuse_request(
    message: str, path: str, found: str = "", expected: str = "", hint: str = ""
) -> InvalidDeclarations:
    """Return the error about an argument of a command, which `path` names."""
    finding = make_finding("SL191", message, path=path, found=found, expected=expected, hint=hint)
    return InvalidDeclarations([finding])


def refuse_unlisted_strict(option: str, instead: str) -> None:
    """Refuse `--strict` where no snapshot of the root is looked for."""
    raise refuse_request(
        f"--strict has no effect with {option}, which looks for no snapshot of the root",
        "--strict",
        found=f"--strict and {option}",
        expected="one of the two",
        hint=f"leave out --strict, or {instead}",
    )


def time_of(text: str, option: str, hint: str) -> EpochNanos:
    """The instant that an option names; `hint` is advice where nothing can be guessed."""
    try:
        return parse_instant(text)
    except ValueError:
        whole = with_zone(text)
        raise refuse_request(
            "this is not a time",
            option,
            found=text or EMPTY_TEXT,
            expected="ISO 8601 with Z or an offset, such as 2020-01-31T00:00:00Z",
            hint=f"write {whole} if UTC is meant" if whole else hint,
        ) from None


def folder_uri(place: str) -> str:
    """The URI of a folder as a person names it: a relative path of a folder counts from here."""
    # Unlike `Path.is_dir`, this has an answer where looking is not allowed or not possible.
    return f"{absolute_path(place)}".rstrip("/") + "/" if os.path.isdir(place) else place


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Turn what the file system refuses into an error of Snaploom."""
    try:
        yield
    except OSError as error:
        raise FolderNotWritable(
            "this folder cannot be written",
            found=f"{error.strerror or error} at {error.filename or folder}",
            expected="a folder that this process may write to, with room for the files",
        ) from error
