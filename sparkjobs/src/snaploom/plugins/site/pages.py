"""Pages and status of outputs: what is declared and published, each read once."""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from importlib.util import find_spec
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from snaploom.confidential import visible
from snaploom.errors import ArgumentInvalid, FolderNotWritable, SnaploomError
from snaploom.files.listed import SparkNeeded
from snaploom.files.objectstore import ObjectStore
from snaploom.installed import PackageMissing
from snaploom.localfiles import read_plain
from snaploom.models.allowances import Allowances
from snaploom.models.common import NANOS_PER_SECOND, EpochNanos
from snaploom.models.findings import TREE_CODES, Finding, InvalidDeclarations, refuse
from snaploom.models.report import Report
from snaploom.models.skippingindex import SkippingIndex
from snaploom.output import history, layout
from snaploom.output.folder import is_unused, open_folder
from snaploom.output.leaseholder import SCOPE
from snaploom.output.state import FolderState
from snaploom.plan.bundle import Bundle
from snaploom.plan.drawings import published_picture, to_svg
from snaploom.plan.plan import plan_offline
from snaploom.plan.steps import Action
from snaploom.plugins import site
from snaploom.plugins.site import drawings, pagedata
from snaploom.plugins.site.document import INDEX, site_of, write_site
from snaploom.plugins.site.outputpage import Declared, Published, output_page
from snaploom.plugins.site.sections import has_failed_last, state_of
from snaploom.plugins.site.timeline import lanes_of, timeline_svg
from snaploom.project import Pages, Status
from snaploom.project.results import html_heading, html_line
from snaploom.run.declarations import Declarations, runnable_bundles
from snaploom.run.folders import open_named
from snaploom.run.reports.writer import kept_runs
from snaploom.run.runevents import preflight_finding
from snaploom.run.weaving.preflight import PlanRequest
from snaploom.run.weaving.requests import RunOptions
from snaploom.run.weaving.runs import FilesBeforeSpark, planned_without_spark
from snaploom.sources.sourcefiles import SourceFiles
from snaploom.types.schemas import Struct, parse_schema

# Collects the contents of pages: declarations, output folders and index states, each read once.

_REPORTS = TypeAdapter(tuple[Report, ...])
MOST_REPORT_BYTES = 64 * 1024 * 1024
"""A Report of a run of 100,000 snapshots is half of it."""


@dataclass(frozen=True)
class Clock:
    """The instant to which ages are measured."""

    now: EpochNanos
    is_present: bool = True
    """Whether it is the present, and not a time that somebody asks for."""


def declared_pages(
    declarations: Declarations,
    names: Sequence[str],
    clock: Clock,
    reports: Sequence[Report] = (),
) -> tuple[pagedata.OutputPage, ...]:
    """The pages of declared outputs; a failure to read one is shown on its page.

    Ages are measured to the instant of `clock`; `reports` are of runs of any output.

    Raises:
        InvalidDeclarations: something beside a join tree is wrong with any of them, or none is
            named; with every finding about all of them.
    """
    refuse_undrawable(declarations, names)
    return tuple(_declared_page(declarations, name, clock, reports) for name in names)


def refuse_undrawable(declarations: Declarations, names: Sequence[str]) -> None:
    """Refuse outputs of which no page can be drawn."""
    if not names:
        runnable_bundles(declarations, names)  # refuses, with everything that is wrong
    found: list[Finding] = []
    for name in names:
        try:
            concerning = declarations.findings_for(declarations.bundle(name))
        except InvalidDeclarations as error:
            concerning = error.findings
        found.extend(one for one in concerning if one not in found)
    refuse(one for one in found if one.code not in TREE_CODES)


def folder_page(uri: str, clock: Clock, reports: Sequence[Report] = ()) -> pagedata.OutputPage:
    """The page of a folder without declarations."""
    store = open_named(uri)
    published = _of_state(store, open_folder(store).log.read(), clock)
    identity = published.state.identity
    name = identity.output if identity else uri
    return output_page(name, published, clock.now, is_present=clock.is_present, reports=reports)


