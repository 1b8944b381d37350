"""The smallest input of each finding, and the text that it causes, by the program itself.

`docs/samples/findings/CODE.yaml` is the input. What data would offer to a plan, and what is typed
where a file is not enough, stands here.
"""

from __future__ import annotations

import io
from contextlib import redirect_stderr
from dataclasses import dataclass
from pathlib import Path

from snaploom.cli.console import message_console, print_findings
from snaploom.errors import SnaploomError, problems
from snaploom.loading.project import chosen_variables
from snaploom.models.common import parse_instant
from snaploom.models.findings import Finding, InvalidDeclarations
from snaploom.plan.intervals import SourceSnapshots
from snaploom.plan.plan import PublishedState, plan_offline, plan_run
from snaploom.plan.steps import refuse_empty_root
from snaploom.run.declarations import Declarations, read_declarations
from snaploom.run.runevents import preflight_finding
from snaploom.run.weaving.runs import plan_output

FOLDER = Path(__file__).parents[1] / "samples" / "findings"
"""Where the inputs are."""
OUTPUT, ROOT = "wide", "orders"
"""Names of the output and of its root in every input that is planned."""
_NOW = parse_instant("2024-01-01T12:00:00Z")
_OFFERED: dict[str, tuple[str, ...]] = {
    "SL305": ("2024-01-01T00:00:01.1Z", "2024-01-01T00:00:01.6Z"),
    "SL306": ("2024-01-01T00:00:00Z",),
    "SL307": (),
}
"""Times of the root's snapshots, of inputs that are wrong only together with data."""
_INSTEAD = {"SL101": "SL119", "SL191": "SL307", "SL192": "SL307"}
"""Codes that are no fault of a file, and the input with which they are shown."""
_CHOSEN: dict[str, tuple[str | None, tuple[str, ...]]] = {
    "SL122": (None, ("source=orders",)),
    "SL123": ("prod", ()),
    "SL124": (None, ("day=2024-05-01", "days=7")),
}
"""`--env` and `--set` of inputs that are wrong only together with them."""
_MISSING = "missing.yaml"


@dataclass(frozen=True)
class FindingSample:
    """A smallest input, and what comes of it."""

    code: str
    """Of the finding that it is the smallest input of."""
    file: Path | None
    """The input; None where the fault is that there is none."""
    command: str
    """What is typed."""
    findings: tuple[Finding, ...]
    """All that is found."""

    @property
    def text(self) -> str:
        """The input as text; bytes that are none are shown escaped."""
        if self.file is None:
            return ""
        return self.file.read_bytes().decode("utf-8", "backslashreplace")

    @property
    def printed(self) -> str:
        """What the command line prints about it."""
        output = io.StringIO()
        with redirect_stderr(output):
            print_findings(self.findings, message_console())
        return output.getvalue().replace(f"{FOLDER}/", "")


def finding_samples() -> dict[str, FindingSample]:
    """The samples, by code."""
    return {name: _sample(name) for name, problem in problems().items() if problem.severity}


def validated(file: Path, code: str) -> tuple[Finding, ...]:
    """What is found in a file: by `validate`, and by a plan where only data shows it.

    Args:
        file: the input.
        code: what it is the input of.
    """
    environment, values = _CHOSEN.get(code, (None, ()))
    declarations = read_declarations([file], choice=chosen_variables(environment, values))
    if code not in _OFFERED or any(finding.is_error for finding in declarations.findings):
        return declarations.findings
    try:
        bundle = declarations.bundle(OUTPUT)
    except InvalidDeclarations as error:
        return error.findings
    plan = plan_run(plan_offline(bundle), {ROOT: _offered(code)}, PublishedState(), _NOW)
    return (*declarations.findings, *declarations.placed(plan.findings))


def _offered(code: str) -> SourceSnapshots:
    return SourceSnapshots.of(map(parse_instant, _OFFERED[code]))


def _sample(code: str) -> FindingSample:
    file = FOLDER / f"{_INSTEAD.get(code, code)}.yaml"
    match code:
        case "SL101":
            found = read_declarations([FOLDER / _MISSING]).findings
            return FindingSample(code, None, f"snaploom validate {_MISSING}", found)
        case "SL191":
            found = plan_output(read_declarations([file]), "wdie", _NOW, offline=True).findings
            return FindingSample(code, file, f"snaploom plan wdie -f {file.name}", found)
        case "SL192":
            command = f"snaploom plan {OUTPUT} -f {file.name} --strict -o json"
            return FindingSample(code, file, command, (_preflight(read_declarations([file])),))
    typed = f"plan {OUTPUT} -f" if code in _OFFERED else "validate"
    environment, values = _CHOSEN.get(code, (None, ()))
    options = [f"--env {environment}"] if environment else []
    command = " ".join(
        [f"snaploom {typed} {file.name}", *options, *(f"--set {value}" for value in values)]
    )
    return FindingSample(code, file, command, validated(file, code))


def _preflight(declarations: Declarations) -> Finding:
    """The finding of `--strict` for a root without snapshots."""
    root = declarations.bundle(OUTPUT).source(ROOT)
    try:
        refuse_empty_root(root, SourceSnapshots())
    except SnaploomError as error:
        return declarations.placed([preflight_finding(error, error.reason)])[0]
    raise AssertionError("a root without snapshots was not refused")
