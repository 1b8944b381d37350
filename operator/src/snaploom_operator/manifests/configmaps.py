"""The ConfigMaps that the operator writes: the Bundle of a run, and the plan of an output.

A ConfigMap may hold a mebibyte. JSON of declarations is compressed to a tenth, so that a Bundle
which is too long as text is written compressed, and every run has one ConfigMap.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from snaploom.models.outputdataset import OutputDataset
from snaploom.models.resource import Resource
from snaploom.planning.bundle import Bundle
from snaploom.planning.explain import plan_json
from snaploom.planning.plan import RunPlan
from snaploom_operator.errors import BundleTooLarge, SecretInBundle
from snaploom_operator.manifests.childmetadata import child_metadata
from snaploom_operator.objects import JsonObject

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
