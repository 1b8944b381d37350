"""Metadata of child objects: labels and owner references.

Labels and annotations of the owner are not copied: with those of Argo CD it would adopt and prune
the child objects.
"""

from __future__ import annotations

import re

from pydantic import JsonValue

from snaploom.models.resource import Resource
from snaploom_operator.objects import LABEL_KIND, LABEL_NAME, LABEL_OWNER, LABEL_ROLE, LABEL_RUN

LONGEST_LABEL = 63
"""Characters of a label's value, a limit of Kubernetes."""
_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9_.-]+")


def label_value(text: str) -> str:
    """A text as a label value, with invalid characters replaced.

    It need not be unique: objects are identified by UIDs and full names.
    """
    return _NOT_ALLOWED.sub("-", text)[:LONGEST_LABEL].strip("-_.")


def child_labels(
    owner: Resource, run: str | None = None, role: str | None = None
) -> dict[str, str]:
    """Labels of an object that belongs to a stored resource, and to a run of it."""
    labels = {
        LABEL_KIND: owner.kind,
        LABEL_NAME: label_value(owner.name),
        LABEL_OWNER: uid_of(owner),
    }
    if run is not None:
        labels[LABEL_RUN] = label_value(run)
    if role is not None:
        labels[LABEL_ROLE] = role
    return labels


def owner_reference(owner: Resource) -> dict[str, JsonValue]:
    """The reference by which the cluster deletes an object after its owner."""
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": False,
    }


def child_metadata(
    owner: Resource, name: str, run: str | None = None, role: str | None = None
) -> dict[str, JsonValue]:
    """Metadata of an object that belongs to a resource, in the resource's namespace."""
    return {
        "name": name,
        "namespace": namespace_of(owner),
        "labels": {**child_labels(owner, run, role)},
        "ownerReferences": [owner_reference(owner)],
    }


def uid_of(owner: Resource) -> str:
    """UID of a stored resource."""
    assert owner.metadata.uid is not None, f"{owner.identity} was never stored"
    return owner.metadata.uid


def namespace_of(owner: Resource) -> str:
    """Namespace of a stored resource."""
    assert owner.metadata.namespace is not None, f"{owner.identity} was never stored"
    return owner.metadata.namespace
