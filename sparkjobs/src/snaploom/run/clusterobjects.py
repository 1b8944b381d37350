"""Leases and Reports as Kubernetes objects: all of the library that talks to its API."""

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final

from kubernetes.client import (
    ApiClient,
    ApiException,
    Configuration,
    CoordinationV1Api,
    CoreV1Api,
    V1ConfigMap,
    V1Lease,
    V1LeaseSpec,
    V1ObjectMeta,
    V1OwnerReference,
)
from kubernetes.config import ConfigException, load_incluster_config, load_kube_config
from urllib3.exceptions import HTTPError

from snaploom.models.common import API_VERSION, GROUP, NANOS_PER_SECOND, EpochNanos
from snaploom.models.report import Report
from snaploom.output.leases import FREE, LeaseState, LeaseUnavailable, Swap
from snaploom.run.joblog import Owner, RunIdentity
from snaploom.run.reports.writer import ReportNotOurs, ReportNotWritten, compact, fitting

# Leases of folders as `Lease` objects of coordination.k8s.io/v1, where a run has a cluster.

FOLDER: Final = f"{GROUP}/folder"
"""Annotation with the URI of the folder, which the name of the Lease does not show."""

_CHANGED = (HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND)
"""Answers that mean that somebody else wrote or deleted it meanwhile."""


def lease_name(folder_uri: str) -> str:
    """Name of the Lease of a folder: the same for all that publish there."""
    return f"snaploom-{hashlib.sha256(folder_uri.encode()).hexdigest()[:40]}"


def connect_leases() -> CoordinationV1Api:
    """The same cluster that Reports go to."""
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
    """The lease of a folder in a cluster; see `snaploom.output.leases.Lease`."""

    def __init__(
        self,
        folder_uri: str,
        owner: Owner,
        identity: RunIdentity,
        clock: Callable[[], EpochNanos],
        connect: Callable[[], CoordinationV1Api] = connect_leases,
    ) -> None:
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
        self._stored = self._asked(
            lambda api: api.read_namespaced_lease(
                self._name, self._owner.namespace, _request_timeout=TIMEOUT
            )
        )
        return self._stored.state if self._stored else FREE

    def swap(self, swap: Swap) -> LeaseState | None:
        """Create the Lease, or replace the expected one."""
        if not swap.expected.version:
            return self._put(self._taken(swap.holder, swap.seconds, transitions=0), is_new=True)
        stored = self._stored
        if stored is None or stored.state != swap.expected:
            return None
        if not swap.holder:
            stored.spec.holder_identity = None
            return self._put(stored)
        if swap.holder == swap.expected.holder:
            stored.spec.renew_time = self._now()
            return self._put(stored)
        transitions = (stored.spec.lease_transitions or 0) + 1
        taken = self._taken(swap.holder, swap.seconds, transitions)
        taken.metadata.resource_version = swap.expected.version
        return self._put(taken)

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

    def _put(self, lease: _Stored, *, is_new: bool = False) -> LeaseState | None:
        """Write the Lease, unless it is there or its resourceVersion shows that it was changed."""
        namespace = self._owner.namespace
        version = "coordination.k8s.io/v1"
        body = V1Lease(api_version=version, kind="Lease", metadata=lease.metadata, spec=lease.spec)
        self._stored = self._asked(
            lambda api: (
                api.create_namespaced_lease(namespace, body, _request_timeout=TIMEOUT)
                if is_new
                else api.replace_namespaced_lease(
                    self._name, namespace, body, _request_timeout=TIMEOUT
                )
            )
        )
        return self._stored.state if self._stored else None

    def _asked(self, request: Callable[[CoordinationV1Api], V1Lease]) -> _Stored | None:
        """The Lease that a request gives; None when there is none, or another one."""
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
            f"{place} is unavailable: {found}",
            expected="an API server that answers, and the right to get, create and update Leases",
        )

    def _now(self) -> datetime:
        moment = datetime.fromtimestamp(self._clock() / NANOS_PER_SECOND, UTC)
        # Kubernetes wants six digits behind the second, and the client leaves out six zeros.
        return moment.replace(microsecond=moment.microsecond or 1)


# Reports in a ConfigMap, behind the port of those in files.

USER_AGENT = "snaploom-job"
"""Name of a job in audit logs, and as the manager of its fields."""

KEY = "report.json"
"""Key of the Report in the ConfigMap."""

LONGEST_LABEL = 63
"""Characters of a label's value, by Kubernetes."""

TIMEOUT = (5, 10)
"""Seconds for connecting and for an answer: a healthy API server needs milliseconds."""

ROUNDS = 5
"""Attempts at one Report while others change the ConfigMap at the same time."""

LABEL_OWNER: Final = f"{GROUP}/owner-uid"
LABEL_RUN: Final = f"{GROUP}/run"


class NoCluster(ReportNotWritten):
    """A Report was to go into a cluster, and there is none."""


