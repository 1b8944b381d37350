"""Asks the API server whether it would store an object, without storing it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kubernetes.client import ApiException, CustomObjectsApi
from kubernetes.config import new_client_from_config

from snaploom.models.common import API_VERSION, GROUP, VERSION
from snaploom.models.kinds import KIND_BY_NAME

Raw = dict[str, Any]
REFUSED = (400, 422)
"""Bad request (a field that is unknown, or of another type) and unprocessable entity."""


class Judge:
    """The API server as a judge of objects; quicker than a kubectl for each."""

    def __init__(self, kubeconfig: Path) -> None:
        self._client = new_client_from_config(config_file=str(kubeconfig))
        self._objects = CustomObjectsApi(self._client)

    def complaint(self, kind: str, spec: Raw, name: str = "a") -> str:
        """Its objection to an object; empty when it would store it as it is."""
        try:
            self._try(kind, spec, name, "Strict")
        except ApiException as answer:
            if answer.status not in REFUSED:
                raise
            return str(json.loads(answer.body)["message"])
        return ""

    def kept(self, kind: str, spec: Raw) -> Raw:
        """What it would store of a spec for a client that ignores warnings."""
        result: Raw = self._try(kind, spec, "a", "Ignore")["spec"]
        return result

    def _try(self, kind: str, spec: Raw, name: str, unknown_fields: str) -> Raw:
        body = {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}
        result: Raw = self._objects.create_namespaced_custom_object(
            GROUP,
            VERSION,
            "default",
            KIND_BY_NAME[kind].plural,
            body,
            dry_run="All",
            field_validation=unknown_fields,
        )
        return result

    def close(self) -> None:
        """Close its connections."""
        self._client.close()
