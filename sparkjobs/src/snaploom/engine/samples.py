"""A share of the root's rows, the same in every run and every snapshot: by a hash of their key."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from snaploom.engine.fields import find_field
from snaploom.errors import FieldMissing

_BUCKETS = 1 << 32
"""Equal parts into which hashes fall: fine enough for any share that somebody writes down."""


def sampled(frame: DataFrame, key: Sequence[str], share: float, source: str) -> DataFrame:
    """The rows whose key falls into a share of all hashes.

    `key` is the `rootKey`, `share` is between 0 and 1.

    Raises:
        FieldMissing: the root has no such column in this snapshot.
    """
    columns = []
    for name in key:
        found = find_field(frame.schema, name)
        if found is None:
            raise FieldMissing(
                "the root has no such column in this snapshot",
                resource=f"DataSource/{source}",
                path="spec.dataModel.rootDataSource.rootKey",
                found=name,
                expected="a column of the root",
                hint="correct rootKey, or the root's data",
            )
        columns.append(sf.col(found.expression))
    bucket = sf.pmod(sf.xxhash64(*columns), sf.lit(_BUCKETS))
    return frame.where(bucket < sf.lit(int(share * _BUCKETS)))
