"""The hash of a plan: equal when the same snapshots would be woven to the same rows.

It covers the tree with the keys of its edges, the rules of each source in it, and the declarations
of these sources, of those that virtual ones read, of their transformers and applicators. What only
chooses among trees (antiPriority, exclusions, the order of configuration, relationships that are
not used) or among snapshots of the root is left out.
"""

from __future__ import annotations

import hashlib
import json

from pydantic import JsonValue

from snaploom.models.datarelationship import DataRelationship
from snaploom.models.datasource import DataSource
from snaploom.models.resource import Resource
from snaploom.planning.bundle import Bundle
from snaploom.planning.reads import reads_of
from snaploom.planning.tree import JoinNode, JoinTree


def plan_hash(bundle: Bundle, tree: JoinTree) -> str:
    """SHA-256 in hexadecimal."""
    others = bundle.output.spec.data_model.other_data_sources
    names = {node.source for node in tree.nodes}
    by_name = {source.name: source for source in bundle.data_sources}
    sources = [by_name[name] for name in reads_of(by_name).reached(names)]
    variants = [source.spec.variant for source in sources]
    applicators = {name for variant in variants for name in variant.metadata_applicators}
    transformers = {name for variant in variants for name in variant.field_transformers}
    relationships = {item.name: item for item in bundle.data_relationships}
    rules: list[JsonValue] = []
    rules.extend(sorted(o.dump_json() for o in others if o.data_source in names))
    parts: JsonValue = [
        tree.root.source,
        [
            _edge(node, relationships[node.relationship], tree.by_number[node.parent_number].source)
            for node in tree.joins
        ],
        rules,
        _specs(sources, {source.name for source in sources}),
        _specs(bundle.metadata_applicators, applicators),
        _specs(bundle.field_transformers, transformers),
    ]
    text = json.dumps(parts, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _edge(node: JoinNode, relationship: DataRelationship, parent: str) -> JsonValue:
    """An edge with the key as both of its ends write it."""
    keys = [relationship.spec.join_key_of(source) or () for source in (parent, node.source)]
    return [
        node.field_name,
        node.source,
        node.parent,
        node.relationship,
        list(node.group_by),
        [[component.dump() for component in key] for key in keys],
    ]


def _specs(resources: tuple[Resource, ...] | list[DataSource], names: set[str]) -> JsonValue:
    dumped = {item.name: item.dump().get("spec") for item in resources if item.name in names}
    return [[name, json.dumps(dumped[name], sort_keys=True)] for name in sorted(dumped)]
