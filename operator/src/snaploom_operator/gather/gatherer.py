"""Builds the observation of one resource from the store, and checks its declarations."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from heapq import nsmallest
from itertools import islice
from typing import NamedTuple

from pydantic import JsonValue

from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.common import EpochNanos, Resource
from snaploom.models.datarelationship import DataRelationship
from snaploom.models.datasource import DataSource, LastSeen, UsedBy
from snaploom.models.fieldtransformer import FieldTransformer, MetadataApplicator
from snaploom.models.findings import Finding, Severity, errors_of
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.skippingindex import SkippingIndex
from snaploom.plan.bundle import Bundle
from snaploom.plan.bundles import bundle_for
from snaploom.plan.plan import RunPlan, plan_offline
from snaploom.policy.addresses import job_rules
from snaploom.policy.references import NamesOfKind, no_names
from snaploom.policy.secretdetection import SECRET_CODE, secret_findings
from snaploom.policy.verdicts import TextJudge
from snaploom.sources.registry import declared
from snaploom.validate.outputs import dependence_findings, overlap_findings, upstream_outputs
from snaploom.validate.skippingindex import server_findings
from snaploom.validate.validator import validate
from snaploom_operator import decision
from snaploom_operator.objects import Application, DriverPod, QuotaRequest, Ref, known_instant
from snaploom_operator.store.entries import Entry, newer
from snaploom_operator.store.store import Store
from snaploom_operator.verdicts import RecordingJudge, TextVerdicts

KEPT = 100
"""Cached checks with a Bundle: more than are observed repeatedly at one time, and some megabytes.
Checks without one are small and cached for every resource, which is observed again right after its
status was written."""
AT_ONCE = 40
"""Resources that are checked in one turn of a thread: about 20 ms for ordinary ones."""
SMALL = 5_000
"""Size of a resource and all it refers to (`Entry.size`) up to which it is checked at once, in a
millisecond: a thread would wait longer for Python's lock. Most sources and relationships are
smaller; outputs, whose join trees are planned, are not."""
USERS_NAMED = 20

_Judged = dict[Ref, tuple[tuple[Finding, ...], bool]]
"""By resource: its own findings, and whether all its verdicts were known."""


class _Kept(NamedTuple):
    basis: int
    """Hash of its inputs."""
    checked: Checked


@dataclass(frozen=True)
class Unjudged:
    """Verdicts of a resource are pending, or it changed during its check; it is requeued."""


class Gatherer:
    """Observes resources; `wake` requeues one once its verdicts are known."""

    def __init__(
        self,
        store: Store,
        clock: Callable[[], EpochNanos],
        verdicts: TextVerdicts,
        wake: Callable[[Ref], None],
        refusal: Callable[[Ref], decision.Refusal | None] = lambda ref: None,
        *,
        allow_jdbc_url: bool = False,
        allow: Allowances = NO_ALLOWANCES,
    ) -> None:
        self._store = store
        self._clock = clock
        self._pending = PendingVerdicts(verdicts, wake)
        self._wake = wake
        self._refusal = refusal
        self._own_findings = partial(own_findings, allow_jdbc_url=allow_jdbc_url, allow=allow)
        self._kept: dict[Ref, _Kept] = {}
        self._large: OrderedDict[Ref, None] = OrderedDict()
        """Those with a Bundle, least recently used first."""
        self._own: dict[Ref, tuple[int, tuple[Finding, ...]]] = {}
        """By resource: the hash of its inputs, and its own findings."""
        self._bases: dict[Ref, tuple[int, int]] = {}
        """By resource: `Store.declared_changes` of its namespace, and the hash of its inputs."""

    async def observe(
        self, ref: Ref
    ) -> decision.ObservedResource | decision.Unparsable | Unjudged | None:
        """The observation of one resource; None if it is deleted.

        Raises:
            TextNotJudged: a text of it could not be analysed.
        """
        refusal = self._refusal(ref)
        entry = self._store.entry(ref)
        if entry is None:
            self._forget(ref)
            return None
        if isinstance(entry.content, decision.Unparsable):
            outdated = self._store.outdated.get(ref.kind, "")
            return replace(entry.content, now=self._clock(), outdated=outdated)
        checked = await self._checked(entry, entry.content)
        if isinstance(checked, Unjudged):
            return checked
        return self._observed(entry, entry.content, checked, refusal)

    async def close(self) -> None:
        """Cancel pending verdicts."""
        await self._pending.close()

    def _forget(self, ref: Ref) -> None:
        self._kept.pop(ref, None)
        self._large.pop(ref, None)
        self._own.pop(ref, None)
        self._bases.pop(ref, None)
        self._pending.forget(ref)

    def _keep(self, ref: Ref, kept: _Kept) -> None:
        self._kept[ref] = kept
        self._large.pop(ref, None)
        if kept.checked.bundle is not None:
            self._large[ref] = None
        if len(self._large) > KEPT:
            oldest, _ = self._large.popitem(last=False)
            del self._kept[oldest]

    async def _checked(self, entry: Entry, resource: Resource) -> Checked | Unjudged:
        """Check the declarations.

        Large ones are checked in threads: a resource may have a megabyte and hundreds of
        references.
        """
        basis = self._basis(entry, resource)
        kept = self._kept.get(entry.ref)
        if kept is not None and kept.basis == basis:
            self._keep(entry.ref, kept)
            return kept.checked
        if self._pending.is_under_way(entry.ref):
            return Unjudged()
        judge = self._pending.judge(entry.ref, basis)
        context = self._context(entry, resource)
        faulty = await self._with_faults(self._store.needed(entry.ref), judge)
        findings = (await self._findings([entry], judge))[entry.ref]
        if judge.missing:
            self._pending.begin(entry.ref)
            return Unjudged()
        if is_runnable(resource, findings, faulty):
            checked = await asyncio.to_thread(check, context, findings)
        else:
            checked = Checked(findings, faulty)
        is_current = self._store.entry(entry.ref) is entry
        if not is_current or self._basis(entry, resource) != basis:
            # Requeue, so that a constantly changing resource does not occupy a worker.
            self._wake(entry.ref)
            return Unjudged()
        self._pending.forget(entry.ref)
        self._keep(entry.ref, _Kept(basis, checked))
        return checked

    def _basis(self, entry: Entry, resource: Resource) -> int:
        """The hash of the inputs of a check, computed anew where declarations changed."""
        changes = self._store.declared_changes[entry.ref.namespace]
        known = self._bases.get(entry.ref)
        if known is None or known[0] != changes:
            basis = hash(self._context(entry, resource).basis)
            known = self._bases[entry.ref] = changes, basis
        return known[1]

    async def _with_faults(
        self, members: Iterable[Entry], judge: RecordingJudge
    ) -> tuple[str, ...]:
        """`Kind/name` of the members with errors of their own, which are checked in batches."""
        faulty: list[str] = []
        waiting = iter(members)
        while some := tuple(islice(waiting, AT_ONCE)):
            found = await self._findings(some, judge)
            sound = {ref for ref, findings in found.items() if not errors_of(findings)}
            faulty.extend(each.ref.identity for each in some if each.ref not in sound)
        return tuple(faulty)

    async def _findings(
        self, entries: Iterable[Entry], judge: RecordingJudge
    ) -> dict[Ref, tuple[Finding, ...]]:
        """Findings about readable resources themselves, cached unless a verdict is missing."""
        found: dict[Ref, tuple[Finding, ...]] = {}
        new: dict[Ref, tuple[Entry, int, ResourceContext]] = {}
        for entry in entries:
            if isinstance(entry.content, decision.Unparsable):
                continue
            basis, own = self._basis(entry, entry.content), self._own.get(entry.ref)
            if own is not None and own[0] == basis:
                found[entry.ref] = own[1]
            else:
                new[entry.ref] = entry, basis, self._context(entry, entry.content)
        contexts = {ref: context for ref, (_, _, context) in new.items()}
        size = sum(member.size for each in contexts.values() for member in each.closure)
        if size <= SMALL:  # a thread would take longer to begin
            judged = self._judged(contexts, judge)
        else:
            judged = await asyncio.to_thread(self._judged, contexts, judge)
        for ref, (entry, basis, _) in new.items():
            found[ref], is_whole = judged[ref]
            if is_whole and self._store.entry(ref) is entry:
                self._own[ref] = basis, found[ref]
        return found

    def _judged(self, contexts: Mapping[Ref, ResourceContext], judge: RecordingJudge) -> _Judged:
        found = {}
        for ref, context in contexts.items():
            placeholders = judge.placeholders
            findings = self._own_findings(context, judge_text=judge)
            found[ref] = findings, judge.placeholders == placeholders
        return found

    def _context(self, entry: Entry, resource: Resource) -> ResourceContext:
        closure = self._store.closure(entry.ref)
        others = partial(self._store.names, entry.ref.namespace)
        changes = self._store.name_changes(entry)
        if not isinstance(resource, OutputDataset):
            return ResourceContext(resource, closure, others=others, name_changes=changes)
        upstream, sources = self._store.upstream(resource)
        overlapping = self._store.overlapping(resource)
        return ResourceContext(resource, closure, overlapping, upstream, sources, others, changes)

    def _observed(
        self, entry: Entry, resource: Resource, checked: Checked, refusal: decision.Refusal | None
    ) -> decision.ObservedResource:
        now, users = self._clock(), self._store.referrers(entry.ref)
        names = tuple(user.identity for user in nsmallest(USERS_NAMED, users))
        used_by = UsedBy(count=len(users), names=names)
        findings, faulty = checked.findings, checked.faulty or self._incomplete(entry.ref)
        outdated = self._store.outdated.get(entry.ref.kind, "")
        if not isinstance(resource, OutputDataset | SkippingIndex):
            seen = self._last_seen(entry.ref, resource)
            return decision.ObservedResource(
                now, resource, findings, faulty, used_by, seen, refusal, outdated
            )
        if isinstance(resource, OutputDataset):
            outputs = self._upstream(checked)
            observed: decision.ObservedRunnable = decision.ObservedOutput(
                now, resource, findings, faulty, used_by, plan=checked.plan
            )
        else:
            outputs = self._indexed(resource)
            overdue = any(_is_overdue(resource, output) for output in outputs)
            observed = decision.ObservedIndex(
                now, resource, findings, faulty, used_by, is_overdue=overdue
            )
        return replace(
            observed,
            refusal=refusal,
            outdated=outdated,
            runs=self._runs(entry, refusal),
            bundle=checked.bundle,
            declarations=checked.declarations,
            upstream=_progress(outputs),
            unpublished=tuple(sorted(each.name for each in outputs if _sequence(each) is None)),
        )

    def _incomplete(self, ref: Ref) -> tuple[str, ...]:
        """`Kind/name` of resources that it needs and that the API server may have cut."""
        outdated = self._store.outdated
        if not outdated:
            return ()
        members = self._store.needed(ref)
        return tuple(sorted(each.ref.identity for each in members if each.ref.kind in outdated))

    def _last_seen(self, ref: Ref, resource: Resource) -> LastSeen | None:
        if not isinstance(resource, DataSource):
            return None
        kept = resource.status.last_seen if resource.status is not None else None
        found = self._store.last_seen(ref)
        return found if found is not None and newer(found, kept) else kept

    def _upstream(self, checked: Checked) -> tuple[OutputDataset, ...]:
        if checked.bundle is None:
            return ()
        candidates = self._store.outputs_read_by(checked.bundle.data_sources)
        return upstream_outputs(checked.bundle, candidates)

    def _indexed(self, index: SkippingIndex) -> tuple[OutputDataset, ...]:
        name = index.spec.target.output_dataset
        ref = Ref(OutputDataset.__name__, index.metadata.namespace or "", name or "")
        found = self._store.get(ref)
        return (found,) if isinstance(found, OutputDataset) else ()

    def _runs(self, entry: Entry, refusal: decision.Refusal | None) -> decision.ObservedRuns:
        children = [
            child
            for child in self._store.children(entry.uid)
            if child.ref.namespace == entry.ref.namespace
        ]
        applications = [c.view for c in children if isinstance(c.view, Application)]
        applications.sort(key=lambda each: (each.started_at, each.name), reverse=True)
        config_maps = [c.view for c in children if isinstance(c.view, decision.OwnedConfigMap)]
        # Without permission to watch Namespaces only a refused write shows a terminating one.
        was_refused = refusal is not None and refusal.is_namespace_terminating
        namespace = entry.ref.namespace
        return decision.ObservedRuns(
            applications=tuple(applications),
            reports={c.run: c.report for c in children if c.report is not None},
            config_maps=tuple(sorted(config_maps, key=lambda each: each.name)),
            driver_pods={c.run: c.view for c in children if isinstance(c.view, DriverPod)},
            quota={
                c.run: c.view.message
                for c in children
                if isinstance(c.view, QuotaRequest) and c.view.message
            },
            queue=self._store.queue.place_of(entry.ref),
            available=self._store.available,
            is_namespace_terminating=was_refused or namespace in self._store.terminating,
        )


def _sequence(output: OutputDataset) -> int | None:
    manifest = output.status.manifest if output.status is not None else None
    return None if manifest is None else manifest.sequence


def _progress(outputs: Iterable[OutputDataset]) -> str:
    """Hash over the manifest sequences of outputs; empty for none.

    Empty as well while one of them is unknown: it has not published yet, or its status was lost.
    Once the sequence is restored, the hash is the same as before.
    """
    progress = sorted([output.name, _sequence(output)] for output in outputs)
    is_known = all(sequence is not None for _, sequence in progress)
    return (
        hashlib.sha256(json.dumps(progress).encode()).hexdigest() if progress and is_known else ""
    )


def _is_overdue(index: SkippingIndex, output: OutputDataset) -> bool:
    latest = output.status.latest_snapshot if output.status is not None else None
    refreshed = known_instant(index.status.last_refreshed if index.status is not None else None)
    published = known_instant(latest.published_at if latest is not None else None)
    return refreshed is not None and published is not None and published > refreshed


def cluster_findings(
    resource: Resource,
    validated: Iterable[Finding] | None = None,
    *,
    allow_jdbc_url: bool = False,
    allow: Allowances = NO_ALLOWANCES,
) -> tuple[Finding, ...]:
    """An error for everything in a resource that this cluster does not accept.

    `validated` are its findings of `validate`, secrets included; None if it was not validated.
    """
    if validated is None:
        validated = secret_findings(resource)
    secrets = _as_errors(each for each in validated if each.code == SECRET_CODE)
    if isinstance(resource, SkippingIndex):
        return (*server_findings(resource, job_rules(allow)), *secrets)
    if not isinstance(resource, DataSource):
        return secrets
    of_kind = declared(resource).cluster_findings(allow_jdbc_url=allow_jdbc_url)
    return (*_as_errors(of_kind), *secrets)


def _as_errors(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(each.model_copy(update={"severity": Severity.ERROR}) for each in findings)


Declared = DataSource | DataRelationship | MetadataApplicator | FieldTransformer


def declarations_hash(bundle: Bundle) -> str:
    """SHA-256 in hexadecimal."""
    indexed = bundle.indexed_output
    members: tuple[Declared, ...] = (
        *bundle.data_sources,
        *bundle.data_relationships,
        *bundle.metadata_applicators,
        *bundle.field_transformers,
    )
    parts: list[JsonValue] = [
        _without_run(bundle.runnable),
        None if indexed is None else indexed.spec.output_folder.dump(),
        [[member.identity, member.spec.dump()] for member in members],
    ]
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _without_run(resource: OutputDataset | SkippingIndex) -> JsonValue:
    """Its spec, with only those fields of `run` that change the result."""
    spec = resource.spec.dump()
    spec.pop("run", None)
    run = resource.spec.run
    return [resource.identity, spec, run.accept_root_change, run.adopt_folder]


Basis = tuple[tuple[Ref, str, int] | int, ...]
"""Key, UID and generation of all inputs of a check, and `ResourceContext.name_changes`."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of checking declarations."""

    findings: tuple[Finding, ...]
    faulty: tuple[str, ...]
    """`Kind/name` of invalid references."""
    bundle: Bundle | None = None
    """None unless it is runnable, and all references exist and are valid."""
    plan: RunPlan | None = None
    """Plan of an output with a bundle."""
    declarations: str = ""
    """Hash; empty without a bundle."""


