"""Applications of Argo CD: asked to look at Git, waited for, and read."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kubernetes.client import ApiException, CustomObjectsApi
from kubernetes.config import new_client_from_config
from support.cluster.argocd import DEADLINE, NAMESPACE, ArgoCD

MISSING = 404
MERGED = "application/merge-patch+json"


class Objects:
    """Objects of a cluster, of any group but the core's; quicker than a kubectl for each."""

    def __init__(self, kubeconfig: Path) -> None:
        self._client = new_client_from_config(config_file=str(kubeconfig))
        self._api = CustomObjectsApi(self._client)

    def get(self, plural: str, name: str, namespace: str) -> Raw:
        """An object as it is stored; empty when there is none.

        Args:
            plural: `plural.version.group`, as `kubectl` has it.
            name: the object's.
            namespace: where it is.
        """
        kind, version, group = plural.split(".", 2)
        try:
            found: Raw = self._api.get_namespaced_custom_object(
                group, version, namespace, kind, name
            )
        except ApiException as answer:
            if answer.status != MISSING:
                raise
            return {}
        return found

    def patch(
        self, plural: str, name: str, namespace: str, patch: Raw, status: bool = False
    ) -> Raw:
        """Merge something into an object, or into its status; the object."""
        kind, version, group = plural.split(".", 2)
        method = (
            self._api.patch_namespaced_custom_object_status
            if status
            else self._api.patch_namespaced_custom_object
        )
        changed: Raw = method(
            group, version, namespace, kind, name, patch,
            _content_type=MERGED,
        )  # fmt: skip
        return changed

    def close(self) -> None:
        """Close its connections."""
        self._client.close()


Raw = dict[str, Any]
Predicate = Callable[[Raw], bool]
Health = dict[tuple[str, str], Raw]
"""By kind and name: `status` and `message`."""

APPLICATIONS = "applications.v1alpha1.argoproj.io"
REFRESH = "argocd.argoproj.io/refresh"
ENDED = ("Succeeded", "Failed", "Error")
"""Phases of a sync that is over."""


class Applications:
    """The Applications of one Argo CD."""

    def __init__(self, argo: ArgoCD, objects: Objects) -> None:
        self._argo = argo
        self._objects = objects
        self._numbers = itertools.count(1)

    def get(self, name: str) -> Raw:
        """An Application as it is; empty when there is none."""
        return self._objects.get(APPLICATIONS, name, NAMESPACE)

    def change(self, name: str, patch: Raw) -> None:
        """Merge something into an Application."""
        self._objects.patch(APPLICATIONS, name, NAMESPACE, patch)

    def refresh(self, *names: str) -> None:
        """Have Argo CD compare Applications with Git, and wait until it has."""
        for name in names:
            self.change(name, {"metadata": {"annotations": {REFRESH: "normal"}}})
        for name in names:
            self.wait_for(name, lambda app: REFRESH not in app["metadata"].get("annotations", {}))

    def sync(self, name: str, **operation: Any) -> Raw:
        """Have an Application synced, as `argocd app sync` does, and wait for the end of it."""
        asked = [{"name": "asked by", "value": f"test {next(self._numbers)}"}]
        self.change(name, {"operation": {"info": asked, "sync": operation}})

        def has_ended(app: Raw) -> bool:
            state = app.get("status", {}).get("operationState", {})
            is_ours = state.get("operation", {}).get("info") == asked
            return is_ours and state["phase"] in ENDED

        return self.wait_for(name, has_ended)

    @contextmanager
    def watched(self) -> Iterator[set[tuple[str, str]]]:
        """Name and sync status of every Application, whenever one changes; known at the end."""
        kubectl, seen = self._argo.plane.kubectl, set[tuple[str, str]]()
        shown = "jsonpath={.metadata.name} {.status.sync.status}{'\\n'}"
        watching = subprocess.Popen(
            [*kubectl.program, "get", "applications", "--namespace", NAMESPACE, "--watch",
             "--output", shown],
            env=os.environ | {"KUBECONFIG": str(kubectl.kubeconfig), "HOME": str(kubectl.home)},
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            yield seen
        finally:
            watching.terminate()
            lines, _ = watching.communicate()
        seen.update(
            (name, state) for name, _, state in (each.partition(" ") for each in lines.splitlines())
        )

    def wait_for(self, name: str, predicate: Predicate) -> Raw:
        """Wait until an Application satisfies a condition; returns it."""
        deadline = time.monotonic() + DEADLINE
        while not predicate(found := self.get(name)):
            status = json.dumps(found.get("status", {}), indent=1)
            assert time.monotonic() < deadline, f"{name}: {status}\n{self._argo.tails()}"
            time.sleep(0.1)
        return found


def is_well(app: Raw) -> bool:
    """Whether it is as Git has it, and everything in it is healthy."""
    return is_synced(app) and health(app) == "Healthy"


def is_synced(app: Raw) -> bool:
    """Whether it is as Git has it, and no sync is at work."""
    status = app.get("status", {})
    is_idle = status.get("operationState", {}).get("phase") == "Succeeded"
    return is_idle and status.get("sync", {}).get("status") == "Synced"


def is_at(revision: str) -> Predicate:
    """Whether it is as Git has it at a commit."""
    return lambda app: is_synced(app) and app["status"]["sync"]["revision"] == revision


def health(app: Raw) -> str:
    """How all of it is."""
    return str(app.get("status", {}).get("health", {}).get("status", ""))


def healths(app: Raw) -> Health:
    """How each resource is that has health."""
    return {
        (each["kind"], each["name"]): {
            "status": each["health"]["status"],
            "message": each["health"].get("message", ""),
        }
        for each in app.get("status", {}).get("resources", ())
        if "health" in each
    }
