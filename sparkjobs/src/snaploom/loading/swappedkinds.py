"""Virtual sources that are declared under the name of the other kind (rule W2).

The headings of the early design document had the two kinds swapped. Someone who followed them gets
one explanation, not a dozen findings about missing and unknown fields.
"""

from __future__ import annotations

import re

from snaploom.loading.nodes import Mapping, Node, Scalar
from snaploom.models.codes import make_finding
from snaploom.models.finding import Finding

PLACEHOLDER = re.compile(r"\{\{\s*SNAPSHOT\b", re.IGNORECASE)
"""The beginning of `{{ SNAPSHOT | FORMAT }}`."""

_EXPLANATION = (
    "simpleVirtual is a query over one physical source, at each of its snapshots; complexVirtual "
    "is a query over the latest snapshot of several, with a snapshotQuery and "
    "{{ SNAPSHOT | UNIX_SECONDS }}"
)


def swapped_finding(spec: Node | None, resource: str) -> Finding | None:
    """The explanation, when a DataSource's spec looks like the other kind of virtual source."""
    simple, complex_ = _variant(spec, "simpleVirtual"), _variant(spec, "complexVirtual")
    if simple is not None and (signs := _signs_of_complex(simple)):
        return _explain(resource, "simpleVirtual", "complexVirtual", signs)
    if complex_ is not None and (signs := _signs_of_simple(complex_)):
        return _explain(resource, "complexVirtual", "simpleVirtual", signs)
    return None


def _variant(spec: Node | None, name: str) -> Mapping | None:
    if not isinstance(spec, Mapping) or name not in spec.entries:
        return None
    node = spec.entries[name].node
    return node if isinstance(node, Mapping) else None


def _signs_of_complex(simple: Mapping) -> list[str]:
    signs = [f"`{name}`" for name in ("snapshotQuery", "dataSources") if name in simple.entries]
    if _has_placeholder(simple):
        signs.append("a {{ SNAPSHOT }} placeholder")
    return signs


def _signs_of_simple(complex_: Mapping) -> list[str]:
    if "dataSource" in complex_.entries:
        return ["a single `dataSource`"]
    if "snapshotQuery" in complex_.entries or _has_placeholder(complex_):
        return []
    if not {"dataQuery", "sqlQuery", "query"} & complex_.entries.keys():
        return []
    return ["no `snapshotQuery`", "no {{ SNAPSHOT }} placeholder"]


def _has_placeholder(variant: Mapping) -> bool:
    queries = (variant.entries[name].node for name in ("dataQuery", "sqlQuery", "query")
               if name in variant.entries)  # fmt: skip
    return any(isinstance(query, Scalar) and PLACEHOLDER.search(query.text) for query in queries)


def _explain(resource: str, given: str, meant: str, signs: list[str]) -> Finding:
    return make_finding(
        "SL117",
        f"this is written as {given}, but has the form of {meant}: {_EXPLANATION}",
        resource=resource,
        path=f"spec.{given}",
        found=f"{given} with {' and '.join(signs)}",
        expected=f"{meant}, or {given} in its own form",
        hint=f"rename `{given}` to `{meant}`",
    )
