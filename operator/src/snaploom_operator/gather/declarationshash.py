"""The hash of a run's declarations: a different hash means that the last result is outdated.

It excludes how and when jobs run: more memory or another schedule changes no row. Of the output
that an index covers only the folder counts; its publications are tracked separately.
"""

from __future__ import annotations

import hashlib
import json

from pydantic import JsonValue

from snaploom.models.datarelationship import DataRelationship
from snaploom.models.datasource import DataSource
from snaploom.models.fieldtransformer import FieldTransformer
from snaploom.models.metadataapplicator import MetadataApplicator
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.skippingindex import SkippingIndex
from snaploom.planning.bundle import Bundle

Declared = DataSource | DataRelationship | MetadataApplicator | FieldTransformer


def declarations_hash(bundle: Bundle) -> str:
    """SHA-256 in hexadecimal."""
    indexed = bundle.indexed_output
    members: tuple[Declared, ...] = (
        *bundle.data_sources,
        *bundle.data_relationships,
        *bundle.metadata_applicators,
        *bundle.field_transformers,
    )
    parts: list[JsonValue] = [
        _without_run(bundle.runnable),
        None if indexed is None else indexed.spec.output_folder.dump(),
        [[member.identity, member.spec.dump()] for member in members],
    ]
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _without_run(resource: OutputDataset | SkippingIndex) -> JsonValue:
    """Its spec, with only those fields of `run` that change the result."""
    spec = resource.spec.dump()
    spec.pop("run", None)
    run = resource.spec.run
    return [resource.identity, spec, run.accept_root_change, run.adopt_folder]