@dataclass(frozen=True)
class ResourceContext:
    """One resource with all declarations that its check reads."""

    resource: Resource
    closure: tuple[Entry, ...]
    """The resource and its transitive references."""
    neighbours: tuple[OutputDataset, ...] = ()
    """Outputs whose folder may overlap with its own."""
    upstream: tuple[OutputDataset, ...] = ()
    """Outputs whose files it may read, directly or not; itself in a cycle."""
    upstream_sources: tuple[DataSource, ...] = ()
    """The sources of those outputs."""
    others: NamesOfKind = no_names
    """Names of the namespace by kind, for suggestions about misspelt references."""
    name_changes: int = 0
    """Differs when the names differ that a missing reference is compared with."""

    @property
    def basis(self) -> Basis:
        """The inputs of `check`; equal inputs have equal results."""
        others = (*self.neighbours, *self.upstream, *self.upstream_sources)
        return (
            self.name_changes,
            *((entry.ref, entry.uid, entry.generation) for entry in self.closure),
            *((Ref.to(r), r.metadata.uid or "", r.metadata.generation or 0) for r in others),
        )


def own_findings(
    context: ResourceContext,
    *,
    judge_text: TextJudge,
    allow_jdbc_url: bool = False,
    allow: Allowances = NO_ALLOWANCES,
) -> tuple[Finding, ...]:
    """Errors and warnings about one resource itself."""
    contents = [entry.content for entry in context.closure]
    known = [content for content in contents if isinstance(content, Resource)]
    refused = frozenset(c.ref.identity for c in contents if isinstance(c, decision.Unparsable))
    resource, about = context.resource, {context.resource.identity}
    found = [
        *validate(
            known,
            broken=refused,
            missing_reference=Severity.ERROR,
            about=about,
            allow=allow,
            judge_text=judge_text,
            others=context.others,
        ),
        *_folder_findings(context),
    ]
    strict = cluster_findings(resource, found, allow_jdbc_url=allow_jdbc_url, allow=allow)
    replaced = {(finding.code, finding.path) for finding in strict}
    kept = (finding for finding in found if (finding.code, finding.path) not in replaced)
    return (*strict, *kept)


