"""Plans for the command line, and prints the plan (`plan`, `run --dry-run`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from pydantic import JsonValue

from snaploom import lazyimport
from snaploom.cli.console import (
    OutputForm,
    message_console,
    preflight_finding,
    print_error,
    print_findings,
    print_json,
    result_console,
)
from snaploom.errors import SnaploomError
from snaploom.jobs.declarations.declarationfiles import (
    TREE_CODES,
    Declarations,
    exit_code_of,
    refuse,
)
from snaploom.models.allowances import Allowances
from snaploom.models.finding import Finding, InvalidDeclarations, errors_of
from snaploom.models.times import EpochNanos
from snaploom.planning.availability import Action
from snaploom.planning.bundle import Bundle
from snaploom.planning.explain import finding_json, plan_json, plan_text
from snaploom.planning.plan import RunPlan, plan_offline


class Preview(Protocol):
    """`snaploom.jobs.weaving.outputs.preview`, which brings Spark along."""

    def __call__(
        self,
        bundle: Bundle,
        moment: EpochNanos,
        limit: int | None,
        allow: Allowances,
        is_strict: bool,
    ) -> RunPlan:
        """The plan that a run would visit."""
        ...


@dataclass
class Planned:
    """What the planning of one output came to, as far as it got."""

    output: str
    plan: RunPlan | None = None
    findings: tuple[Finding, ...] = ()
    failure: SnaploomError | None = None

    def add(self, findings: Iterable[Finding]) -> None:
        """Keep each finding once: validation and planning find the same trees ambiguous."""
        known = {(f.code, f.resource, f.path, f.message): f for f in self.findings}
        for finding in findings:
            known.setdefault(
                (finding.code, finding.resource, finding.path, finding.message), finding
            )
        self.findings = tuple(known.values())

    @property
    def is_plannable(self) -> bool:
        """Whether nothing is wrong but, perhaps, the join tree, which a plan shows best."""
        return all(finding.code in TREE_CODES for finding in errors_of(self.findings))

    @property
    def document(self) -> dict[str, JsonValue]:
        """The contract of `plan -o json`; what could not be planned is empty."""
        empty: dict[str, JsonValue] = {
            "output": self.output,
            "hash": "",
            "root": "",
            "joins": [],
            "unreachable": [],
            "ties": [],
            "candidates": None,
            "deletes": [],
            "unforeseen": [],
            "collect": None,
        }
        failure = self.failure
        failed = () if failure is None else (preflight_finding(failure, failure.reason),)
        document = plan_json(self.plan) if self.plan is not None else empty
        findings: list[JsonValue] = [finding_json(f) for f in (*self.findings, *failed)]
        return {**document, "findings": findings}

    @property
    def exit_code(self) -> int:
        """What `plan` exits with."""
        if self.failure is not None:
            return self.failure.exit_code
        planned = () if self.plan is None else self.plan.snapshots or ()
        failing = any(snapshot.action is Action.FAIL for snapshot in planned)
        return exit_code_of(self.findings) or int(failing)


def plan_output(
    declarations: Declarations,
    name: str,
    moment: EpochNanos,
    *,
    offline: bool = False,
    limit: int | None = None,
    strict: bool = False,
) -> Planned:
    """Plan one output as far as its declarations allow; only faults of Snaploom are raised.

    Args:
        declarations: holds the output.
        name: of the OutputDataset.
        moment: the instant of planning.
        offline: plan the join tree only; Spark is not started.
        limit: snapshots to publish at most.
        strict: whether a root without any snapshot is a failure in any case.
    """
    planned = Planned(name)
    try:
        bundle = declarations.bundle(name)
        planned.add(declarations.findings_for(bundle))
        if planned.is_plannable:
            planned.plan = plan_offline(bundle)
            planned.add(declarations.placed(planned.plan.findings))
        refuse(planned.findings)
        if not offline:
            preview = cast(Preview, lazyimport.resolve(lazyimport.PREVIEW))
            planned.plan = preview(bundle, moment, limit, declarations.allow, strict)
            planned.add(declarations.placed(planned.plan.findings))
    except InvalidDeclarations as error:
        planned.add(declarations.placed(error.findings))
    except SnaploomError as error:
        planned.failure = error
    return planned


def show_plans(plans: Sequence[Planned], declarations: Declarations, form: OutputForm) -> None:
    """One plan as it is, several as a list; what is wrong on standard error."""
    if form is OutputForm.JSON:
        documents: list[JsonValue] = [planned.document for planned in plans]
        print_json(documents[0] if len(documents) == 1 else documents)
    for planned in plans:
        if planned.plan is not None and form is OutputForm.TEXT:
            result_console().print(plan_text(planned.plan), markup=False, end="")
        print_findings(planned.findings, message_console())
        if planned.failure is not None:
            print_error(planned.failure, lambda finding: declarations.placed([finding])[0])
