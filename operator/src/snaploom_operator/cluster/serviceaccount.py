"""The service account of this process, as the owner of objects that it creates for itself.

Its UID is read from its token, which needs no permission. Owned objects are deleted with the
account, when the chart is uninstalled.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path

from pydantic import JsonValue

from snaploom_operator.objectmetadata import mapping_in, text_in
from snaploom_operator.objects import JsonObject

TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
"""Kubernetes puts it into every pod that has a service account."""
_CLAIMS = "kubernetes.io"


def account_reference(namespace: str, token: Path = TOKEN) -> dict[str, JsonValue] | None:
    """An owner reference to the account of this pod, for an object of a namespace.

    None outside a pod, and in a pod of another namespace: owner and owned object must be in the
    same namespace.
    """
    claims = mapping_in(_payload(token), _CLAIMS)
    account = mapping_in(claims, "serviceaccount")
    name, uid = text_in(account, "name"), text_in(account, "uid")
    if text_in(claims, "namespace") != namespace or not (name and uid):
        return None
    return {"apiVersion": "v1", "kind": "ServiceAccount", "name": name, "uid": uid}


def _payload(token: Path) -> JsonObject:
    try:
        _, payload, _ = token.read_text("utf-8").split(".")
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (OSError, ValueError):
        return {}
    return claims if isinstance(claims, dict) else {}
