"""Objects of a real cluster read and changed one at a time, for tests that look often."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kubernetes.client import ApiException, CustomObjectsApi
from kubernetes.config import new_client_from_config

Raw = dict[str, Any]
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
