"""Carries out decisions: actions, then the status, then events; and requeues the resource.

It is the only part of a pass that changes the cluster.
"""

import copy
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Protocol

from pydantic import JsonValue

from snaploom.errors import SnaploomError
from snaploom.models.common import Resource, ResourceStatus
from snaploom.models.kinds import AnyResource
from snaploom.models.outputdataset import OutputDatasetStatus
from snaploom.models.skippingindex import SkippingIndexStatus
from snaploom_operator import errors
from snaploom_operator.cluster.port import CONFIG_MAPS, OURS, ApiResource, Cluster, difference
from snaploom_operator.conditions import MOST_BYTES
from snaploom_operator.decision import (
    Action,
    AddFinalizer,
    Create,
    Decision,
    Delete,
    Ensure,
    EventType,
    Note,
    ObservedResource,
    Refusal,
    RemoveFinalizer,
    Unparsable,
)
from snaploom_operator.objects import (
    FINALIZER,
    LABEL_OWNER,
    LABEL_RUN,
    JsonObject,
    Metadata,
    Ref,
    about,
    mapping_in,
    ref_of,
)
from snaploom_operator.queues import LONGEST_BACKOFF, WorkQueue
from snaploom_operator.serve.metrics import Metrics, Outcome
from snaploom_operator.store.entries import parse_resource
from snaploom_operator.store.store import Store

_log = logging.getLogger(__name__)


RUN_LABELS = (LABEL_OWNER, LABEL_RUN)
"""Labels that identify the run of an object."""


async def apply(
    action: Action, owner: Resource | Unparsable, cluster: Cluster
) -> JsonObject | None:
    """Perform one action.

    Finalizers change the `resourceVersion` of the owner: a status that is written afterwards needs
    the returned one.

    Returns:
        The object as it is stored now; None if it is gone, or a finalizer needed no change.

    Raises:
        NameTaken: an object of that name belongs to another run or owner.
        ClusterError: the request failed.
    """
    ref = owner.ref if isinstance(owner, Unparsable) else Ref.to(owner)
    match action:
        case Create(resource, manifest):
            return await _create(resource, ref.namespace, manifest, cluster)
        case Ensure(manifest):
            return await _ensure(ref.namespace, manifest, cluster)
        case Delete(resource, namespace, name, uid):
            await cluster.delete(resource, namespace, name, uid=uid)
            return None
        case AddFinalizer():
            held = await _held(owner, cluster)
            return await _set_finalizers(ref, held, {*held.finalizers, FINALIZER}, cluster)
        case RemoveFinalizer():
            try:
                held = await _held(owner, cluster)
                return await _set_finalizers(ref, held, {*held.finalizers} - {FINALIZER}, cluster)
            except errors.ObjectMissing:
                return None  # already removed by a request whose answer was lost


async def _held(owner: Resource | Unparsable, cluster: Cluster) -> Metadata:
    """The current metadata; an unparsable resource is read again from the API server."""
    if isinstance(owner, Unparsable):
        ref = owner.ref
        found = Metadata.of(await cluster.get(OURS[ref.kind], ref.namespace, ref.name))
        if found.uid != owner.uid:
            raise errors.ObjectMissing(
                f"{ref} was recreated", hint="nothing: the new object is reconciled by itself"
            )
        return found
    return Metadata.of({"metadata": owner.metadata.dump()})


async def _create(
    resource: ApiResource, namespace: str, manifest: JsonObject, cluster: Cluster
) -> JsonObject:
    try:
        return await cluster.create(resource, namespace, manifest)
    except errors.ObjectExists as error:
        wanted = Metadata.of(manifest)
        found = await cluster.get(resource, namespace, wanted.name)
        held = Metadata.of(found)
        _require_owner(resource, wanted, held)
        if held.is_deleting:
            # An object that is being deleted must not be adopted. The retry finds the name free.
            raise errors.ObjectExists(
                f"{resource.kind}/{held.name} is being deleted",
                hint="nothing: it is tried again until the name is free",
            ) from error
        return found


