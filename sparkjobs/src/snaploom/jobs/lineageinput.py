"""Columns of a woven snapshot, and of what it was woven from: schemas as Spark's JSON has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from snaploom.models.times import EpochNanos


@dataclass(frozen=True)
class ReadColumns:
    """The columns of a source before its transformers."""

    schema: str
    """As they were read."""
    time: EpochNanos
    """Time of the snapshot that was read."""
    below: Mapping[str, ReadColumns] = field(default_factory=dict)
    """Sources of a virtual source, by alias."""


@dataclass(frozen=True)
class WovenColumns:
    """The columns of a snapshot."""

    schema: str
    """As they are written."""
    read: Mapping[str, ReadColumns]
    """Of each source that takes part, by field name."""
