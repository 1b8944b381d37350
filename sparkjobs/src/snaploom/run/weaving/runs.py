"""Runs, plans and estimates of outputs; Spark is started where something needs it."""

import logging
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pydantic import JsonValue

from snaploom import ondemand
from snaploom.errors import SnaploomError
from snaploom.files.listed import ListedFile, NoOtherFiles, OtherFiles, SparkNeeded
from snaploom.files.objectstore import ObjectStore
from snaploom.files.stores import open_store
from snaploom.loading.project import AppliedProject
from snaploom.models.allowances import Allowances
from snaploom.models.common import EpochNanos, now
from snaploom.models.findings import (
    TREE_CODES,
    Finding,
    InvalidDeclarations,
    errors_of,
    exit_code_of,
    refuse,
)
from snaploom.models.report import Report
from snaploom.models.run import RunSettings
from snaploom.output.layout import new_run_id
from snaploom.plan import explain
from snaploom.plan.bundle import Bundle
from snaploom.plan.plan import PlannedSnapshot, RunPlan, followed
from snaploom.plan.steps import Action
from snaploom.policy.acceleration import accelerated_settings, chosen
from snaploom.policy.addresses import S3, kind_of
from snaploom.run import runevents
from snaploom.run.declarations import Declarations
from snaploom.run.joblog import warnings_as_events
from snaploom.run.reports.record import Observations, RunRecord
from snaploom.run.session import providers
from snaploom.run.session.classarchive import SMALL_BYTES, SUBMITTED, configured_elsewhere
from snaploom.run.weaving.preflight import (
    PlannedRun,
    PlanRequest,
    begin,
    look_into_folder,
    plan_listed,
)
from snaploom.run.weaving.requests import RunOptions, RunRequest
from snaploom.sources.files.buckets import BucketFiles
from snaploom.sources.sourcefiles import SourceFiles, listed_without_spark, snapshot_bytes
from snaploom.validate.outputs import read_first

_log = logging.getLogger(__name__)


# Access to files that are on no local disk, before there is a session.


class FilesBeforeSpark:
    """`OtherFiles` of a process that has no session."""

    def __init__(self, run: RunSettings, allow: Allowances) -> None:
        self._run = run
        self._allow = allow

    def matches(self, glob: str, resource: str) -> Sequence[ListedFile]:
        return self._files_of(glob).matches(glob, resource)

    def folders(self, glob: str, is_hidden: Callable[[str], bool]) -> Sequence[str] | None:
        return self._files_of(glob).folders(glob, is_hidden)

    def exists(self, uri: str) -> bool:
        return self._files_of(uri).exists(uri)

    def store(self, uri: str, create: bool) -> ObjectStore:
        return self._files_of(uri).store(uri, create)

    def end(self, file: ListedFile, length: int) -> bytes:
        return self._files_of(file.uri).end(file, length)

    def _files_of(self, uri: str) -> OtherFiles:
        context = sys.modules.get("pyspark.core.context")
        if context is not None and context.SparkContext._active_spark_context is not None:
            return NoOtherFiles()  # it may have settings of its own, and is at hand
        if SUBMITTED in os.environ:
            return self._submitted
        if kind_of(uri) is not S3:
            return NoOtherFiles()
        other = configured_elsewhere(self._run, os.environ)
        if other:
            raise SparkNeeded(f"{uri}: Hadoop's client is configured by {other}")
        return self._buckets

    @cached_property
    def _submitted(self) -> OtherFiles:
        return ondemand.submitted_files(self._run, self._allow)

    @cached_property
    def _buckets(self) -> BucketFiles:
        return BucketFiles(os.environ)


# Runs, plans and estimates of outputs; Spark is started where something needs it.

STARTED = "%s: Spark is started to list sources: %s"


@dataclass(frozen=True)
class EndedRun:
    """A run that has nothing to weave."""

    report: Report
    events: tuple[runevents.Event, ...]


@dataclass(frozen=True)
class SparkRun:
    """A run that Spark has to be started for."""

    is_small: bool = False
    """Whether it is known to read little, and nothing else is run in this process."""


