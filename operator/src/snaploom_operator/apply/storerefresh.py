"""Takes objects that we wrote or read ourselves into the store, before a watch reports them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from snaploom.errors import SnaploomError
from snaploom.models.common import ResourceStatus
from snaploom.models.outputdataset import OutputDatasetStatus
from snaploom.models.skippingindex import SkippingIndexStatus
from snaploom_operator.cluster.apiresources import OURS
from snaploom_operator.cluster.port import Cluster
from snaploom_operator.errors import ObjectMissing
from snaploom_operator.logcontext import about
from snaploom_operator.objects import JsonObject, Ref
from snaploom_operator.store.store import Store

_log = logging.getLogger(__name__)


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
        except ObjectMissing:
            self._wake(self._store.remove(key))
        except SnaploomError as error:
            _log.info("cannot refresh: %s", error.message, extra=about(key))
        else:
            self.put(stored)
