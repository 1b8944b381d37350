"""Collects the contents of pages: declarations, output folders and index states, each read once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from snaploom import ondemand
from snaploom.confidential import visible
from snaploom.errors import ArgumentInvalid, SnaploomError
from snaploom.files.objectstore import ObjectStore
from snaploom.localfiles import read_plain
from snaploom.models.common import EpochNanos
from snaploom.models.findings import Finding, InvalidDeclarations
from snaploom.models.report import Report
from snaploom.models.skippingindex import SkippingIndex
from snaploom.output import history
from snaploom.output.folder import is_unused, open_folder
from snaploom.output.state import FolderState
from snaploom.plan.plan import plan_offline
from snaploom.run.declarations import TREE_CODES, Declarations, refuse, runnable_bundles
from snaploom.run.folders import open_named
from snaploom.run.runevents import preflight_finding
from snaploom.site.outputpage import Declared, Published, output_page
from snaploom.site.pagedata import IndexState, OutputPage
from snaploom.types.schemas import Struct, parse_schema

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
) -> tuple[OutputPage, ...]:
    """The pages of declared outputs; a failure to read one is shown on its page.

    Ages are measured to the instant of `clock`; `reports` are of runs of any output.

    Raises:
        InvalidDeclarations: something beside a join tree is wrong with any of them, or none is
            named; with every finding about all of them.
    """
    refuse_undrawable(declarations, names)
    return tuple(_declared_page(declarations, name, clock, reports) for name in names)


def refuse_undrawable(declarations: Declarations, names: Sequence[str]) -> None:
    """Refuse outputs of which no page can be drawn.

    Raises:
        InvalidDeclarations: as `declared_pages`.
    """
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


def folder_page(uri: str, clock: Clock, reports: Sequence[Report] = ()) -> OutputPage:
    """The page of a folder without declarations.

    Raises:
        SnaploomError: it is not the folder of an output, or cannot be read.
    """
    store = open_named(uri)
    published = _of_state(store, open_folder(store).log.read())
    identity = published.state.identity
    name = identity.output if identity else uri
    return output_page(name, published, clock.now, is_present=clock.is_present, reports=reports)


def read_reports(paths: Iterable[Path]) -> tuple[Report, ...]:
    """Reports of runs, as `run -o json` prints them: files, or folders of them.

    Raises:
        ArgumentInvalid: a file is no Report.
    """
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
) -> OutputPage:
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
    published, failure = _published(uri)
    if failure is not None:
        findings.append(failure)
    return output_page(
        name,
        published,
        clock.now,
        is_present=clock.is_present,
        declared_as=Declared(bundle, plan),
        findings=findings,
        indexes=_indexes(declarations, name, {source.name for source in bundle.data_sources}),
        reports=reports,
    )


def _published(uri: str) -> tuple[Published, Finding | None]:
    """The contents of a folder; a failure to read it is a finding."""
    try:
        store = open_named(uri)
        if is_unused(store):
            return Published(uri), None
        return _of_state(store, open_folder(store).log.read()), None
    except SnaploomError as error:
        problem = "; ".join(part for part in (error.message, error.found) if part)
        return Published(uri, problem=problem), preflight_finding(error, error.reason)


def _of_state(store: ObjectStore, state: FolderState) -> Published:
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
    return Published(store.uri, state, schemas, models)


def _indexes(declarations: Declarations, output: str, sources: set[str]) -> tuple[IndexState, ...]:
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
    return ondemand.index_states(declarations, [one.name for one in own])


def unread_index(index: SkippingIndex, problem: str) -> IndexState:
    """An index as declared, and why its state is not shown."""
    target = index.spec.target
    return IndexState(
        index.name,
        target.output_dataset or target.data_source or "",
        tuple(
            f"{one.column or ', '.join(one.columns or ()) or one.expression} {one.type}"
            for one in index.spec.indexes
        ),
        problem=problem,
    )