async def _ensure(namespace: str, manifest: JsonObject, cluster: Cluster) -> JsonObject:
    wanted = Metadata.of(manifest)
    try:
        found = await cluster.get(CONFIG_MAPS, namespace, wanted.name)
    except errors.ObjectMissing:
        return await cluster.create(CONFIG_MAPS, namespace, manifest)
    held = Metadata.of(found)
    _require_owner(CONFIG_MAPS, wanted, held)
    data = difference(mapping_in(found, "data"), mapping_in(manifest, "data"))
    if not data:
        return found
    version = {"resourceVersion": held.resource_version, "uid": held.uid}
    patch: JsonObject = {"metadata": dict(version), "data": data}
    return await cluster.patch(CONFIG_MAPS, namespace, wanted.name, patch)


async def _set_finalizers(
    ref: Ref, held: Metadata, wanted: AbstractSet[str], cluster: Cluster
) -> JsonObject | None:
    """Set the finalizers; the version guards those of others, since patches replace lists."""
    if wanted == set(held.finalizers):
        return None
    ordered = [name for name in held.finalizers if name in wanted]
    ordered += sorted(wanted - set(held.finalizers))
    patch: JsonObject = {
        "metadata": {
            "resourceVersion": held.resource_version,
            "uid": held.uid,
            "finalizers": [*ordered] or None,
        }
    }
    return await cluster.patch(OURS[ref.kind], ref.namespace, ref.name, patch)


def _require_owner(resource: ApiResource, wanted: Metadata, found: Metadata) -> None:
    if all(found.labels.get(label) == wanted.labels.get(label) for label in RUN_LABELS):
        return
    raise errors.NameTaken(
        "an object of this name has another owner",
        resource=f"{resource.kind}/{wanted.name}",
        found=_shown(found.labels),
        expected=_shown(wanted.labels),
    )