def read_reports(paths: Iterable[Path]) -> tuple[Report, ...]:
    """Reports of runs, as `run -o json` prints them: files, or folders of them."""
    found: list[Report] = []
    for path in paths:
        files = sorted(path.glob("*.json")) if path.is_dir() else [path]
        for file in files:
            found.extend(_reports(file))
    return tuple(found)


def _reports(file: Path) -> tuple[Report, ...]:
    """The Reports of a file: one, or a list as `run --all` prints it."""
    try:
        text = read_plain(file, MOST_REPORT_BYTES)
        if len(text) > MOST_REPORT_BYTES:
            raise ValueError(f"longer than {MOST_REPORT_BYTES:,} bytes")
        if text.lstrip().startswith(b"["):
            return _REPORTS.validate_json(text)
        return (Report.model_validate_json(text),)
    except (OSError, ValueError) as error:
        first = str(error)
        if isinstance(error, ValidationError):
            first = error.errors()[0]["msg"]
        elif isinstance(error, OSError):
            first = (error.strerror or first).lower()
        raise ArgumentInvalid(
            "this is no Report of a run",
            path="--report",
            found=visible(f"{file}: {first}"[:300]),
            expected="a file that `snaploom run -o json` printed",
            hint="leave the file out, or write it anew: snaploom run OUTPUT -f FILES -o json",
        ) from error


def _declared_page(
    declarations: Declarations, name: str, clock: Clock, reports: Sequence[Report]
) -> pagedata.OutputPage:
    bundle = declarations.bundle(name)
    findings = list(declarations.findings_for(bundle))
    plan = plan_offline(bundle)
    known = {(one.code, one.resource, one.path, one.message) for one in findings}
    findings.extend(
        one
        for one in declarations.placed(plan.findings)
        if (one.code, one.resource, one.path, one.message) not in known
    )
    uri = bundle.output.spec.output_folder.folder_uri
    published, failure = _published(uri, clock)
    if failure is not None:
        findings.append(failure)
    return output_page(
        name,
        published,
        clock.now,
        is_present=clock.is_present,
        declared_as=Declared(bundle, plan),
        findings=findings,
        indexes=_indexes(declarations, name, {s.name for s in bundle.data_sources}, published),
        reports=reports,
        due=_due(bundle, declarations.allow, clock),
        columns=_columns(published),
    )


def _due(bundle: Bundle, allow: Allowances, clock: Clock) -> pagedata.Due | None:
    """The work of a run that began now; names of files are listed, and only footers are read."""
    if not clock.is_present:
        return None
    request = PlanRequest(bundle, clock.now, RunOptions(allow=allow))
    files = SourceFiles(FilesBeforeSpark(bundle.output.spec.run, allow))
    try:
        plan = planned_without_spark(request, lambda: clock.now, files, lambda: None).plan
    except SparkNeeded:
        return pagedata.Due(problem="only Spark can list the sources: see `snaploom plan`")
    except SnaploomError as error:
        return pagedata.Due(problem=": ".join(filter(None, (error.resource, error.message))))
    failing = [one for one in plan.snapshots or () if one.action is Action.FAIL]
    return pagedata.Due(
        tuple(sorted(one.time for one in plan.due)),
        failing[0].message.splitlines()[0] if failing else "",
        plan.data_findings,
    )


def _published(uri: str, clock: Clock) -> tuple[Published, Finding | None]:
    """The contents of a folder; a failure to read it is a finding."""
    try:
        store = open_named(uri)
        if is_unused(store):
            return Published(uri), None
        return _of_state(store, open_folder(store).log.read(), clock), None
    except SnaploomError as error:
        problem = "; ".join(part for part in (error.message, error.found) if part)
        return Published(uri, problem=problem), preflight_finding(error, error.reason)