def _folder_findings(context: ResourceContext) -> tuple[Finding, ...]:
    """Findings about folders: overlapping outputs, and outputs that read their own publications."""
    output = context.resource
    if not isinstance(output, OutputDataset):
        return ()
    others = (each for each in context.neighbours if each.name != output.name)
    overlaps = overlap_findings((output, *others))
    found = tuple(finding for finding in overlaps if finding.resource == output.identity)
    upstream = {each.name: each for each in (*context.upstream, output)}
    own = (entry.content for entry in context.closure)
    sources = {s.name: s for s in (*context.upstream_sources, *own) if isinstance(s, DataSource)}
    return (*found, *dependence_findings((output,), upstream, sources))


def is_runnable(resource: Resource, findings: tuple[Finding, ...], faulty: tuple[str, ...]) -> bool:
    """Return whether a resource is of a kind with runs, and valid with all that it needs."""
    is_of_kind = isinstance(resource, OutputDataset | SkippingIndex)
    return is_of_kind and not faulty and not errors_of(findings)


def check(context: ResourceContext, findings: tuple[Finding, ...]) -> Checked:
    """Bundle and plan one resource that `is_runnable`."""
    resource = context.resource
    contents = (entry.content for entry in context.closure)
    known = (content for content in contents if isinstance(content, Resource))
    bundle = bundle_for(resource.kind, resource.name, known)
    plan = plan_offline(bundle) if isinstance(resource, OutputDataset) else None
    return Checked(findings, (), bundle, plan, declarations_hash(bundle))