def weave_outputs(
    request: RunRequest,
    indexes: providers.IndexPlaces = providers.no_indexes,
    open_session: providers.OpenSession = providers.own_session,
) -> tuple[Report, ...]:
    """Weave outputs, several at a time where that is asked for; an interruption ends all cleanly.

    A failed output does not keep the others from their turn; an interruption does. An output that
    reads what another one publishes has its turn after it.
    """
    bundles, interruption = request.bundles, request.interruption
    run, allow = bundles[0].output.spec.run, request.options.allow
    others = FilesBeforeSpark(run, allow)
    files = {bundle.output.name: SourceFiles(others) for bundle in bundles}

    def look() -> list[EndedRun] | SparkRun:
        interruption.check()
        ended: list[EndedRun] = []
        for bundle in bundles:
            found = begun_run(request, bundle, now, files[bundle.output.name])
            if isinstance(found, SparkRun):
                return found
            ended.append(found)
            if interruption.is_requested:
                break
        return ended

    with warnings_as_events(request.emit):
        found = runevents.run_interruptibly(look, interruption, lambda: None, request.on_tick)
    if not isinstance(found, SparkRun):
        _show(found, request)
        return tuple(run.report for run in found)
    opened = providers.open_early(
        open_session,
        "snaploom",
        run,
        allow,
        resource=bundles[0].output.identity,
        is_small=found.is_small,
    )
    return ondemand.weave_in_session(
        request,
        {bundle.output.name: indexes(bundle.output.name) for bundle in bundles},
        # What others of these outputs publish before an output has its turn was not listed here.
        {name: files[name] for name, upstream in read_first(bundles).items() if not upstream},
        opened,
    )


def preview(
    request: PlanRequest, open_session: providers.OpenSession = providers.own_session
) -> RunPlan:
    """Return the plan that a run would visit now, after preflight; nothing is written."""
    bundle, files = request.bundle, _files(request)
    found = _planned_without_spark(request, files)
    if found is not None and not found.plan.is_woven:
        return followed(found.plan, found.plan.snapshots or (), found.published, found.present)
    small = is_small(bundle, () if found is None else found.plan.due, files)
    return _planned_in_session(request, files, open_session, foresee=True, small=small).plan


def estimate_run(
    request: PlanRequest, open_session: providers.OpenSession = providers.own_session
) -> runevents.Estimate:
    """Estimate what it would take to publish what is selected; nothing is written."""
    files = _files(request)
    found = _planned_without_spark(request, files)
    planned = found or _planned_in_session(request, files, open_session)
    return runevents.estimate_of(planned.state, len(planned.plan.due))


def _files(request: PlanRequest) -> SourceFiles:
    return SourceFiles(FilesBeforeSpark(request.bundle.output.spec.run, request.options.allow))


def _planned_without_spark(request: PlanRequest, files: SourceFiles) -> PlannedRun | None:
    with runevents.signal_handlers() as interruption:

        def look() -> PlannedRun | None:
            try:
                return planned_without_spark(request, now, files, interruption.check)
            except SparkNeeded as needed:
                _log.info(STARTED, request.bundle.output.identity, needed)
                return None

        try:
            return runevents.run_interruptibly(look, interruption, lambda: None, lambda: None)
        finally:
            interruption.check()


def _planned_in_session(
    request: PlanRequest,
    files: SourceFiles,
    open_session: providers.OpenSession,
    *,
    foresee: bool = False,
    small: bool = False,
) -> PlannedRun:
    output, allow = request.bundle.output, request.options.allow
    opened = providers.open_early(
        open_session,
        "snaploom plan",
        output.spec.run,
        allow,
        resource=output.identity,
        is_small=small,
    )
    return ondemand.plan_in_session(request, files, opened, foresee=foresee)


def planned_without_spark(
    request: PlanRequest,
    clock: Callable[[], EpochNanos],
    files: SourceFiles,
    check: Callable[[], None],
    observations: Observations | None = None,
) -> PlannedRun:
    """Plan a run.

    `check` is called before each source is listed; what it raises comes out.
    """
    bundle, seen = request.bundle, observations or Observations()
    folder = bundle.output.spec.output_folder.folder_uri
    store = open_store(folder, create=False, others=files.others.store)
    state = look_into_folder(request, store, seen)
    for node in request.offline.tree.nodes:
        check()
        found = listed_without_spark(bundle, node.source, files)
        if found is None:
            why = "neither paths nor footers give its snapshots"
            raise SparkNeeded(f"DataSource/{node.source}: {why}")
        seen.listings[node.source] = found
    return plan_listed(request, store, state, seen.listings, files, clock())


