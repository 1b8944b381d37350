"""What an API server refuses by itself, as far as the operator could do it wrong."""

from __future__ import annotations

import re
from typing import Any

from snaploom_operator.cluster.port import CONFIG_MAPS, EVENTS, ApiResource
from snaploom_operator.errors import ObjectRefused

Raw = dict[str, Any]

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