def _shown(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{label}={labels.get(label, '')}" for label in RUN_LABELS)


class StoreRefresh:
    """Refreshes the store; `wake` requeues the resources that a refreshed object affects."""

    def __init__(
        self, store: Store, cluster: Cluster, wake: Callable[[Iterable[Ref]], None]
    ) -> None:
        self._store = store
        self._cluster = cluster
        self._wake = wake

    def put(self, stored: JsonObject) -> bool:
        """Add an object; True if it was new."""
        if self._store.is_known(stored):
            return False
        self._wake(self._store.put(stored))
        return True

    def claim(self, key: Ref, status: ResourceStatus) -> None:
        """Take the slot of a run that a status starts, before it is written."""
        if isinstance(status, OutputDatasetStatus | SkippingIndexStatus):
            self._wake(self._store.claim(key, status.current_run))
        else:
            self.release(key)

    def release(self, key: Ref) -> None:
        """Give a claimed slot back: the status was not written."""
        self._wake(self._store.claim(key, None))

    def remove(self, key: Ref, uid: str) -> None:
        """Remove a resource that we released."""
        self._wake(self._store.remove(key, uid))

    async def reread(self, key: Ref) -> None:
        """Read an outdated resource from the API server: its watch may be late or broken."""
        try:
            stored = await self._cluster.get(OURS[key.kind], key.namespace, key.name)
        except errors.ObjectMissing:
            self._wake(self._store.remove(key))
        except SnaploomError as error:
            _log.info("cannot refresh: %s", error.message, extra=about(key))
        else:
            self.put(stored)


@dataclass(frozen=True)
class Done:
    """The result of the actions of a pass."""

    is_news: bool = False
    """True if an action changed an object in the store."""
    has_deleted: bool = False
    owner: Resource | None = None
    """The resource, if its finalizers were changed."""
    is_gone: bool = False
    failure: SnaploomError | None = None
    """The failure of the last of them."""
    wait: float = 0.0
    """Seconds for which the actions wait, where none was performed; 0 otherwise."""


class ActionRunner:
    """Performs actions, and takes what was written into the store."""

    def __init__(self, cluster: Cluster, refresh: StoreRefresh) -> None:
        self._cluster = cluster
        self._refresh = refresh

    async def perform(
        self, key: Ref, observed: ObservedResource | Unparsable, actions: Iterable[Action]
    ) -> Done:
        """Perform actions; the first that fails ends the pass."""
        owner = observed if isinstance(observed, Unparsable) else observed.resource
        done = Done()
        for action in actions:
            try:
                stored = await apply(action, owner, self._cluster)
            except SnaploomError as error:
                return replace(done, failure=error)
            if isinstance(action, Delete):
                done = replace(done, has_deleted=True)
            if stored is None:
                continue
            is_owner = ref_of(stored) == key
            held = Metadata.of(stored)
            if is_owner and held.is_deleting and not held.finalizers:  # the API server removes it
                self._refresh.remove(key, held.uid)
                return replace(done, is_gone=True)
            done = replace(done, is_news=self._refresh.put(stored) or done.is_news)
            content = parse_resource(stored) if is_owner else None
            if isinstance(content, Resource):
                owner = content
                done = replace(done, owner=content)
        return done


SHORTEST_TEXT = 64
"""Characters below which a text is not truncated: names and times."""
KEPT = "conditions"


def cut_to_size(status: JsonObject, most: int = MOST_BYTES) -> dict[str, JsonValue]:
    """The status, truncated to some bytes of compact JSON."""
    result = copy.deepcopy(dict(status))
    while _size(result) > most and (_halve_list(result) or _halve_text(result)):
        pass
    return result


def _halve_list(status: dict[str, JsonValue]) -> bool:
    lists = [value for _, key, value in _parts(status) if isinstance(value, list) and key != KEPT]
    longest = max(lists, key=_size, default=[])
    is_shorter = bool(longest)
    del longest[len(longest) // 2 :]
    return is_shorter


def _halve_text(status: dict[str, JsonValue]) -> bool:
    texts = [part for part in _parts(status) if isinstance(part[2], str)]
    longest = max(texts, key=lambda part: _size(part[2]), default=None)
    if longest is None or len(str(longest[2])) < SHORTEST_TEXT:
        return False
    holder, key, text = longest
    holder[key] = str(text)[: len(str(text)) // 2 - 1] + "…"
    return True


def _parts(
    value: JsonValue | dict[str, JsonValue],
) -> Iterator[tuple[dict[str, JsonValue], str, JsonValue]]:
    """Every member of every mapping: the mapping, the key, the value."""
    if isinstance(value, list):
        for item in value:
            yield from _parts(item)
    elif isinstance(value, dict):
        for key, member in list(value.items()):
            yield value, key, member
            yield from _parts(member)


def _size(value: JsonValue | dict[str, JsonValue]) -> int:
    return len(
        json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(errors="surrogatepass")
    )


async def write_status(
    held: Resource | ObservedResource | Unparsable, status: ResourceStatus, cluster: Cluster
) -> JsonObject | None:
    """Write the status of a resource if it changed, truncated if it is too large; else None.

    Raises:
        ObjectChanged: the resource was changed or recreated since.
        ObjectMissing: it is gone.
    """
    wanted = cut_to_size(status.dump())
    if isinstance(held, Unparsable):
        return await _write_over_unparsable(held, wanted, cluster)
    resource = held.resource if isinstance(held, ObservedResource) else held
    assert isinstance(resource, AnyResource)  # there are no other kinds
    before = resource.status.dump() if resource.status is not None else {}
    stored: JsonObject = {"metadata": resource.metadata.dump(), "status": before}
    ref = Ref.to(resource)
    written = await _write(ref, stored, wanted, cluster)
    if resource.status is None:
        # A status that our models refuse was read as missing; remove its other fields.
        written = await _write(ref, written, wanted, cluster)
    return _if_changed(stored, written)


async def _write_over_unparsable(
    held: Unparsable, wanted: JsonObject, cluster: Cluster
) -> JsonObject | None:
    if held.status is not None and held.status.dump() == wanted:
        return None
    ref = held.ref
    stored = await cluster.get(OURS[ref.kind], ref.namespace, ref.name)
    if Metadata.of(stored).uid != held.uid:
        raise errors.ObjectChanged(
            f"{ref} was recreated", hint="nothing: the new object is reconciled by itself"
        )
    return _if_changed(stored, await _write(ref, stored, wanted, cluster))


async def _write(ref: Ref, stored: JsonObject, wanted: JsonObject, cluster: Cluster) -> JsonObject:
    patch = difference(mapping_in(stored, "status"), wanted)
    if not patch:
        return stored
    held = Metadata.of(stored)
    metadata: JsonObject = {"resourceVersion": held.resource_version, "uid": held.uid}
    body: JsonObject = {"metadata": dict(metadata), "status": patch}
    return await cluster.patch(OURS[ref.kind], ref.namespace, ref.name, body, subresource="status")


def _if_changed(before: JsonObject, after: JsonObject) -> JsonObject | None:
    """The written object; None if pruning by the schema left it unchanged."""
    is_same = Metadata.of(before).resource_version == Metadata.of(after).resource_version
    return None if is_same else after


_TRANSIENT = (errors.ApiUnavailable, errors.ObjectChanged, errors.TooManyRequests)
"""Temporary failures, which are not shown in the status."""


@dataclass(frozen=True)
class _Held:
    refusal: Refusal | None
    """None for a temporary failure."""
    generation: int
    until: float
    """Time of the loop's clock; a changed spec ends the wait earlier."""


class ActionBackoff:
    """Performs actions, unless they wait; its clock is the queue's, in monotonic seconds."""

    def __init__(
        self,
        store: Store,
        queue: WorkQueue[Ref],
        runner: ActionRunner,
        refresh: StoreRefresh,
        clock: Callable[[], float],
        metrics: Metrics,
    ) -> None:
        self._store = store
        self._queue = queue
        self._runner = runner
        self._refresh = refresh
        self._clock = clock
        self._metrics = metrics
        self._held: dict[Ref, _Held] = {}

    def refusal(self, key: Ref) -> Refusal | None:
        """The refusal of the last action; a changed spec is tried immediately."""
        held, entry = self._held.get(key), self._store.entry(key)
        if held is not None and entry is not None and held.generation != entry.generation:
            self.forget(key)
            return None
        return None if held is None else held.refusal

    async def perform(
        self, key: Ref, observed: ObservedResource | Unparsable, actions: Iterable[Action]
    ) -> Done:
        """Perform actions unless they wait; a refusal is written to the status immediately."""
        held = self._held.get(key)
        wait = 0.0 if held is None else held.until - self._clock()
        if wait > 0:
            return Done(wait=wait)
        done = await self._runner.perform(key, observed, actions)
        if done.failure is None:
            self._held.pop(key, None)  # its failures stay counted until the pass is over
        else:
            await self._hold(key, done.failure)
        return done

    def forget(self, key: Ref) -> None:
        """Forget all failures of a resource."""
        self._held.pop(key, None)
        self._queue.forget(key)

    async def retry(self, key: Ref, error: SnaploomError) -> None:
        """Requeue a resource with backoff after a pass failed."""
        await self._report(key, error, self._delay(key, error))

    async def _hold(self, key: Ref, error: SnaploomError) -> None:
        delay = self._delay(key, error)
        entry = self._store.entry(key)
        if entry is not None:
            is_shown = not isinstance(error, _TRANSIENT)
            refusal = Refusal(error.reason, error.message) if is_shown else None
            self._held[key] = _Held(refusal, entry.generation, self._clock() + delay)
            if refusal is not None:
                self._queue.add(key)
        await self._report(key, error, delay)

    async def _report(self, key: Ref, error: SnaploomError, delay: float) -> None:
        self._metrics.failed(error.reason)
        is_usual = isinstance(error, errors.ObjectChanged | errors.ObjectMissing)
        _log.log(
            logging.INFO if is_usual else logging.WARNING,
            "%s; retry in %.0f s",
            error.message,
            delay,
            extra=about(key, reason=error.reason),
        )
        if is_usual:
            await self._refresh.reread(key)

    def _delay(self, key: Ref, error: SnaploomError) -> float:
        held = self._held.get(key)
        refusal = held.refusal if held is not None else None
        is_known_to_end = refusal is not None and refusal.is_namespace_terminating
        if isinstance(error, errors.NamespaceTerminating) and not is_known_to_end:
            return 0.0  # decided anew: finalizers can be removed where nothing can be created
        if isinstance(error, errors.TooManyRequests):
            return self._queue.fail(key, error.after)
        if error.retryable:
            return self._queue.fail(key)
        self._queue.add_after(key, LONGEST_BACKOFF)
        return LONGEST_BACKOFF


DELETED_SOON = 5.0
"""Seconds until a resource whose child was deleted is reconciled again without an event."""


class Recorder(Protocol):
    """Posts events about resources."""

    async def record(self, resource: Ref, uid: str, note: Note) -> None:
        """Post one event; errors of the cluster are not raised."""


class Executor:
    """Carries out decisions."""

    def __init__(
        self,
        cluster: Cluster,
        actions: ActionBackoff,
        refresh: StoreRefresh,
        queue: WorkQueue[Ref],
        recorder: Recorder,
        metrics: Metrics,
    ) -> None:
        self._cluster = cluster
        self._actions = actions
        self._refresh = refresh
        self._queue = queue
        self._recorder = recorder
        self._metrics = metrics

    async def execute(
        self, key: Ref, observed: ObservedResource | Unparsable, decision: Decision
    ) -> Outcome:
        """Carry out the decision of one pass.

        Raises:
            ClusterError: the status was not written.
        """
        self._refresh.claim(key, decision.status)  # before anything else runs
        done = Done()
        if decision.actions:
            done = await self._actions.perform(key, observed, decision.actions)
        if done.failure is not None:
            self._refresh.release(key)
            return Outcome.FAILED
        written = None
        if not done.is_gone and decision.status != observed.status:  # most are unchanged
            written = await self._write(key, done.owner or observed, decision.status)
        if written is not None:
            self._refresh.put(written)
            self._metrics.status_changed(key, observed.status, decision.status)
        await self._report(key, observed.uid, decision)
        if not done.wait:
            self._actions.forget(key)
        return self._requeue(key, decision, done, is_status_written=written is not None)

    async def _write(
        self, key: Ref, held: Resource | ObservedResource | Unparsable, status: ResourceStatus
    ) -> JsonObject | None:
        try:
            return await write_status(held, status, self._cluster)
        except errors.ApiUnavailable:
            raise  # it may be written: what it claims stays claimed until the next pass
        except errors.ClusterError:
            self._refresh.release(key)
            raise

    async def _report(self, key: Ref, uid: str, decision: Decision) -> None:
        for note in decision.notes:
            level = logging.WARNING if note.type is EventType.WARNING else logging.INFO
            _log.log(level, "%s", note.message, extra=about(key, reason=note.reason))
            await self._recorder.record(key, uid, note)

    def _requeue(
        self, key: Ref, decision: Decision, done: Done, *, is_status_written: bool
    ) -> Outcome:
        """Requeue the resource: immediately after a step, else by the decision."""
        if done.is_gone:
            return Outcome.CHANGED
        if done.is_news or is_status_written:
            self._queue.add(key)
        elif done.has_deleted:
            # The watch event of the deletion requeues the resource; this covers a missed one.
            self._queue.add_after(key, DELETED_SOON)
        if decision.requeue_after is not None:
            self._queue.add_after(key, decision.requeue_after)
        if done.wait:
            self._queue.add_after(key, done.wait)
        is_changed = done.is_news or done.has_deleted or is_status_written
        return Outcome.CHANGED if is_changed else Outcome.UNCHANGED
