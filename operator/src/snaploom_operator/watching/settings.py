"""How kopf is set up: it only watches (`operator.md` section 5).

Handlers are `on.event` only: handlers that detect changes would write a copy of every spec into an
annotation, and a finalizer, of every object.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import kopf

from snaploom_operator.watching.kinds import Watched

KOPF_FINALIZER = "snaploom.io/kopf"
"""A finalizer that no object ever has: kopf takes away its own where no handler of it asks for it,
so that it must not be the one that holds outputs until their data is deleted."""
IDLE_SECONDS = 0.1
"""Without an event, after which a task that kopf makes for an object ends. It costs memory for as
long as it lives, the object included, and ours are done in microseconds."""


class _NoDifferences(kopf.MultiDiffBaseStorage):
    """Remembers no object, and makes no essence of one: that would copy all of it, each event."""

    def __init__(self) -> None:
        super().__init__([])

    def build(self, **_: Any) -> kopf.BodyEssence:
        return kopf.BodyEssence()


def kopf_settings(kinds: Iterable[Watched]) -> kopf.OperatorSettings:
    """Settings for watching kinds."""
    settings = kopf.OperatorSettings()
    # Nothing is stored by kopf, wherever it might be.
    settings.persistence.finalizer = KOPF_FINALIZER
    settings.persistence.progress_storage = kopf.MultiProgressStorage([])
    settings.persistence.diffbase_storage = _NoDifferences()
    # Our recorder counts equal events together; kopf would post one object a call.
    settings.posting.enabled = False
    # Shorter than the five minutes after which load balancers cut what is silent. The API server
    # sends a bookmark every minute: without one, the default of 70 s ends a watch that is dead.
    settings.watching.server_timeout = 290
    settings.watching.connect_timeout = 10
    settings.watching.chunk_size = 500
    settings.networking.request_timeout = 30
    settings.networking.error_backoffs = (1, 1, 2, 3, 5, 8, 13, 21)
    settings.queueing.error_delays = (1, 2, 5, 10, 30, 60)
    settings.queueing.idle_timeout = IDLE_SECONDS
    settings.execution.default_backoff = 15
    settings.peering.standalone = True
    # Which kinds there are is looked at by our own lists, which need no right on definitions.
    settings.scanning.disabled = True
    settings.admission.managed = None
    # It runs in a thread, and the process ends when we say so.
    settings.process.ultimate_exiting_timeout = None
    for watched in kinds:
        if watched.selector:
            resource = watched.resource
            key = (resource.group, resource.version, resource.plural)
            settings.watching.label_selectors[key] = watched.selector
    return settings
