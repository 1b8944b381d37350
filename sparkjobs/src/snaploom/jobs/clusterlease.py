"""Leases of folders as `Lease` objects of coordination.k8s.io/v1, where a run has a cluster.

One for each output folder, in the namespace of its OutputDataset and owned by it, so that it goes
when the resource does. It is got, created and updated, and nothing else is asked for: those are
the verbs that the service account of a Spark driver needs for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final

from kubernetes.client import (
    ApiException,
    CoordinationV1Api,
    V1Lease,
    V1LeaseSpec,
    V1ObjectMeta,
)
from kubernetes.config import ConfigException
from urllib3.exceptions import HTTPError

from snaploom.jobs.reports.configmap import (
    TIMEOUT,
    api_message,
    connect,
    labels_of,
    owner_reference,
)
from snaploom.jobs.reports.identity import Owner, RunIdentity
from snaploom.models.common import GROUP
from snaploom.models.times import NANOS_PER_SECOND, EpochNanos
from snaploom.storage.leases import FREE, LeaseState, LeaseUnavailable, Swap

FOLDER: Final = f"{GROUP}/folder"
"""Annotation with the URI of the folder, which the name of the Lease does not show."""

_CHANGED = (HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND)
"""Answers that mean that somebody else wrote or deleted it meanwhile."""


def lease_name(folder_uri: str) -> str:
    """Name of the Lease of a folder: the same for all that publish there."""
    return f"snaploom-{hashlib.sha256(folder_uri.encode()).hexdigest()[:40]}"


def connect_leases() -> CoordinationV1Api:
    """The same cluster that Reports go to.

    Raises:
        ConfigException: there is none.
    """
    return CoordinationV1Api(connect().api_client)


@dataclass(frozen=True)
class _Stored:
    """A Lease as the API server has it."""

    metadata: V1ObjectMeta
    spec: V1LeaseSpec

    @property
    def state(self) -> LeaseState:
        return LeaseState(
            holder=self.spec.holder_identity or "",
            seconds=self.spec.lease_duration_seconds or 0,
            version=self.metadata.resource_version or "",
        )


class ClusterLease:
    """The lease of a folder in a cluster; see `snaploom.storage.leases.Lease`."""

    def __init__(
        self,
        folder_uri: str,
        owner: Owner,
        identity: RunIdentity,
        clock: Callable[[], EpochNanos],
        connect: Callable[[], CoordinationV1Api] = connect_leases,
    ) -> None:
        """Nothing is asked of the cluster yet.

        Args:
            folder_uri: as its store gives it.
            owner: the OutputDataset; its namespace has the Lease.
            identity: the run as its submitter knows it, for people.
            clock: the time that is written, for people too.
            connect: reaches the cluster.
        """
        self._folder_uri = folder_uri
        self._name = lease_name(folder_uri)
        self._owner = owner
        self._identity = identity
        self._clock = clock
        self._connect = connect
        self._api: CoordinationV1Api | None = None
        self._stored: _Stored | None = None
        """As it was seen or written last."""

    def read(self) -> LeaseState:
        """The Lease as it is."""
        self._stored = self._asked(
            lambda api: api.read_namespaced_lease(
                self._name, self._owner.namespace, _request_timeout=TIMEOUT
            )
        )
        return self._stored.state if self._stored else FREE

    def swap(self, swap: Swap) -> LeaseState | None:
        """Create the Lease, or replace the expected one."""
        if not swap.expected.version:
            return self._created(self._taken(swap.holder, swap.seconds, transitions=0))
        stored = self._stored
        if stored is None or stored.state != swap.expected:
            return None
        if not swap.holder:
            stored.spec.holder_identity = None
            return self._replaced(stored)
        if swap.holder == swap.expected.holder:
            stored.spec.renew_time = self._now()
            return self._replaced(stored)
        transitions = (stored.spec.lease_transitions or 0) + 1
        taken = self._taken(swap.holder, swap.seconds, transitions)
        taken.metadata.resource_version = swap.expected.version
        return self._replaced(taken)

    def _taken(self, holder: str, seconds: int, transitions: int) -> _Stored:
        now = self._now()
        spec = V1LeaseSpec(
            holder_identity=holder,
            lease_duration_seconds=seconds,
            acquire_time=now,
            renew_time=now,
            lease_transitions=transitions,
        )
        # Who it is of, and for which run, may be another than when it was created.
        metadata = V1ObjectMeta(
            name=self._name,
            namespace=self._owner.namespace,
            labels=labels_of(self._owner, self._identity),
            annotations={FOLDER: self._folder_uri},
            owner_references=[owner_reference(self._owner, self._identity)],
        )
        return _Stored(metadata, spec)

    def _created(self, lease: _Stored) -> LeaseState | None:
        body = V1Lease(
            api_version="coordination.k8s.io/v1",
            kind="Lease",
            metadata=lease.metadata,
            spec=lease.spec,
        )
        self._stored = self._asked(
            lambda api: api.create_namespaced_lease(
                self._owner.namespace, body, _request_timeout=TIMEOUT
            )
        )
        return self._stored.state if self._stored else None

    def _replaced(self, lease: _Stored) -> LeaseState | None:
        """Replace the Lease unless its resourceVersion shows that it was changed since."""
        body = V1Lease(metadata=lease.metadata, spec=lease.spec)
        self._stored = self._asked(
            lambda api: api.replace_namespaced_lease(
                self._name, self._owner.namespace, body, _request_timeout=TIMEOUT
            )
        )
        return self._stored.state if self._stored else None

    def _asked(self, request: Callable[[CoordinationV1Api], V1Lease]) -> _Stored | None:
        """The Lease that a request gives; None when there is none, or another one.

        Raises:
            LeaseUnavailable: the API server does not answer, or refuses.
        """
        try:
            self._api = self._api or self._connect()
            lease = request(self._api)
        except ApiException as error:
            if error.status in _CHANGED:
                return None
            raise self._unavailable(api_message(error)) from error
        except ConfigException as error:
            raise self._unavailable(str(error)) from error
        except (HTTPError, OSError) as error:
            raise self._unavailable(f"{type(error).__name__}: {error}") from error
        return _Stored(lease.metadata or V1ObjectMeta(), lease.spec or V1LeaseSpec())

    def _unavailable(self, found: str) -> LeaseUnavailable:
        place = f"Lease/{self._owner.namespace}/{self._name}"
        return LeaseUnavailable(
            f"{place} is not to be had: {found}",
            expected="an API server that answers, and the right to get, create and update Leases",
            hint="give the job's service account that right on leases.coordination.k8s.io",
        )

    def _now(self) -> datetime:
        moment = datetime.fromtimestamp(self._clock() / NANOS_PER_SECOND, UTC)
        # Kubernetes wants six digits behind the second, and the client leaves out six zeros.
        return moment.replace(microsecond=moment.microsecond or 1)
