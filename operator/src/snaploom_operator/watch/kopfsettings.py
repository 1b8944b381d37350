"""kopf's settings: it only watches (rule R11).

Handlers are `on.event` only: change-detecting handlers would write a copy of the spec into an
annotation, and a finalizer, of every object.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import kopf

from snaploom_operator.watch.watchedkinds import Watched

KOPF_FINALIZER = "snaploom.io/kopf"
"""A finalizer that no object has: kopf removes its own finalizer without a handler that needs it,
so that it must differ from ours."""
IDLE_SECONDS = 0.1
"""Seconds without an event after which kopf's task of an object ends. It keeps the object in
memory, and our handlers take microseconds."""


class _NoDifferences(kopf.MultiDiffBaseStorage):
    """Stores no last-handled configuration, whose essence would copy the object at each event."""

    def __init__(self) -> None:
        super().__init__([])

    def build(self, **_: Any) -> kopf.BodyEssence:
        return kopf.BodyEssence()


def kopf_settings(kinds: Iterable[Watched]) -> kopf.OperatorSettings:
    """Settings for watching kinds."""
    settings = kopf.OperatorSettings()
    # kopf stores nothing in objects.
    settings.persistence.finalizer = KOPF_FINALIZER
    settings.persistence.progress_storage = kopf.MultiProgressStorage([])
    settings.persistence.diffbase_storage = _NoDifferences()
    # Our recorder aggregates equal events; kopf would post one object per call.
    settings.posting.enabled = False
    # Shorter than the five minutes after which load balancers close idle connections. The API
    # server sends a bookmark every minute: without one, the default of 70 s ends a broken watch.
    settings.watching.server_timeout = 290
    settings.watching.connect_timeout = 10
    settings.watching.chunk_size = 500
    settings.networking.request_timeout = 30
    settings.networking.error_backoffs = (1, 1, 2, 3, 5, 8, 13, 21)
    settings.queueing.error_delays = (1, 2, 5, 10, 30, 60)
    settings.queueing.idle_timeout = IDLE_SECONDS
    settings.execution.default_backoff = 15
    settings.peering.standalone = True
    # Installed kinds are detected by our own lists, which need no permission on CRDs.
    settings.scanning.disabled = True
    settings.admission.managed = None
    # It runs in a thread, and must not exit the process.
    settings.process.ultimate_exiting_timeout = None
    for watched in kinds:
        if watched.selector:
            resource = watched.resource
            key = (resource.group, resource.version, resource.plural)
            settings.watching.label_selectors[key] = watched.selector
    return settings
