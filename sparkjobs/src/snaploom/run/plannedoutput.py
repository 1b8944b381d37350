"""Plans one output as far as its declarations allow, with all that is wrong."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from snaploom.errors import SnaploomError
from snaploom.loading.project import AppliedProject
from snaploom.models.common import EpochNanos
from snaploom.models.findings import Finding, InvalidDeclarations, errors_of
from snaploom.plan.explain import (
    accelerator_json,
    accelerator_text,
    finding_json,
    plan_json,
    plan_text,
    project_json,
    project_text,
)
from snaploom.plan.plan import RunPlan, plan_offline
from snaploom.plan.steps import Action
from snaploom.policy.acceleration import accelerated_settings, chosen
from snaploom.run.declarations import TREE_CODES, Declarations, exit_code_of, refuse
from snaploom.run.runevents import preflight_finding
from snaploom.run.session.providers import OpenSession, with_drivers
from snaploom.run.weaving.requests import PlanRequest, RunOptions
from snaploom.run.weaving.runs import preview


@dataclass
class Planned:
    """Result of planning one output; partial if planning failed."""

    output: str
    plan: RunPlan | None = None
    findings: tuple[Finding, ...] = ()
    failure: SnaploomError | None = None
    project: AppliedProject = field(default_factory=AppliedProject)
    """The environment and variables of the declarations."""
    accelerated: Mapping[str, str] = field(default_factory=dict)
    """The settings that a run has for its accelerator; empty without one."""

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
    def text(self) -> str:
        """The plan for people, after the variables that it was made with; empty without a plan."""
        return "" if self.plan is None else self._heads + plan_text(self.plan)

    @property
    def _heads(self) -> str:
        return project_text(self.project) + accelerator_text(self.accelerated)

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
            "dataFindings": [],
        }
        failure = self.failure
        failed = () if failure is None else (preflight_finding(failure, failure.reason),)
        document = plan_json(self.plan) if self.plan is not None else empty
        findings: list[JsonValue] = [finding_json(f) for f in (*self.findings, *failed)]
        return {
            **document,
            "project": project_json(self.project),
            "accelerator": accelerator_json(self.accelerated),
            "findings": findings,
        }

    @property
    def exit_code(self) -> int:
        """Exit code of `plan`."""
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
    open_session: OpenSession | None = None,
) -> Planned:
    """Plan one output as far as its declarations allow; only faults of Snaploom are raised.

    `offline` plans the join tree only, without Spark. `strict` makes a root without any snapshot a
    failure in any case.
    """
    planned = Planned(name, project=declarations.loaded.project)
    try:
        bundle = declarations.bundle(name)
        run = chosen(bundle.output.spec.run, os.environ)
        planned.accelerated = accelerated_settings(run.spark)
        planned.add(declarations.findings_for(bundle))
        if planned.is_plannable:
            planned.plan = plan_offline(bundle)
            planned.add(declarations.placed(planned.plan.findings))
        refuse(planned.findings)
        if not offline:
            opened = open_session or with_drivers(declarations)
            options = RunOptions(limit=limit, is_strict=strict, allow=declarations.allow)
            planned.plan = preview(PlanRequest(bundle, moment, options), opened)
            planned.add(declarations.placed(planned.plan.findings))
    except InvalidDeclarations as error:
        planned.add(declarations.placed(error.findings))
    except SnaploomError as error:
        planned.failure = error
    return planned