def _of_state(store: ObjectStore, state: FolderState, clock: Clock) -> Published:
    documents = history.SchemaDocuments(store)
    schemas: dict[str, Struct] = {}
    for version in state.timeline:
        if version.schema_hash not in schemas:
            with suppress(SnaploomError):  # a lost document costs its columns, not the page
                text = documents.get(version.schema_hash)
                schemas[version.schema_hash] = parse_schema(text, "")
    newest = {version.model_hash: version for version in state.timeline}
    known = {model.model_hash for model in state.models if model.nodes}
    models = {
        model: history.model_of(store.uri, state, state.records.live(version))
        for model, version in newest.items()
        if model in known
    }
    return Published(
        store.uri,
        state,
        schemas,
        models,
        runs=kept_runs(store),
        running=_running(store, state, clock),
    )


def _running(store: ObjectStore, state: FolderState, clock: Clock) -> str:
    """The run that holds the lease in the folder and has renewed it; empty for none."""
    claim = state.claims.get(SCOPE)
    if claim is None or not claim.seconds or claim.run_id in state.revoked or not clock.is_present:
        return ""
    renewed = store.head(layout.CLAIM)
    last = max(claim.written_at, renewed.modified if renewed is not None else 0)
    is_held = clock.now - last < claim.seconds * NANOS_PER_SECOND
    return f"{claim.run_id}, since {pagedata.shortened(claim.written_at)}" if is_held else ""


def _indexes(
    declarations: Declarations, output: str, sources: set[str], published: Published
) -> tuple[pagedata.IndexState, ...]:
    """States of the declared indexes that are about an output, or about a source of it."""
    own = [
        resource
        for resource in declarations.resources
        if isinstance(resource, SkippingIndex)
        and (
            resource.spec.target.output_dataset == output
            or resource.spec.target.data_source in sources
        )
    ]
    if not own:
        return ()
    if find_spec("pyarrow") is None:  # as in the operator's image
        return tuple(unread_index(one, "its state needs `snaploom[data]`") for one in own)
    newest = map(published.state.records.live, published.state.timeline[-1:])
    files = [f"{published.uri}{file.path}" for record in newest for file in record.files]
    return site.index_states(declarations, [one.name for one in own], files)


def _columns(published: Published) -> tuple[pagedata.ColumnFacts, ...]:
    """Statistics of the newest snapshot's columns, where Arrow is there to read footers."""
    newest = published.state.timeline[-1:]
    try:
        facts = site.column_facts
    except (ImportError, PackageMissing):
        return ()
    if not newest:
        return ()
    record = published.state.records.live(newest[0])
    schema = published.schemas.get(record.schema_hash)
    return () if schema is None else facts(open_named(published.uri), record, schema)


def unread_index(index: SkippingIndex, problem: str) -> pagedata.IndexState:
    """An index as declared, and why its state is not shown."""
    target = index.spec.target
    return pagedata.IndexState(
        index.name,
        target.output_dataset or target.data_source or "",
        tuple(
            f"{one.column or ', '.join(one.columns or ()) or one.expression} {one.type}"
            for one in index.spec.indexes
        ),
        problem=problem,
    )


# Result of `Project.status`: the state of outputs, as the drawings of a page.


def drawn_status(
    declarations: Declarations, names: Sequence[str], now: EpochNanos, is_present: bool
) -> Status:
    """Result of `Project.status`."""
    return DrawnStatus(declared_pages(declarations, names, Clock(now, is_present)), now)


@dataclass(frozen=True)
class DrawnStatus(Status):
    """The state of outputs as text and as drawings."""

    outputs: tuple[pagedata.OutputPage, ...]
    """State of each, in the order of the declarations."""
    now: EpochNanos
    """The instant to which ages are measured."""

    @property
    def is_ok(self) -> bool:
        return not any(page.problem or page.errors or page.is_stale for page in self.outputs)

    def __str__(self) -> str:
        return "\n\n".join(map(_text, self.outputs)) or "no output is declared"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(map(_html, self.outputs)) or html_line("no output is declared")