@dataclass(frozen=True)
class ConfigMapPlace:
    """Location of the ConfigMap."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"ConfigMap/{self.namespace}/{self.name}"


class ConfigMapReport:
    """Reports in one ConfigMap, created by the first, replaced by each further one."""

    def __init__(
        self,
        place: ConfigMapPlace,
        owner: Owner,
        identity: RunIdentity,
        connect: Callable[[], CoreV1Api],
    ) -> None:
        self._place = place
        self._owner = owner
        self._identity = identity
        self._connect = connect
        self._api: CoreV1Api | None = None
        self._last: V1ConfigMap | None = None

    def write(self, report: Report) -> None:
        """Create or replace the ConfigMap.

        Raises:
            ReportNotOurs: there is one of another run, or of somebody else.
            ReportNotWritten: the API server does not answer, or refuses.
        """
        data = {KEY: compact(fitting(report))}
        try:
            self._api = self._api or self._connect()
            for _ in range(ROUNDS):
                self._last = self._last or self._found(self._api)
                if self._put(self._api, data):
                    return
        except ApiException as error:
            raise self._not_written(api_message(error)) from error
        except ConfigException as error:
            raise NoCluster(
                f"the Report is not written to {self._place}",
                found=str(error),
                expected="a pod with a service account, or KUBECONFIG",
            ) from error
        except (HTTPError, OSError) as error:
            raise self._not_written(f"{type(error).__name__}: {error}") from error
        raise self._not_written(f"somebody else changed it {ROUNDS} times in a row")

    def _found(self, api: CoreV1Api) -> V1ConfigMap | None:
        place = self._place
        try:
            found = api.read_namespaced_config_map(
                place.name, place.namespace, _request_timeout=TIMEOUT
            )
        except ApiException as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise
        labels = (found.metadata.labels if found.metadata else None) or {}
        ours = (self._identity.uid, self._identity.run_id)
        if (labels.get(LABEL_OWNER), labels.get(LABEL_RUN)) != ours:
            raise ReportNotOurs(
                f"{place} belongs to another run and is left as it is",
                found=f"run {labels.get(LABEL_RUN)!r} of {labels.get(LABEL_OWNER)!r}",
                expected=f"run {ours[1]!r} of {ours[0]!r}",
            )
        return found

    def _put(self, api: CoreV1Api, data: dict[str, str]) -> bool:
        place, last = self._place, self._last
        try:
            if last is None:
                self._last = api.create_namespaced_config_map(
                    place.namespace, self._manifest(data), _request_timeout=TIMEOUT
                )
            else:
                # All that others added to it stays; its resourceVersion shows whether they did.
                last.data = data
                self._last = api.replace_namespaced_config_map(
                    place.name, place.namespace, last, _request_timeout=TIMEOUT
                )
        except ApiException as error:
            self._last = None
            if error.status in _CHANGED:
                return False
            raise
        return True

    def _manifest(self, data: dict[str, str]) -> V1ConfigMap:
        owner, identity = self._owner, self._identity
        return V1ConfigMap(
            api_version="v1",
            kind="ConfigMap",
            metadata=V1ObjectMeta(
                name=self._place.name,
                namespace=self._place.namespace,
                labels=labels_of(owner, identity),
                owner_references=[owner_reference(owner, identity)],
            ),
            data=data,
        )

    def _not_written(self, found: str) -> ReportNotWritten:
        return ReportNotWritten(
            f"the Report is not written to {self._place}",
            found=found,
            expected="an API server that answers, and the right to get, create and update "
            "ConfigMaps",
        )


def api_message(error: ApiException) -> str:
    """The message of the API server, such as which right is missing."""
    try:
        message = json.loads(error.body or "")["message"]
    except (ValueError, KeyError, TypeError):
        message = error.reason
    return f"{error.status} {message}"


def owner_reference(owner: Owner, identity: RunIdentity) -> V1OwnerReference:
    """The resource that a run is of, as the owner of what the run leaves in the cluster."""
    return V1OwnerReference(
        api_version=API_VERSION,
        kind=owner.kind,
        name=owner.name,
        uid=identity.uid,
        controller=False,
        block_owner_deletion=False,
    )


def labels_of(owner: Owner, identity: RunIdentity) -> dict[str, str]:
    """Labels by which the operator finds a Report."""
    return {
        f"{GROUP}/kind": owner.kind,
        # What is cut may end where a label must not.
        f"{GROUP}/name": owner.name[:LONGEST_LABEL].rstrip("-._"),
        f"{GROUP}/role": "report",
        LABEL_OWNER: identity.uid,
        LABEL_RUN: identity.run_id,
    }


def connect() -> CoreV1Api:
    """The API of the cluster that KUBECONFIG names, else of the one that this pod runs in."""
    configuration = Configuration()
    if named := os.environ.get("KUBECONFIG"):
        load_kube_config(named, client_configuration=configuration, persist_config=False)
    else:
        load_incluster_config(client_configuration=configuration)
    # The caller counts attempts; the client's own would only make each longer.
    configuration.retries = False
    client = ApiClient(configuration)
    client.user_agent = USER_AGENT
    return CoreV1Api(client)
