"""The service account that this process is: the owner of what it makes for itself.

Nothing but its token tells its UID without a right to ask. What it owns goes when the account does,
which is when the chart is uninstalled.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path

from pydantic import JsonValue

from snaploom_operator.metadata import mapping_in, text_in
from snaploom_operator.objects import JsonObject

TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
"""Kubernetes puts it into every pod that has a service account."""
_CLAIMS = "kubernetes.io"


def own_account(namespace: str, token: Path = TOKEN) -> dict[str, JsonValue] | None:
    """An owner reference to the account of this pod.

    None outside a pod, where nobody is told, and in a pod of another namespace: an owner is looked
    for in the namespace of what it owns.

    Args:
        namespace: of what is to be owned.
        token: file with the account's token.
    """
    claims = mapping_in(_payload(token), _CLAIMS)
    account = mapping_in(claims, "serviceaccount")
    name, uid = text_in(account, "name"), text_in(account, "uid")
    if text_in(claims, "namespace") != namespace or not (name and uid):
        return None
    return {"apiVersion": "v1", "kind": "ServiceAccount", "name": name, "uid": uid}


def _payload(token: Path) -> JsonObject:
    """What a token says; nothing where there is none, or none that can be read."""
    try:
        _, payload, _ = token.read_text("utf-8").split(".")
        said = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}