def begun_run(
    request: RunRequest, bundle: Bundle, clock: Callable[[], EpochNanos], files: SourceFiles
) -> EndedRun | SparkRun:
    """The run of an output as far as it goes without Spark: to its end where nothing is due."""
    check = request.interruption.check
    events: list[runevents.Event] = []
    record = RunRecord(bundle, new_run_id(clock()), events.append, clock)
    try:
        plan = PlanRequest(bundle, request.moment, request.options)
        planned = planned_without_spark(plan, clock, files, check, record.observations)
        due = begin(planned, record, request.options, clock, events.append)
        is_registered = bundle.output.spec.output_folder.register_table is not None
        if due or (is_registered and planned.state.timeline):
            return SparkRun(len(request.bundles) == 1 and is_small(bundle, due, files))
    except SparkNeeded as needed:
        _log.info(STARTED, bundle.output.identity, needed)
        return SparkRun()
    except SnaploomError as error:
        record.stop(request.interruption.cause or error)
    folder = bundle.output.spec.output_folder.folder_uri
    report = record.kept_report(lambda: open_store(folder, create=False, others=files.others.store))
    return EndedRun(report, tuple(events))


def is_small(bundle: Bundle, due: Sequence[PlannedSnapshot], files: SourceFiles) -> bool:
    """Whether snapshots of an output are woven from few bytes; false where that is unknown.

    Java need not be prepared for much then.
    """
    total = 0
    try:
        # What two snapshots read may be read twice.
        for read in (read for snapshot in due for read in snapshot.reads):
            found = snapshot_bytes(bundle, read.source, read.times, files)
            if found is None or (total := total + found) > SMALL_BYTES:
                return False
    except (SnaploomError, SparkNeeded):
        return False  # reading the snapshot raises it again, with the snapshot's name
    return bool(due)


def _show(ended: Sequence[EndedRun], request: RunRequest) -> None:
    emit, interruption = request.emit, request.interruption
    with runevents.run_listeners(os.environ, emit, lambda: interruption.is_requested) as begin:
        # After an interruption fewer have ended.
        for bundle, run in zip(request.bundles, ended, strict=False):
            follower = begin(bundle)
            for event in run.events:
                name = bundle.output.name
                emit(runevents.OfOutput(name, event) if request.options.parallel > 1 else event)
                follower.take(event)
            follower.ended(run.report)


# The plan of one output, as far as its declarations allow, with all that is wrong.


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
        known: dict[tuple[str, str, str, str], Finding] = {}
        for f in (*self.findings, *findings):
            known.setdefault((f.code, f.resource, f.path, f.message), f)
        self.findings = tuple(known.values())

    @property
    def is_plannable(self) -> bool:
        """Whether nothing is wrong but, perhaps, the join tree, which a plan shows best."""
        return all(finding.code in TREE_CODES for finding in errors_of(self.findings))

    @property
    def text(self) -> str:
        """The plan for people, after the variables that it was made with; empty without a plan."""
        return "" if self.plan is None else self._heads + explain.plan_text(self.plan)

    @property
    def _heads(self) -> str:
        return explain.project_text(self.project) + explain.accelerator_text(self.accelerated)

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
        failed = () if failure is None else (runevents.preflight_finding(failure, failure.reason),)
        document = explain.plan_json(self.plan) if self.plan is not None else empty
        findings: list[JsonValue] = [explain.finding_json(f) for f in (*self.findings, *failed)]
        return {
            **document,
            "project": explain.project_json(self.project),
            "accelerator": explain.accelerator_json(self.accelerated),
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
    open_session: providers.OpenSession | None = None,
) -> Planned:
    """Plan one output as far as its declarations allow; only faults of Snaploom are raised.

    `offline` plans the join tree only, without Spark. `strict` makes a root without any snapshot a
    failure in any case.
    """
    planned = Planned(name, project=declarations.loaded.project)
    try:
        bundle = declarations.bundle(name)
        options = RunOptions(limit=limit, is_strict=strict, allow=declarations.allow)
        request = PlanRequest(bundle, moment, options)
        run = chosen(bundle.output.spec.run, os.environ)
        planned.accelerated = accelerated_settings(run.spark)
        planned.add(declarations.findings_for(bundle))
        if planned.is_plannable:
            planned.plan = request.offline
            planned.add(declarations.placed(planned.plan.findings))
        refuse(planned.findings)
        if not offline:
            opened = open_session or providers.with_drivers(declarations)
            planned.plan = preview(request, opened)
            planned.add(declarations.placed(planned.plan.findings))
    except InvalidDeclarations as error:
        planned.add(declarations.placed(error.findings))
    except SnaploomError as error:
        planned.failure = error
    return planned