def _text(page: pagedata.OutputPage) -> str:
    parts = [f"{page.name}: {_about(page)}"]
    if page.nodes:
        parts.append(drawings.tree_drawing(page.nodes))
    parts += [drawings.timeline_drawing(lanes_of(page), drawings.WIDEST), _doubts(page)]
    parts += [line for finding in page.data_findings for line in finding.lines]
    return "\n".join(filter(None, parts))


def _html(page: pagedata.OutputPage) -> str:
    parts = [html_heading(page.name), html_line(_about(page))]
    if page.nodes:
        joins = pagedata.counted(len(page.nodes) - 1, "join")
        model = drawings.model_of_nodes(f"OutputDataset/{page.name}", joins, page.nodes)
        parts.append(to_svg(published_picture(model)))
    parts.append(timeline_svg(lanes_of(page)))
    parts += map(html_line, filter(None, (_doubts(page), *page.data_findings)))
    return "".join(parts)


def _about(page: pagedata.OutputPage) -> str:
    parts = [state_of(page)[0]]
    newest, published = page.newest, page.freshness.published
    if newest is not None:
        parts.append(
            f"newest snapshot {pagedata.shortened(newest.time)} "
            f"with {pagedata.counted(newest.rows, 'row')}, "
            f"{pagedata.counted(len(newest.files), 'file')}, "
            f"{pagedata.size(pagedata.size_of(newest))}"
        )
    if published is not None:
        parts.append(f"published {pagedata.span(page.now - published)} ago")
    due = page.due or pagedata.Due()
    if due.problem or (due.times and " due" not in parts[0]):
        parts.append(due.problem or f"{len(due.times):,} due")
    if has_failed_last(page):
        parts.append(page.runs[0].message.partition("\n")[0])
    return "; ".join(filter(None, (*parts, drawings.staleness(page))))


def _doubts(page: pagedata.OutputPage) -> str:
    warnings = len(page.findings) - page.errors
    counts = ((page.errors, "error"), (warnings, "warning"))
    found = ", ".join(pagedata.counted(count, noun) for count, noun in counts if count)
    return ": ".join(filter(None, (found, page.problem)))


# Result of `Project.page`: pages of outputs, for a notebook or a folder.

_HEIGHT = 720
"""Pixels of a page in a notebook, which scrolls."""


def drawn_pages(
    declarations: Declarations, names: Sequence[str], now: EpochNanos, is_present: bool
) -> Pages:
    """Result of `Project.page`."""
    return DrawnPages(declared_pages(declarations, names, Clock(now, is_present)), now)


@dataclass(frozen=True)
class DrawnPages(Pages):
    """The state of outputs as documents."""

    outputs: tuple[pagedata.OutputPage, ...]
    now: EpochNanos
    """The instant to which ages are measured."""

    @property
    def html(self) -> str:
        return site_of(self.outputs, self.now)[INDEX]

    def save(self, folder: str | os.PathLike[str]) -> tuple[Path, ...]:
        try:
            return write_site(Path(folder), site_of(self.outputs, self.now))
        except OSError as error:
            raise FolderNotWritable(
                "this folder cannot be written",
                found=f"{error.strerror or error} at {error.filename or folder}",
                expected="a folder that this process may write to, with room for the files",
                hint="name another one, or check permissions and free space",
            ) from error

    def __str__(self) -> str:
        names = ", ".join(page.name for page in self.outputs)
        return f"<Pages: {names or 'no output is declared'}>"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Each page in a frame of its own: its script reaches nothing of the notebook."""
        return "".join(
            f'<iframe title="{escape(page.name)}" sandbox="allow-scripts" width="100%" '
            f'height="{_HEIGHT}" style="border:0" '
            f'srcdoc="{escape(site_of((page,), self.now)[INDEX])}"></iframe>'
            for page in self.outputs
        )
