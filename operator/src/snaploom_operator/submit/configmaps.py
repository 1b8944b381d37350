"""Children of a resource: their metadata, and the ConfigMaps of Bundle, plan and Report."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Iterator, Mapping

from pydantic import JsonValue
from pydantic_core import from_json

from snaploom.models.outputdataset import OutputDataset
from snaploom.models.report import REPORT_FORMAT, Report
from snaploom.models.resource import Resource
from snaploom.planning.bundle import Bundle
from snaploom.planning.explain import plan_json
from snaploom.planning.plan import RunPlan
from snaploom_operator.errors import BundleTooLarge, SecretInBundle
from snaploom_operator.objects import (
    LABEL_KIND,
    LABEL_NAME,
    LABEL_OWNER,
    LABEL_ROLE,
    LABEL_RUN,
    FoundReport,
    JsonObject,
    mapping_in,
    text_in,
)

# Metadata of child objects: labels and owner references.

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


# The ConfigMaps that the operator writes: the Bundle of a run, and the plan of an output.

BUNDLE_KEY = "bundle.json"
PLAN_KEY = "plan.json"
COMPRESSED = ".gz"
"""Suffix of the key of a compressed value."""
MOST_BYTES = 900_000
"""Bytes of content that a ConfigMap is given: a mebibyte is refused, and metadata counts too."""
_LONGEST_NAME = 253
_KEPT_METADATA = ("name", "namespace", "uid", "generation")
"""Metadata in a Bundle; other fields change without a change of the declaration, and the annotation
of `kubectl apply` repeats an earlier spec."""


def bundle_name(run: str, text: str) -> str:
    """Name of the ConfigMap with the Bundle of a run.

    It contains a hash of the content, so that the ConfigMap of a crashed operator is reused only if
    its content is the same.
    """
    return f"{run}-bundle-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def report_name(run: str) -> str:
    """Name of the ConfigMap that the job of a run writes its Report to."""
    return f"{run}-report"


def plan_name(output: str) -> str:
    """Name of the ConfigMap with the whole plan of an output (rule R13)."""
    return f"{output[: _LONGEST_NAME - len('-plan')]}-plan"


def bundle_config_map(owner: Resource, run: str, bundle: Bundle) -> JsonObject:
    """The immutable ConfigMap with the Bundle of a run.

    Raises:
        SecretInBundle: a spec has a plaintext password (rule R16).
        BundleTooLarge: it does not fit, even compressed.
    """
    document = bundle.dump()
    secret = next(_plaintext(document, ""), None)
    if secret is not None:
        raise SecretInBundle(
            "the spec has a plaintext password",
            resource=owner.identity,
            path=secret,
            expected="fromSecret or fromEnvironment: secrets are never written into a ConfigMap",
            hint="put user name and password into a Secret, and name it in fromSecret",
        )
    text = _compact({key: _bare(value) for key, value in document.items()})
    metadata = child_metadata(owner, bundle_name(run, text), run, role="bundle")
    content = _bundled(text)
    if content is None:
        raise BundleTooLarge(
            "the declarations of this run do not fit into a ConfigMap",
            resource=owner.identity,
            found=f"{len(text.encode()):,} bytes for {len(bundle.data_sources)} sources and "
            f"{len(bundle.data_relationships)} relationships",
            expected=f"at most {MOST_BYTES:,} bytes when compressed",
            hint="split the output, or shorten listed values such as globs and metadata",
        )
    return _config_map(metadata, content) | {"immutable": True}


def plan_config_map(output: OutputDataset, plan: RunPlan) -> JsonObject:
    """The ConfigMap with the whole plan of an output, of which the status has the first joins.

    It is plain JSON. If a plan does not fit, its last joins are omitted, and `leftOut` counts them.
    """
    document = plan_json(plan)
    metadata = child_metadata(output, plan_name(output.name), role="plan")
    text, kept = _compact(document), len(plan.tree.joins)
    while len(text.encode()) > MOST_BYTES and kept:
        kept //= 2
        short: dict[str, JsonValue] = {
            "ties": [],
            "findings": [],
            "leftOut": len(plan.tree.joins) - kept,
        }
        joins = document["joins"]
        assert isinstance(joins, list)
        text = _compact({**document, **short, "joins": joins[:kept]})
    return _config_map(metadata, {"data": {PLAN_KEY: text}})


def _config_map(metadata: JsonValue, content: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **content}


def _bundled(text: str) -> dict[str, JsonValue] | None:
    raw = text.encode()
    if len(raw) <= MOST_BYTES:
        return {"data": {BUNDLE_KEY: text}}
    packed = gzip.compress(raw, mtime=0)  # the limit applies to the decoded Base64
    if len(packed) > MOST_BYTES:
        return None
    return {"binaryData": {BUNDLE_KEY + COMPRESSED: base64.b64encode(packed).decode()}}


def _compact(document: JsonValue) -> str:
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _bare(part: JsonValue) -> JsonValue:
    """Resources without metadata that the cluster and tools add."""
    if isinstance(part, list):
        return [_bare(one) for one in part]
    metadata = part.get("metadata") if isinstance(part, dict) else None
    if not isinstance(part, dict) or not isinstance(metadata, dict):
        return part
    kept: dict[str, JsonValue] = {
        name: metadata[name] for name in _KEPT_METADATA if name in metadata
    }
    return {**part, "metadata": kept}


def _plaintext(value: JsonValue, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            below = f"{path}.{key}" if path else key
            if key == "fromPlaintext" and isinstance(inner, dict):
                yield below
            else:
                yield from _plaintext(inner, below)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _plaintext(inner, f"{path}[{index}]")


REPORT_ROLE = "report"
REPORT_KEY = "report.json"
"""Key of the ConfigMap under which the job writes its Report."""
LONGEST_REPORT = 1_048_576
"""Characters of a report that are parsed: all that a ConfigMap holds."""
MOST_VALUES = 100_000
"""Values of a report that are parsed. A job writes at most 900 KB, with some 20 bytes a value; so
many take some 50 ms, and a megabyte of other brackets would take ten times as long."""


def found_report(stored: JsonObject, run: str, owner: str) -> FoundReport:
    """The Report that a ConfigMap holds, which should be about a run of an owner by its UID."""
    text = text_in(mapping_in(stored, "data"), REPORT_KEY)
    # The event loop parses it.
    is_bounded = len(text) <= LONGEST_REPORT and sum(map(text.count, ",[{")) <= MOST_VALUES
    try:
        raw: JsonValue = from_json(text) if is_bounded else None
        written = raw.get("format") if isinstance(raw, dict) else None
        if isinstance(written, int) and written > REPORT_FORMAT:
            return FoundReport(
                run,
                None,
                f"the report has format {str(written)[:20]}, and this Snaploom reads up to "
                f"{REPORT_FORMAT}: upgrade the operator",
            )
        report = Report.parse(raw)
    except ValueError:  # also of JSON: too deep, or a number of too many digits
        return FoundReport(run, None, f"ConfigMap {run}-report has no valid report")
    if (report.uid, report.run_id) != (owner, run):
        return FoundReport(run, None, f"ConfigMap {run}-report is about another run")
    return FoundReport(run, report)
