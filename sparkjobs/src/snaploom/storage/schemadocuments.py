"""Schemas and data models as documents beside the log (rule P13).

Both are stored by their content, so that snapshots that share one share the document, and writing
one again changes nothing. They are written before the commit that refers to them; one that no
entry refers to harms nothing and is not collected.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

from snaploom.errors import ObjectAlreadyExists
from snaploom.planning.schemas import parse_schema
from snaploom.storage import layout
from snaploom.storage.documentparser import (
    DOCUMENT,
    MANIFEST_FORMAT,
    corrupt,
    get_bounded,
    parse_json,
)
from snaploom.storage.entries import ModelNode
from snaploom.storage.objectstore import STORE_FAILURES, ObjectStore
from snaploom.storage.state import FolderState

if TYPE_CHECKING:
    from snaploom.planning.tree import JoinTree

_log = logging.getLogger(__name__)


def read_schema(store: ObjectStore, schema_hash: str) -> str:
    """Read a schema document, as `StructType.json()` gives it.

    Raises:
        ObjectNotFound: it is not there.
        ManifestCorrupt: it does not match its name, or no schema of types that are Spark's own.
    """
    key = layout.schema_key(schema_hash)
    content = get_bounded(store, key, DOCUMENT)
    if layout.content_hash(content) != schema_hash:
        raise corrupt(f"{store.uri}{key}", "a document that does not match its name")
    try:
        text = content.decode("utf-8")
        parse_json(content, f"{store.uri}{key}", DOCUMENT)
        parse_schema(text, "")
    except ValueError as error:
        raise corrupt(f"{store.uri}{key}", str(error)) from error
    return text


def store_schema(store: ObjectStore, schema: str) -> str:
    """Store a schema document; returns its hash."""
    content = schema.encode()
    schema_hash = layout.content_hash(content)
    put_content(store, layout.schema_key(schema_hash), content)
    return schema_hash


def store_model(store: ObjectStore, nodes: tuple[ModelNode, ...]) -> str:
    """Store a data model; returns its hash."""
    content = _model_document(nodes)
    model_hash = layout.content_hash(content)
    put_content(store, layout.data_model_key(model_hash), content)
    return model_hash


def model_nodes(tree: JoinTree) -> tuple[ModelNode, ...]:
    """The tree as the manifest keeps it."""
    return tuple(
        ModelNode(
            field_name=node.field_name,
            parent=node.parent,
            group_by=node.group_by,
            source=node.source,
            relationship=node.relationship,
        )
        for node in tree.nodes
    )


def store_merged_model(store: ObjectStore, state: FolderState) -> None:
    """Write the merged model for people if the last entry added to it; the log is authoritative."""
    if state.models[-1].first_seen != state.seq:
        return
    try:
        store.put(layout.MERGED_DATA_MODEL, _model_document(tuple(state.merged_model.values())))
    except STORE_FAILURES as error:
        _log.warning("%s is not up to date: %s", layout.MERGED_DATA_MODEL, error.message)


def _model_document(nodes: tuple[ModelNode, ...]) -> bytes:
    document = {"format": MANIFEST_FORMAT, "nodes": [node.dump() for node in nodes]}
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode() + b"\n"


def put_content(store: ObjectStore, key: str, content: bytes) -> None:
    """Put a document whose key follows from its content; an existing one stays."""
    try:
        store.put_if_absent(key, content)
    except ObjectAlreadyExists:
        return
