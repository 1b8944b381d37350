"""A cluster in memory behind the operator's port, which behaves as an API server does.

It is what most tests of the operator run on: what it has in common with a real one is what
`tests/controller/cluster/test_port.py` proves of both. Owned objects are collected, and terminating
namespaces emptied, within the call that is their cause.
"""

from __future__ import annotations

import itertools
import json
import re
import uuid
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any

from snaploom.models.common import EpochNanos, format_instant, now
from snaploom.models.kinds import KINDS
from snaploom.models.schemas import crd
from snaploom_operator.cluster import port as kinds
from snaploom_operator.cluster.port import CONFIG_MAPS, EVENTS, ApiResource, Listing, Page
from snaploom_operator.errors import (
    NamespaceTerminating,
    ObjectChanged,
    ObjectExists,
    ObjectMissing,
    ObjectRefused,
    ResourceUnknown,
)
from snaploom_operator.objects import JsonObject

_SUBDOMAIN = re.compile(r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$")
_LABEL_VALUE = re.compile(r"^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$")
_QUALIFIED = re.compile(r"^([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$")
_MICROSECONDS = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")
LARGEST_CONFIG_MAP = 1024 * 1024
"""Bytes of all data together."""
LARGEST_ANNOTATIONS = 262_144
"""Bytes of all annotations together."""


def refuse_wrong(resource: ApiResource, new: Raw, old: Raw | None) -> None:
    """Refuse an object that would not be stored.

    Raises:
        ObjectRefused: with the first fault.
    """
    metadata = new["metadata"]
    if (new.get("apiVersion"), new.get("kind")) != (resource.api_version, resource.kind):
        _refuse(f"is a {new.get('apiVersion')} {new.get('kind')}")
    if not _SUBDOMAIN.match(metadata.get("name", "")):
        _refuse(f"metadata.name: Invalid value: {metadata.get('name', '')!r}")
    _refuse_texts(metadata.get("labels"), "labels")
    _refuse_texts(metadata.get("annotations"), "annotations")
    for key, value in (metadata.get("labels") or {}).items():
        if not _LABEL_VALUE.match(value):
            _refuse(f"metadata.labels: Invalid value: {key}: {value!r}")
    annotations = metadata.get("annotations") or {}
    if sum(len(key) + len(value) for key, value in annotations.items()) > LARGEST_ANNOTATIONS:
        _refuse("metadata.annotations: Too long: may not be more than 262144 bytes")
    for owner in metadata.get("ownerReferences") or ():
        if not all(owner.get(key) for key in ("apiVersion", "kind", "name", "uid")):
            _refuse(f"metadata.ownerReferences: Required value: in {owner}")
    if resource == CONFIG_MAPS:
        _refuse_config_map(new, old)
    if resource == EVENTS:
        _refuse_event(new, old)


def _refuse_texts(values: Any, name: str) -> None:
    for key, value in (values or {}).items():
        if not _QUALIFIED.match(key):
            _refuse(f"metadata.{name}: Invalid value: {key!r}")
        if not isinstance(value, str):
            _refuse(f"metadata.{name}.{key}: expected string, got {value!r}")


def _refuse_config_map(new: Raw, old: Raw | None) -> None:
    data = new.get("data") or {}
    _refuse_texts({key: value for key, value in data.items() if "/" not in key}, "data")
    if sum(len(value.encode()) for value in data.values()) > LARGEST_CONFIG_MAP:
        _refuse("Too long: may not be more than 1048576 bytes")
    if old is not None and old.get("immutable") and data != (old.get("data") or {}):
        _refuse("data: Forbidden: field is immutable when `immutable` is set")


_EVENT_LIMITS = {
    "reason": 128,
    "action": 128,
    "reportingInstance": 128,
    "reportingController": 128,
    "note": 1024,
}
_EVENT_FIXED = (
    "eventTime", "reportingController", "reportingInstance", "action", "reason", "regarding",
    "related", "note", "type",
)  # fmt: skip


def _refuse_event(new: Raw, old: Raw | None) -> None:
    for field, limit in _EVENT_LIMITS.items():
        value = new.get(field, "")
        if not value and field != "note":
            _refuse(f"{field}: Required value")
        if len(value.encode()) > limit:
            _refuse(f"{field}: Invalid value: can have at most {limit} characters")
    if not _QUALIFIED.match(new["reportingController"]):
        _refuse("reportingController: Invalid value")
    if new.get("type") not in ("Normal", "Warning"):
        _refuse(f"type: Invalid value: {new.get('type')!r}")
    if not _MICROSECONDS.match(new.get("eventTime", "")):
        _refuse("eventTime: Required value")
    if (series := new.get("series")) is not None:
        if series.get("count", 0) < 2:
            _refuse("series.count: Invalid value: should be at least 2")
        if not _MICROSECONDS.match(series.get("lastObservedTime", "")):
            _refuse("series.lastObservedTime: Required value")
    # What is about something in no namespace is kept in `default`.
    if new.get("regarding", {}).get("namespace", "default") != new["metadata"].get("namespace", ""):
        _refuse("regarding.namespace: Invalid value: does not match event.namespace")
    for field in _EVENT_FIXED:
        if old is not None and old.get(field) != new.get(field):
            _refuse(f"{field}: Invalid value: field is immutable")


def _refuse(message: str) -> None:
    raise ObjectRefused(message)


Labels = Mapping[str, str]
Test = Callable[[Labels], bool]

_SET = re.compile(r"^(?P<key>[\w./-]+)\s+(?P<how>in|notin)\s*\((?P<values>[^)]*)\)$")
_EQUAL = re.compile(r"^(?P<key>[\w./-]+)\s*(?P<how>=|==|!=)\s*(?P<value>[\w.-]*)$")
_EXISTS = re.compile(r"^(?P<not>!?)(?P<key>[\w./-]+)$")


def selects(selector: str) -> Test:
    """Whether labels satisfy every requirement of a selector.

    Raises:
        ValueError: it is none.
    """
    tests = [_requirement(part.strip()) for part in _parts(selector)]
    return lambda labels: all(test(labels) for test in tests)


def _parts(selector: str) -> list[str]:
    return re.split(r",(?![^(]*\))", selector) if selector else []


def _requirement(text: str) -> Test:
    if match := _SET.match(text):
        key, values = match["key"], {value.strip() for value in match["values"].split(",")}
        if match["how"] == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if match := _EQUAL.match(text):
        key, value = match["key"], match["value"]
        if match["how"] == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    if match := _EXISTS.match(text):
        key, is_wanted = match["key"], not match["not"]
        return lambda labels: (key in labels) == is_wanted
    raise ValueError(f"no label selector: {text}")


Raw = dict[str, Any]

PAGE = 2
"""Objects of a page."""
CLUSTER_WIDE = (kinds.NAMESPACES, kinds.VALIDATING_WEBHOOKS)
BUILT_IN = (
    kinds.CONFIG_MAPS,
    kinds.EVENTS,
    kinds.LEASES,
    kinds.NAMESPACES,
    kinds.PODS,
    kinds.SECRETS,
    kinds.VALIDATING_WEBHOOKS,
)
CUSTOM = (
    *kinds.OURS.values(),
    kinds.SPARK_APPLICATIONS,
    kinds.APACHE_SPARK_APPLICATIONS,
)
WITH_STATUS = (*CUSTOM, kinds.PODS, kinds.NAMESPACES)
"""Their status is written by `subresource="status"` only."""
WITH_GENERATION = (*CUSTOM, kinds.VALIDATING_WEBHOOKS)
_KEPT = ("uid", "creationTimestamp", "deletionTimestamp", "generation", "namespace", "name")
"""Metadata that no write changes."""


class ChangeType(StrEnum):
    """The type of a change, as watches name it."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


@cache
def served_schemas() -> dict[str, Raw]:
    """Schemas of our kinds as an API server has them that was given our CRDs."""
    crds: dict[str, Any] = {kind.name: crd(kind) for kind in KINDS}
    return {
        name: made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        for name, made in crds.items()
    }


@dataclass(frozen=True)
class Change:
    """A change of an object, as a watch reports it."""

    type: ChangeType
    object: Raw


Subscriber = Callable[[ApiResource, Change], None]


class FakeCluster:
    """A cluster in memory.

    Args:
        namespaces: those that are there from the beginning.
        resources: the kinds that it has; leave some out to be without their CRDs.
        clock: time for `creationTimestamp`.
    """

    def __init__(
        self,
        namespaces: Iterable[str] = ("default",),
        resources: Iterable[ApiResource] = (*BUILT_IN, *CUSTOM),
        clock: Callable[[], EpochNanos] = now,
    ) -> None:
        self.clock = clock
        self._objects: dict[ApiResource, dict[tuple[str, str], Raw]] = {r: {} for r in resources}
        self._versions = itertools.count(1)
        self._version = 0
        self._uids: set[str] = set()
        self._owner_uids: set[str] = set()
        self._subscribers: list[Subscriber] = []
        for name in namespaces:
            self.add_namespace(name)

    # What tests ask and do besides

    def all(self, resource: ApiResource) -> list[Raw]:
        """Every object of a kind, by namespace and name."""
        stored = self._kind(resource)
        return [_copy(stored[key]) for key in sorted(stored)]

    def add_namespace(self, name: str) -> None:
        self._create(kinds.NAMESPACES, "", _bare(kinds.NAMESPACES, name))

    def remove_kind(self, resource: ApiResource) -> None:
        """Delete its CRD, and all its objects with it."""
        for uid in [raw["metadata"]["uid"] for raw in self._objects.pop(resource).values()]:
            self._uids.remove(uid)
        self._collect()

    def add_kind(self, resource: ApiResource) -> None:
        self._objects.setdefault(resource, {})

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call a function for every change, within the call that makes it; returns how to stop."""
        self._subscribers.append(subscriber)

        def stop() -> None:
            if subscriber in self._subscribers:
                self._subscribers.remove(subscriber)

        return stop

    # The port

    async def list(
        self, resource: ApiResource, *, namespace: str | None = None, selector: str = ""
    ) -> Listing:
        is_wanted = selects(selector)
        stored = self._kind(resource)
        found = (stored[key] for key in sorted(stored) if namespace in (None, key[0]))
        items = tuple(_copy(raw) for raw in found if is_wanted(raw["metadata"].get("labels") or {}))
        return Listing(items, str(self._version))

    async def pages(
        self, resource: ApiResource, *, namespace: str | None = None, selector: str = ""
    ) -> AsyncGenerator[Page, None]:
        listing = await self.list(resource, namespace=namespace, selector=selector)
        for start in range(0, max(1, len(listing.items)), PAGE):
            items = listing.items[start : start + PAGE]
            yield Page(items, listing.resource_version, is_first=start == 0)

    async def get(self, resource: ApiResource, namespace: str, name: str) -> JsonObject:
        return _copy(self._stored(resource, namespace, name))

    async def schemas(self) -> Mapping[str, JsonObject]:
        made = served_schemas()
        served = {name: made[name] for name in made if kinds.OURS[name] in self._objects}
        if not served:
            raise ResourceUnknown("the server could not find the requested resource")
        return served

    async def create(
        self, resource: ApiResource, namespace: str, manifest: JsonObject
    ) -> JsonObject:
        result = self._create(resource, namespace, _copy(manifest))
        if _is_orphan(result, self._uids):
            self._collect()
        return result

    async def replace(
        self, resource: ApiResource, namespace: str, manifest: JsonObject
    ) -> JsonObject:
        new: Raw = _copy(manifest)
        old = self._stored(resource, namespace, new["metadata"]["name"])
        if not new["metadata"].get("resourceVersion"):
            raise ObjectRefused("metadata.resourceVersion: must be specified for an update")
        return self._write(resource, old, new, subresource="")

    async def patch(
        self,
        resource: ApiResource,
        namespace: str,
        name: str,
        patch: JsonObject,
        *,
        subresource: str = "",
    ) -> JsonObject:
        old = self._stored(resource, namespace, name)
        return self._write(resource, old, merged(_copy(old), _copy(patch)), subresource)

    async def delete(self, resource: ApiResource, namespace: str, name: str, *, uid: str) -> None:
        stored = self._kind(resource).get((namespace, name))
        if stored is not None and stored["metadata"]["uid"] == uid:
            self._delete(resource, stored)

    # How it works

    def _kind(self, resource: ApiResource) -> dict[tuple[str, str], Raw]:
        if resource not in self._objects:
            raise ResourceUnknown(f"the server could not find {resource.plural}.{resource.group}")
        return self._objects[resource]

    def _stored(self, resource: ApiResource, namespace: str, name: str) -> Raw:
        stored = self._kind(resource).get((namespace, name))
        if stored is None:
            raise ObjectMissing(f"{resource.plural} {name!r} not found")
        return stored

    def _create(self, resource: ApiResource, namespace: str, new: Raw) -> Raw:
        kind = self._kind(resource)
        metadata = new.setdefault("metadata", {})
        if metadata.setdefault("namespace", namespace) != namespace:
            raise ObjectRefused("the namespace of the object does not match the request")
        if metadata.get("resourceVersion"):
            raise ObjectRefused("resourceVersion should not be set on objects to be created")
        if resource in CLUSTER_WIDE:
            del metadata["namespace"]
        else:
            self._refuse_closed(namespace)
        refuse_wrong(resource, new, None)
        if (namespace, metadata["name"]) in kind:
            raise ObjectExists(f"{resource.plural} {metadata['name']!r} already exists")
        for field in _KEPT[:4]:
            metadata.pop(field, None)
        metadata["uid"] = str(uuid.uuid4())
        metadata["creationTimestamp"] = format_instant(self.clock())[:19] + "Z"
        if resource in WITH_GENERATION:
            metadata["generation"] = 1
        if resource in WITH_STATUS:
            new.pop("status", None)
        if resource == kinds.NAMESPACES:
            new["status"] = {"phase": "Active"}
        return self._store(resource, None, new)

    def _refuse_closed(self, namespace: str) -> None:
        if ("", namespace) not in self._objects[kinds.NAMESPACES]:
            raise NamespaceTerminating(f"namespaces {namespace!r} not found")
        if self._is_closing(namespace):
            raise NamespaceTerminating(f"namespace {namespace} is being terminated")

    def _write(self, resource: ApiResource, old: Raw, new: Raw, subresource: str) -> Raw:
        before, metadata = old["metadata"], new["metadata"]
        # A real API server looks at the UID in no patch of a status; versions are unique anyway.
        if not subresource and metadata.get("uid", before["uid"]) != before["uid"]:
            raise ObjectChanged(f"the object has the uid {before['uid']}, not {metadata['uid']}")
        if metadata.get("resourceVersion", before["resourceVersion"]) != before["resourceVersion"]:
            raise ObjectChanged("the object has been modified; apply your changes to the latest")
        if subresource == "status":
            new = {key: value for key, value in old.items() if key != "status"} | (
                {"status": new["status"]} if "status" in new else {}
            )
            new["metadata"] = metadata = _copy(before)
        elif resource in WITH_STATUS:
            new = {key: value for key, value in new.items() if key != "status"} | (
                {"status": old["status"]} if "status" in old else {}
            )
        for field in _KEPT:
            metadata.pop(field, None)
            if field in before:
                metadata[field] = before[field]
        added = set(metadata.get("finalizers") or ()) - set(before.get("finalizers") or ())
        if added and before.get("deletionTimestamp"):
            raise ObjectRefused("no new finalizers can be added if the object is being deleted")
        metadata["resourceVersion"] = before["resourceVersion"]
        refuse_wrong(resource, new, old)
        if new == old:
            return _copy(old)
        if resource in WITH_GENERATION and _spec(new) != _spec(old):
            metadata["generation"] += 1
        result = self._store(resource, old, new)
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            self._remove(resource, new)
        return result

    def _delete(self, resource: ApiResource, stored: Raw) -> None:
        if stored["metadata"].get("deletionTimestamp"):
            return
        is_namespace = resource == kinds.NAMESPACES
        if not is_namespace and not stored["metadata"].get("finalizers"):
            self._remove(resource, stored)
            return
        new = _copy(stored)
        new["metadata"]["deletionTimestamp"] = format_instant(self.clock())[:19] + "Z"
        if "generation" in new["metadata"]:
            new["metadata"]["generation"] += 1
        if is_namespace:
            new["status"]["phase"] = "Terminating"
        self._store(resource, stored, new)
        if is_namespace:
            self._collect()

    def _store(self, resource: ApiResource, old: Raw | None, new: Raw) -> Raw:
        metadata = new["metadata"]
        metadata["resourceVersion"] = str(self._tick())
        self._objects[resource][metadata.get("namespace", ""), metadata["name"]] = new
        self._uids.add(metadata["uid"])
        self._owner_uids.update(owner["uid"] for owner in metadata.get("ownerReferences") or ())
        self._notify(resource, ChangeType.MODIFIED if old else ChangeType.ADDED, new)
        return _copy(new)

    def _remove(self, resource: ApiResource, stored: Raw) -> None:
        metadata = stored["metadata"]
        namespace = metadata.get("namespace", "")
        del self._objects[resource][namespace, metadata["name"]]
        self._uids.remove(metadata["uid"])
        last = _copy(stored)
        last["metadata"]["resourceVersion"] = str(self._tick())
        self._notify(resource, ChangeType.DELETED, last)
        if metadata["uid"] in self._owner_uids or self._is_closing(namespace):
            self._collect()

    def _tick(self) -> int:
        self._version = next(self._versions)
        return self._version

    def _notify(self, resource: ApiResource, type_: ChangeType, stored: Raw) -> None:
        for subscriber in tuple(self._subscribers):
            subscriber(resource, Change(type_, _copy(stored)))

    def _collect(self) -> None:
        """Delete objects without an owner, and those in namespaces that are being deleted."""
        while doomed := self._doomed():
            for resource, stored in doomed:
                if stored["metadata"]["uid"] in self._uids:
                    self._delete(resource, stored)
        for _, name in list(self._objects[kinds.NAMESPACES]):
            if self._is_closing(name) and not self._has_objects_in(name):
                self._remove(kinds.NAMESPACES, self._objects[kinds.NAMESPACES]["", name])

    def _doomed(self) -> list[tuple[ApiResource, Raw]]:
        return [
            (resource, raw)
            for resource, stored in self._objects.items()
            for (namespace, _), raw in stored.items()
            if not raw["metadata"].get("deletionTimestamp")
            and (self._is_closing(namespace) or _is_orphan(raw, self._uids))
        ]

    def _is_closing(self, namespace: str) -> bool:
        found = self._objects[kinds.NAMESPACES].get(("", namespace))
        return found is not None and found["status"]["phase"] == "Terminating"

    def _has_objects_in(self, namespace: str) -> bool:
        return any(key[0] == namespace for stored in self._objects.values() for key in stored)


def merged(target: Any, patch: Any) -> Any:
    """A JSON merge patch (RFC 7396) applied."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def _is_orphan(raw: Raw, living: set[str]) -> bool:
    owners = raw["metadata"].get("ownerReferences")
    return bool(owners) and not any(owner["uid"] in living for owner in owners)


def _spec(raw: Raw) -> Raw:
    return {key: value for key, value in raw.items() if key not in ("metadata", "status")}


def _bare(resource: ApiResource, name: str) -> Raw:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name},
    }


def _copy(raw: Any) -> Any:
    return json.loads(json.dumps(raw))
