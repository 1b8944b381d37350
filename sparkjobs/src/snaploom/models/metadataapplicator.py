"""MetadataApplicator: metadata to attach to columns, reusable by many sources."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar, Literal, Self

from annotated_types import MaxLen, MinLen
from pydantic import model_validator

from snaploom.models.base import ApiModel, CelRule, contradiction
from snaploom.models.common import Atomic, RegexText, ResourceStatus, StringMap
from snaploom.models.datasource import UsedBy
from snaploom.models.resource import Resource


class ApplicatorBehaviour(StrEnum):
    """Treatment of metadata that a column already has."""

    IGNORE = "IGNORE"
    """Keys that exist stay as they are; absent ones are added."""
    MERGE = "MERGE"
    """Keys that exist are overwritten; the others stay."""
    REPLACE = "REPLACE"
    """All that existed is dropped."""


class CoordinateSelector(ApiModel):
    """Selects fields by their coordinate: names joined by `:`, such as `address:country`.

    Elements of arrays are reached by `list:field`, of maps by `map:key:field` and
    `map:value:field`. Expressions are searched for, not anchored; exclusion wins.
    """

    cel_rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule(
            "has(self.coordinateIncludeRegex) || has(self.coordinateExcludeRegex)",
            "give coordinateIncludeRegex or coordinateExcludeRegex",
        ),
    )

    coordinate_include_regex: RegexText | None = None
    """Fields whose coordinate contains a match; omitted, all."""
    coordinate_exclude_regex: RegexText | None = None
    """Fields whose coordinate contains a match are left out."""

    @model_validator(mode="after")
    def _selects_something(self) -> Self:
        if self.coordinate_include_regex is None and self.coordinate_exclude_regex is None:
            raise contradiction(
                "give coordinateIncludeRegex or coordinateExcludeRegex",
                found="a selector without any of them",
                expected="at least one",
                hint="for all fields, write `coordinateIncludeRegex: ''`",
            )
        return self


class MetadataApplicatorSpec(ApiModel):
    """Metadata, and the fields that it is attached to."""

    behaviour: ApplicatorBehaviour = ApplicatorBehaviour.MERGE
    """Treatment of metadata that a field already has."""
    field_selectors: Annotated[tuple[CoordinateSelector, ...], MinLen(1), MaxLen(256), Atomic]
    """The fields: those that any selector selects."""
    metadata: StringMap
    """Keys and values to attach."""


class MetadataApplicatorStatus(ResourceStatus):
    """Observed state of an applicator."""

    used_by: UsedBy | None = None
    """Resources that refer to it."""


class MetadataApplicator(Resource):
    """Metadata to attach to columns, reusable by many sources."""

    kind: Literal["MetadataApplicator"] = "MetadataApplicator"
    """Name of the kind."""
    spec: MetadataApplicatorSpec
    """Metadata, and the fields that it is attached to."""
    status: MetadataApplicatorStatus | None = None
    """Observed state; written by the operator."""
