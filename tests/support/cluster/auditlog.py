"""A control plane that logs each request, and whether that was allowed."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from support.cluster.chart import Right
from support.cluster.cluster import ControlPlane

Raw = dict[str, Any]

SERVICE_ACCOUNTS: Raw = {"userGroups": ["system:serviceaccounts"]}
"""Whose requests tests look at as a rule."""


@dataclass(frozen=True)
class Asked:
    """One request to the API server for a resource."""

    verb: str
    group: str
    resource: str
    """With the subresource: `outputdatasets/status`."""
    namespace: str
    name: str
    is_allowed: bool

    @property
    def right(self) -> Right:
        """What it takes to be allowed to."""
        plural, _, subresource = self.resource.partition("/")
        whole = f"{plural}.{self.group}" if self.group else plural
        named = f"{whole}/{subresource}" if subresource else whole
        return Right(self.verb, named, self.namespace, self.name)


class AuditedControlPlane(ControlPlane):
    """A control plane that keeps an audit log.

    Args:
        folder: see `ControlPlane`.
        whose: selects the users whose requests are written down, as a rule of audit policies does.
    """

    def __init__(self, folder: Path, whose: Raw = SERVICE_ACCOUNTS) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._policy = folder / "audit-policy.yaml"
        self._policy.write_text(yaml.safe_dump(_policy(whose)))
        self._log = folder / "audit.log"
        super().__init__(folder)

    def _apiserver(self, etcd_port: int, port: int) -> list[str]:
        return [
            *super()._apiserver(etcd_port, port),
            f"--audit-policy-file={self._policy}",
            f"--audit-log-path={self._log}",
            "--audit-log-mode=blocking",  # an answer is given after it was written down
        ]

    def asked_by(self, namespace: str, service_account: str) -> set[Asked]:
        """What an account has asked for so far."""
        user = f"system:serviceaccount:{namespace}:{service_account}"
        return {_asked(event) for event in self.events_of(user)}

    def events_of(self, user: str) -> Iterator[Raw]:
        """What a user has asked for so far, as the log has it: in order, with times."""
        for event in self._events():
            if event["user"]["username"] == user and "objectRef" in event:
                yield event

    def _events(self) -> Iterator[Raw]:
        whole, _, _ = self._log.read_text().rpartition("\n")  # the last line may be half written
        for line in whole.splitlines():
            yield json.loads(line)


def _policy(whose: Raw) -> Raw:
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        # A watch is answered for minutes: its beginning has all that is needed.
        "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata", **whose}, {"level": "None"}],
    }


def _asked(event: Raw) -> Asked:
    about = event["objectRef"]
    parts = (about.get("resource", ""), about.get("subresource", ""))
    return Asked(
        verb=event["verb"],
        group=about.get("apiGroup", ""),
        resource="/".join(part for part in parts if part),
        namespace=about.get("namespace", ""),
        name=about.get("name", ""),
        is_allowed=event["annotations"]["authorization.k8s.io/decision"] == "allow",
    )