class PendingVerdicts:
    """Pending verdicts by resource; `wake` requeues one when its verdicts are known."""

    def __init__(self, verdicts: TextVerdicts, wake: Callable[[Ref], None]) -> None:
        self._verdicts = verdicts
        self._wake = wake
        self._asked: dict[Ref, tuple[int, RecordingJudge]] = {}
        """By resource: the hash of its inputs, and its judge with its verdicts. It is kept until
        the resource is checked or changes: the shared cache may be too small for all of its
        texts."""
        self._under_way: dict[Ref, asyncio.Task[None]] = {}
        self._failures: dict[Ref, Exception] = {}

    def is_under_way(self, ref: Ref) -> bool:
        """Return whether verdicts of a resource are being computed."""
        return ref in self._under_way

    def judge(self, ref: Ref, basis: int) -> RecordingJudge:
        """The judge for one check of a resource with some hash of its inputs.

        Raises:
            TextNotJudged: its last missing verdicts could not be computed.
        """
        failure = self._failures.pop(ref, None)
        if failure is not None:
            raise failure
        kept = self._asked.get(ref)
        if kept is None or kept[0] != basis:
            kept = self._asked[ref] = basis, RecordingJudge(self._verdicts)
        return kept[1]

    def begin(self, ref: Ref) -> None:
        """Compute the verdicts that the last check of a resource was missing."""
        self._under_way[ref] = asyncio.create_task(self._fetch(ref, self._asked[ref][1]))

    def forget(self, ref: Ref) -> None:
        """Drop the state of a resource that is checked or deleted."""
        self._asked.pop(ref, None)
        self._failures.pop(ref, None)
        task = self._under_way.pop(ref, None)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        tasks = tuple(self._under_way.values())
        for ref in tuple(self._under_way):
            self.forget(ref)
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _fetch(self, ref: Ref, asked: RecordingJudge) -> None:
        try:
            await asked.fetch_missing(ref.namespace)
        except Exception as error:  # noqa: BLE001 - the next check of the resource raises it
            self._failures[ref] = error
        self._under_way.pop(ref, None)
        self._wake(ref)
