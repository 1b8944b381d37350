"""FieldTransformer and MetadataApplicator, reusable between sources."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar, Literal, Self

from annotated_types import MaxLen, MinLen
from pydantic import Field, StringConstraints, model_validator

from snaploom.models import common
from snaploom.models.base import ApiModel, CelRule, contradiction
from snaploom.models.datasource import UsedBy
from snaploom.models.shortforms import TYPE

# FieldTransformer: renames, casts, expressions and drops, reusable by many sources (rule W20).


class TransformerSelector(ApiModel):
    """Selects fields by coordinate, by metadata, or by both."""

    cel_rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule(
            "has(self.coordinateIncludeRegex) || has(self.coordinateExcludeRegex) || "
            "has(self.metadata)",
            "give coordinateIncludeRegex, coordinateExcludeRegex or metadata",
        ),
    )

    coordinate_include_regex: common.RegexText | None = None
    """Fields whose coordinate contains a match; omitted, all."""
    coordinate_exclude_regex: common.RegexText | None = None
    """Fields whose coordinate contains a match are left out."""
    metadata: common.StringMap | None = None
    """Fields whose metadata has all these keys with these values."""

    @model_validator(mode="after")
    def _selects_something(self) -> Self:
        given = (self.coordinate_include_regex, self.coordinate_exclude_regex, self.metadata)
        if all(part is None for part in given):
            raise contradiction(
                "give coordinateIncludeRegex, coordinateExcludeRegex or metadata",
                found="a selector without any of them",
                expected="at least one",
                hint="for all fields, write `coordinateIncludeRegex: ''`",
            )
        return self


class Rename(ApiModel):
    """Gives fields a new name: a fixed one, or one made by a pattern."""

    cel_rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule(
            "has(self.to) != (has(self.pattern) && has(self.replacement)) && "
            "has(self.pattern) == has(self.replacement)",
            "give either to, or pattern and replacement",
        ),
    )

    to: Annotated[str, StringConstraints(min_length=1, max_length=512)] | None = None
    """The new name."""
    pattern: common.RegexText | None = None
    """Regular expression that is replaced wherever it is found in the name."""
    replacement: Annotated[str, StringConstraints(max_length=512)] | None = None
    """Replacement; groups are `$1`, `$2` and so on."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        by_pattern = (self.pattern is not None, self.replacement is not None)
        if by_pattern not in ((True, True), (False, False)) or (self.to is None) != all(by_pattern):
            given = {"to": self.to, "pattern": self.pattern, "replacement": self.replacement}
            raise contradiction(
                "give either to, or pattern and replacement",
                found=", ".join(name for name, value in given.items() if value is not None)
                or "none of them",
                expected="only to, or pattern and replacement together",
                hint="write `to` for one name, `pattern` and `replacement` to change a part of it",
            )
        return self


class Cast(ApiModel):
    """Changes the type of fields; a value that cannot be cast becomes NULL."""

    data_type: Annotated[common.DataType, TYPE]
    """The new type."""


class Expression(ApiModel):
    """Computes fields anew."""

    sql: common.SqlText
    """SQL expression over `value`, the field's own value."""


class SnapshotRange(ApiModel):
    """Snapshots from one time up to, and without, another."""

    from_: common.TimestampText | None = Field(default=None, alias="from")
    """First snapshot; omitted, from the beginning."""
    to: common.TimestampText | None = None
    """First snapshot no longer in the range; omitted, without end."""


class Transformer(ApiModel):
    """One change of fields."""

    one_of: ClassVar[tuple[str, ...]] = ("rename", "cast", "expression", "drop")

    rename: Rename | None = None
    """Gives fields a new name."""
    cast: Cast | None = None
    """Changes the type of fields."""
    expression: Expression | None = None
    """Computes fields anew."""
    drop: common.Empty | None = None
    """Leaves fields out."""
    selectors: Annotated[tuple[TransformerSelector, ...], MinLen(1), MaxLen(64), common.Atomic]
    """The fields: columns that any selector selects; fields inside a column are not matched."""
    replace_inputs: bool = True
    """Whether the result takes the place of the field; a rename may stand beside it, as a copy."""
    snapshot_range: SnapshotRange | None = None
    """Snapshots that are changed; omitted, all."""


class FieldTransformerSpec(ApiModel):
    """Changes of fields, one after the other."""

    transformers: Annotated[tuple[Transformer, ...], MinLen(1), MaxLen(64), common.Atomic]
    """The changes, in order."""


class FieldTransformerStatus(common.ResourceStatus):
    """Observed state of a transformer."""

    used_by: UsedBy | None = None
    """Resources that refer to it."""


class FieldTransformer(common.Resource):
    """Renames, casts, expressions and drops of fields, reusable by many sources."""

    kind: Literal["FieldTransformer"] = "FieldTransformer"
    """Name of the kind."""
    spec: FieldTransformerSpec
    """Changes of fields, one after the other."""
    status: FieldTransformerStatus | None = None
    """Observed state; written by the operator."""


# MetadataApplicator: metadata to attach to columns, reusable by many sources.


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

    coordinate_include_regex: common.RegexText | None = None
    """Fields whose coordinate contains a match; omitted, all."""
    coordinate_exclude_regex: common.RegexText | None = None
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
    field_selectors: Annotated[
        tuple[CoordinateSelector, ...], MinLen(1), MaxLen(256), common.Atomic
    ]
    """The fields: those that any selector selects."""
    metadata: common.StringMap
    """Keys and values to attach."""


class MetadataApplicatorStatus(common.ResourceStatus):
    """Observed state of an applicator."""

    used_by: UsedBy | None = None
    """Resources that refer to it."""


class MetadataApplicator(common.Resource):
    """Metadata to attach to columns, reusable by many sources."""

    kind: Literal["MetadataApplicator"] = "MetadataApplicator"
    """Name of the kind."""
    spec: MetadataApplicatorSpec
    """Metadata, and the fields that it is attached to."""
    status: MetadataApplicatorStatus | None = None
    """Observed state; written by the operator."""
