"""`snaploom.load`: declarations as an object, whose methods are what the commands do."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack, cast, overload

from snaploom import ondemand
from snaploom.confidential import remember_environment, visible_lines
from snaploom.errors import ArgumentInvalid
from snaploom.models.allowances import NO_CHOICE, VariableChoice
from snaploom.models.common import EpochNanos, Resource, now
from snaploom.models.findings import InvalidDeclarations
from snaploom.models.kinds import to_yaml
from snaploom.models.outputdataset import OutputDataset
from snaploom.output.entries import SnapshotRecord
from snaploom.output.folder import is_unused, open_folder
from snaploom.output.versions import Time, instant_of
from snaploom.plan.bundle import Bundle
from snaploom.plan.times import Selection
from snaploom.policy.pods import allowances_of
from snaploom.project import Pages, Status, drawing
from snaploom.project.results import Checked, DataDiff, Diff, Findings, Plan, Run, Runs
from snaploom.run.declarations import Declarations, declared, runnable_bundles
from snaploom.run.folders import open_named
from snaploom.run.joblog import writing_lines
from snaploom.run.published.diff import SAMPLES, compare, data_diff_request
from snaploom.run.published.outputcheck import CheckRequest, check_output, live_times
from snaploom.run.runevents import Estimate, Warned, signal_handlers
from snaploom.run.session.providers import OpenSession, index_places, session_beside, with_drivers
from snaploom.run.weaving import requests
from snaploom.run.weaving.preflight import PlanRequest
from snaploom.run.weaving.runs import estimate_run, plan_output, preview, weave_outputs
from snaploom.validate.outputs import upstream_outputs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Source = str | os.PathLike[str] | Resource
"""A YAML file, a folder with such files, or a resource."""

Progress = bool | Callable[[str], None]
"""True prints lines to standard error, False prints none, a function takes them."""


def load(
    source: Source | Iterable[Source],
    *,
    allow: Sequence[str] = (),
    env: str | None = None,
    variables: Mapping[str, str] = NO_CHOICE.values,
) -> Project:
    """Read declarations from files, folders and resources; nothing is run, and no data read.

    Args:
        source: one of them, or several, which are one set of declarations.
        allow: entries allowed beyond the built-in lists, each `LIST=ENTRY`; besides what the
            environment variable SNAPLOOM_ALLOW allows.
        env: an environment of the project file, `snaploom.yaml`.
        variables: values of variables, before those of the project file.

    Raises:
        InvalidDeclarations: `allow` names no list, or no entry; a file or folder is not there, or
            nothing is declared. Findings about the declarations are in `Project.findings`.
        ArgumentInvalid: `source` is something else.
    """
    remember_environment(os.environ)
    single = isinstance(source, str | os.PathLike | Resource)
    sources = [*source] if isinstance(source, Iterable) and not single else [source]
    resources = [each for each in sources if isinstance(each, Resource)]
    paths = [Path(each) for each in sources if isinstance(each, str | os.PathLike)]
    if len(resources) + len(paths) != len(sources):
        other = next(s for s in sources if not isinstance(s, str | os.PathLike | Resource))
        raise ArgumentInvalid(
            "these are no declarations",
            path="source",
            found=f"a {type(other).__name__}",
            expected="paths of YAML files and folders, and resources such as snaploom.DataSource",
            hint="write load('models/') or load([source, relationship, output])",
        )
    allowed = allowances_of(os.environ, allow)
    choice = VariableChoice(env, dict(variables))
    found = declared(resources, paths, allowed, choice)
    nothing = [each for each in found.findings if each.code in _NOTHING_THERE]
    if nothing:
        raise InvalidDeclarations(nothing)
    return Project(found)


_NOTHING_THERE = frozenset({"SL101", "SL119"})
"""Codes of files that cannot be read, and of sources that declare nothing."""


class _RunArguments(TypedDict, total=False):
    now: Time | None
    limit: int | None
    keep_going: bool
    parallel: int
    parallel_snapshots: int
    strict: bool
    spark: SparkSession | None
    progress: Progress
    raises: bool


class Project:
    """Declarations, and what can be done with them.

    Methods raise subclasses of `snaploom.errors.SnaploomError`: `InvalidDeclarations`, with the
    findings attached, also where there is no such output, and `ArgumentInvalid` where an argument
    is not valid. A session of Spark that is given, or that there is already, keeps its settings and
    is never stopped.

    Arguments that several methods have:

        output: name of an OutputDataset.
        start: earliest snapshot time.
        end: snapshot times are before it.
        now: time to plan for, or to which ages are measured; omitted, the present.
        limit: snapshots to publish at most, of each output.
        keep_going: whether a snapshot that fails leaves the later ones their turn.
        parallel_snapshots: number of snapshots of an output to weave at a time, at most 16; they
            are published in their order.
        strict: whether a root without any snapshot is a failure.
        spark: somebody's session; omitted, that of this process, or a new one.
        progress: destination of lines about the progress.
        raises: whether a failure is raised; otherwise it is in the result.
    """

    def __init__(self, declarations: Declarations) -> None:
        self._declarations = declarations

    @property
    def resources(self) -> tuple[Resource, ...]:
        """All that is declared and could be read, in the order of files and documents."""
        return self._declarations.resources

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the OutputDatasets."""
        return self._declarations.output_names

    def upstream(self, output: str) -> tuple[str, ...]:
        """Names of the outputs whose published files an output reads."""
        outputs = [each for each in self.resources if isinstance(each, OutputDataset)]
        return tuple(each.name for each in upstream_outputs(self._bundle(output), outputs))

    @property
    def findings(self) -> Findings:
        """Errors and warnings about the declarations."""
        return Findings(self._declarations.findings)

    def to_yaml(self) -> str:
        """All resources as YAML documents."""
        return to_yaml(self.resources)

    def validate(self, *, raises: bool = False) -> Findings:
        """Return errors and warnings about the declarations; data is not looked at.

        Args:
            raises: whether errors are raised.

        Raises:
            InvalidDeclarations: there is an error, and `raises` is set.
        """
        return self.findings.raise_for_errors() if raises else self.findings

    def plan(
        self,
        output: str,
        *,
        now: Time | None = None,
        offline: bool = False,
        limit: int | None = None,
        strict: bool = False,
        spark: SparkSession | None = None,
    ) -> Plan:
        """Plan the join tree of an output, and the snapshots of a run; nothing is written.

        Args:
            offline: plan the join tree only; data is not looked at, Spark not started.

        Raises:
            InvalidDeclarations: there is no such output. What else is wrong is in the plan.
        """
        self._refuse_unknown([output])
        _refuse_below_one(limit, "limit")
        planned = plan_output(
            self._declarations,
            output,
            _moment(now),
            offline=offline,
            limit=limit,
            strict=strict,
            open_session=self._session(spark),
        )
        bundle = self._declarations.bundle(output) if planned.plan is not None else None
        return Plan(planned, bundle)

    @overload
    def run(self, output: str, **options: Unpack[_RunArguments]) -> Run: ...

    @overload
    def run(
        self,
        output: list[str] | tuple[str, ...] | None = ...,
        **options: Unpack[_RunArguments],
    ) -> Runs: ...

    def run(
        self,
        output: str | list[str] | tuple[str, ...] | None = None,
        *,
        now: Time | None = None,
        limit: int | None = None,
        keep_going: bool = False,
        parallel: int = 1,
        parallel_snapshots: int = 1,
        strict: bool = False,
        spark: SparkSession | None = None,
        progress: Progress = True,
        raises: bool = True,
    ) -> Run | Runs:
        """Weave and publish every snapshot that is due.

        Args:
            output: name of an OutputDataset, or several; omitted, all.
            parallel: number of outputs to weave at a time.

        Returns:
            Result of the output; of several, in the order in which they were named.

        Raises:
            InvalidDeclarations: something is wrong with an output.
            RunFailed: a run failed or was interrupted, and `raises` is set; all results are
                attached.
            ArgumentInvalid, InvalidDeclarations: `now` is no time, or there is no such output.
        """
        options = requests.RunOptions(
            limit=limit,
            keep_going=keep_going,
            parallel=parallel,
            parallel_snapshots=parallel_snapshots,
            is_strict=strict,
        )
        names = [output] if isinstance(output, str) else list(output or self.outputs)
        runs = self._run(names, _moment(now), options, spark, progress, raises)
        return runs[0] if isinstance(output, str) else runs

    def backfill(
        self,
        output: str,
        start: Time,
        end: Time,
        *,
        limit: int | None = None,
        keep_going: bool = False,
        parallel_snapshots: int = 1,
        strict: bool = False,
        now: Time | None = None,
        spark: SparkSession | None = None,
        progress: Progress = True,
        raises: bool = True,
    ) -> Run:
        """Publish what is due in a span of snapshot times, and nothing else.

        Raises:
            ArgumentInvalid: the span ends before it begins, or as `run`.
            InvalidDeclarations, RunFailed: as `run`.
        """
        options = requests.RunOptions(
            selection=_span(start, end),
            limit=limit,
            keep_going=keep_going,
            parallel_snapshots=parallel_snapshots,
            is_strict=strict,
        )
        return self._run([output], _moment(now), options, spark, progress, raises)[0]

    def estimate(
        self,
        output: str,
        start: Time,
        end: Time,
        *,
        limit: int | None = None,
        now: Time | None = None,
        spark: SparkSession | None = None,
    ) -> Estimate:
        """Estimate a backfill; nothing is written.

        Raises:
            ArgumentInvalid, InvalidDeclarations: as `backfill`.
        """
        _refuse_below_one(limit, "limit")
        bundle = self._runnable([output])[0]
        options = requests.RunOptions(_span(start, end), limit, allow=self._declarations.allow)
        request = PlanRequest(bundle, _moment(now), options)
        return estimate_run(request, self._session(spark))

    def restate(
        self,
        output: str,
        time: Time,
        *,
        acknowledge_readers: Literal[True],
        reason: str = "",
        now: Time | None = None,
        spark: SparkSession | None = None,
        progress: Progress = True,
        raises: bool = True,
    ) -> Run:
        """Weave a published snapshot again, and put the new version in place of the old one.

        Args:
            time: of the published snapshot.
            acknowledge_readers: readers that list folders instead of asking the manifest see both
                versions until `readerGrace` has passed; True where everybody knows.
            reason: why, for people; kept in the manifest.

        Raises:
            ArgumentInvalid: the readers are not acknowledged, or as `run`.
            InvalidDeclarations, RunFailed: as `run`.
        """
        requests.refuse_unacknowledged(acknowledge_readers, "acknowledge_readers")
        selection = Selection(restated=instant_of(time, "time"))
        options = requests.RunOptions(selection=selection, reason=reason)
        return self._run([output], _moment(now), options, spark, progress, raises)[0]

    def diff(
        self,
        output: str,
        against: Project | Source | Iterable[Source] | None = None,
        *,
        offline: bool = False,
        now: Time | None = None,
        spark: SparkSession | None = None,
    ) -> Diff:
        """Compare the declarations with others, by plan, schema and history; nothing is run.

        Args:
            against: declarations as they are; omitted, only published data is compared.
            offline: do not look at the sources for what retention deletes.

        Raises:
            ArgumentInvalid, InvalidDeclarations: as `run`.
        """
        after, moment = self._runnable([output])[0], _moment(now)
        before = None
        if against is not None:
            other = against if isinstance(against, Project) else load(against)
            before = other._declarations.bundle(output)
        request = PlanRequest(after, moment, requests.RunOptions(allow=self._declarations.allow))
        look = partial(preview, request, self._session(spark))
        return Diff(compare(after, before, moment, None if offline else look))

    def diff_data(
        self,
        output: str,
        before: Time,
        after: Time,
        *,
        samples: int = SAMPLES,
        now: Time | None = None,
        spark: SparkSession | None = None,
    ) -> DataDiff:
        """Compare two versions of snapshots row by row, matched by `rootKey`; nothing is written.

        Args:
            before: time of a snapshot, `TIME@NUMBER` (as of that manifest) or `TIME@dry-run` (as it
                would be woven now).
            after: the same.
            samples: rows of each kind to show; 0 for none.
            now: time to plan a dry run for; omitted, the present.

        Raises:
            ArgumentInvalid: the output has no `rootKey`, a version is not there, or as `run`.
            CheckFailed: a key is not unique, or NULL, in one of the two.
            InvalidDeclarations, NothingPublished, ObjectNotFound: there is nothing to compare.
        """
        bundle, moment = self._runnable([output])[0], _moment(now)
        store = open_named(bundle.output.spec.output_folder.folder_uri)
        request = data_diff_request(bundle, store, before, after, samples)
        allow = self._declarations.allow
        with signal_handlers() as interruption:
            return DataDiff(
                ondemand.compare_data(
                    request, store, moment, interruption, allow, self._session(spark)
                )
            )

    def check(
        self,
        output: str,
        *,
        files_only: bool = False,
        snapshots: Sequence[Time] = (),
        spark: SparkSession | None = None,
        progress: Progress = True,
    ) -> Checked:
        """Compare what is in an output's folder with what was published; nothing is changed.

        Args:
            files_only: look at the manifest, and at names and sizes of files; start no Spark.
            snapshots: times of the snapshots to read; omitted, every one that is live.

        Raises:
            ArgumentInvalid: as `run`, or no live snapshot has one of the times.
            FolderNotOurs, ManifestCorrupt: the folder cannot be read.
        """
        spec = self._bundle(output).output.spec
        store = open_named(spec.output_folder.folder_uri)
        state = open_folder(store).log.read()
        asked = [instant_of(time, f"snapshots[{n}]") for n, time in enumerate(snapshots)]
        times = live_times(state, asked, "snapshots")
        request = CheckRequest(store, state, times, spec, self._declarations.allow)
        with signal_handlers() as interruption:
            faults = check_output(
                request, files_only, _lines(progress), interruption, self._session(spark)
            )
        return Checked(store.uri, faults, len(times))

    def snapshots(self, output: str) -> tuple[SnapshotRecord, ...]:
        """Return the published snapshots of an output, oldest first; none if it never ran.

        Raises:
            FolderNotOurs: its folder is not ours.
        """
        store = open_named(self._bundle(output).output.spec.output_folder.folder_uri)
        return () if is_unused(store) else tuple(open_folder(store).log.read().snapshots)

    def status(self, output: str | None = None, *, now: Time | None = None) -> Status:
        """The join tree with match rates, the timeline of snapshots, and how fresh an output is.

        Files of sources are listed; no row is read, nor Spark started.

        Raises:
            InvalidDeclarations: there is no such output, or something is wrong with an output
                beside its join tree.
        """
        return cast(Status, self._drawn("status", output, now))

    def page(self, output: str | None = None, *, now: Time | None = None) -> Pages:
        """Draw declarations and publications as HTML; no row is read, nor Spark started.

        Raises:
            InvalidDeclarations: there is no such output, or something is wrong with an output
                beside its join tree.
        """
        return cast(Pages, self._drawn("page", output, now))

    def read(
        self,
        output: str,
        *,
        at: Time | None = None,
        between: tuple[Time, Time] | None = None,
        manifest: int | None = None,
        known_at: Time | None = None,
        spark: SparkSession | None = None,
    ) -> DataFrame:
        """The published rows of an output, as `snaploom.read` returns them.

        Args:
            at: only the newest snapshot at this time or before it.
            between: only snapshots from one time to another, both inclusive.
            manifest: sequence number to read as of; omitted, the newest.
            known_at: snapshots as they were published at this time.
            spark: any session; omitted, that of this process, or a new one.

        Raises:
            InvalidDeclarations: there is no such output; or as `snaploom.read`.
            NothingPublished, HistoryIncompatible, FolderNotOurs: as `snaploom.read`.
            ObjectNotFound: as `snaploom.read`.
        """
        spec = self._bundle(output).output.spec
        allow = self._declarations.allow
        session = spark or ondemand.reading_session("snaploom read", spec.run, allow)
        folder = spec.output_folder.folder_uri
        return ondemand.read_folder(
            session, folder, at=at, between=between, manifest=manifest, known_at=known_at
        )

    def _repr_html_(self) -> str:
        return f"<pre>{self}</pre>{self.findings._repr_html_()}"

    def __repr__(self) -> str:
        kinds = ", ".join(each.identity for each in self.resources)
        return f"<Project: {kinds or 'nothing is declared'}>"

    def _run(
        self,
        names: Sequence[str],
        moment: EpochNanos,
        options: requests.RunOptions,
        spark: SparkSession | None,
        progress: Progress,
        raises: bool,
    ) -> Runs:
        _refuse_below_one(options.limit, "limit")
        _refuse_below_one(options.parallel, "parallel")
        _refuse_below_one(
            options.parallel_snapshots, "parallel_snapshots", requests.MOST_PARALLEL_SNAPSHOTS
        )
        bundles = self._runnable(names)
        emit = writing_lines(_lines(progress))
        declarations = self._declarations
        options = replace(options, allow=declarations.allow)
        indexes = index_places(declarations, lambda text: emit(Warned(text)))
        with signal_handlers() as interruption:
            request = requests.RunRequest(bundles, moment, emit, interruption, options=options)
            reports = weave_outputs(request, indexes, self._session(spark))
        runs = Runs(tuple(map(Run, reports)))
        return runs.raise_for_failures() if raises else runs

    def _drawn(self, method: str, output: str | None, now: Time | None) -> object:
        names = self.outputs if output is None else (output,)
        self._refuse_unknown(names)
        return drawing(method)(self._declarations, names, _moment(now), now is None)

    def _session(self, spark: SparkSession | None) -> OpenSession:
        if spark is not None:
            return session_beside(spark)
        return with_drivers(self._declarations, is_kept=True)

    def _runnable(self, names: Sequence[str]) -> tuple[Bundle, ...]:
        bundles, _ = runnable_bundles(self._declarations, names)
        return bundles

    def _bundle(self, output: str) -> Bundle:
        return self._declarations.bundle(output)

    def _refuse_unknown(self, names: Sequence[str]) -> None:
        """Refuse names of nothing; what could not be read is reported by its findings."""
        broken = self._declarations.loaded.broken
        for name in names:
            is_known = name in self.outputs or f"{OutputDataset.__name__}/{name}" in broken
            if not is_known and self.findings.is_ok:
                self._declarations.bundle(name)


def _moment(time: Time | None) -> EpochNanos:
    return now() if time is None else instant_of(time, "now")


def _refuse_below_one(number: object, argument: str, most: int | None = None) -> None:
    """Refuse what is neither None nor a whole number from 1, and up to `most`."""
    if number is None or (type(number) is int and 1 <= number <= (most or number)):
        return
    raise ArgumentInvalid(
        "this is not a count",
        path=argument,
        found=repr(number),
        expected="a whole number from 1" + (f" to {most}" if most else ""),
        hint=f"leave `{argument}` out for the usual number",
    )


def _span(start: Time, end: Time) -> Selection:
    return requests.span_of(instant_of(start, "start"), instant_of(end, "end"), "end")


def _lines(progress: Progress) -> Callable[[str], None]:
    if callable(progress):
        return progress
    return _print if progress else lambda line: None


def _print(line: str) -> None:
    sys.stderr.write(f"{visible_lines(line)}\n")
    sys.stderr.flush()
