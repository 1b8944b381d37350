"""DataRelationship: which columns of different sources mean the same entity."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar, Literal, Self

from annotated_types import Ge, MaxLen, MinLen
from pydantic import Field, model_validator

from snaploom.models import common
from snaploom.models.base import ApiModel, CelRule, contradiction
from snaploom.models.datasource import UsedBy
from snaploom.models.shortforms import TYPE


class Normalization(StrEnum):
    """Change of a key's text before it is compared.

    NULL stays NULL, and a text that is empty, or becomes so, is NULL: both match nothing.
    """

    TRIM = "TRIM"
    """White space at both ends is cut: blanks, tabs, ends of lines and no-break spaces, which are
    the characters of Unicode's property `White_Space`."""
    UPPER = "UPPER"
    """Letters become capitals, in every script and by the rules of no language: `ß` becomes `SS`,
    and `i` becomes `I` in Turkey too."""
    LOWER = "LOWER"
    """Letters become small, in every script and by the rules of no language."""
    STRIP_LEADING_ZEROS = "STRIP_LEADING_ZEROS"
    """Zeros at the beginning are cut, but for the last character: `007` becomes `7`, `00A1` becomes
    `A1`, and `000` becomes `0`. A sign or a blank in front of a zero keeps it."""
    INTEGER = "INTEGER"
    """The text is read as a whole number of any length: white space around it, a `+`, zeros at the
    beginning, and a point with nothing but zeros behind it are cut, so that `1`, `+1`, `0001` and
    `1.0` become `1`. Anything else is NULL, such as `1.5`, `1e3`, `1,000` and digits of other
    scripts. Of `float` and `double` the value is taken, and it is NULL from 2^24 and 2^53 on,
    where whole numbers are lost."""
    NFC = "NFC"
    """Letters with accents become single characters, as Unicode's form C has them (by Java)."""
    REMOVE_DASHES = "REMOVE_DASHES"
    """Hyphens, dashes and minus signs are removed wherever they stand, so that `-5` becomes `5`."""


class KeyField(ApiModel):
    """A column that a key is made of."""

    field_name: common.ColumnName
    """The column, or a path into structs such as `address.country`. Names with dots, blanks or
    other signs stand in backticks, here and in `query`."""
    data_type: Annotated[common.DataType, TYPE]
    """Its type. Data of another one is taken where its values give the same keys, such as `int` for
    `long`, or where this type holds them without loss, such as a date for a timestamp: they are
    cast to it before they are compared. Otherwise `joinFieldMissingMode` decides."""


class KeyComponent(ApiModel):
    """One component of a key."""

    cel_rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule(
            "has(self.query) || size(self.fields) == 1",
            "a component of several fields needs a query",
        ),
    )

    fields_: Annotated[tuple[KeyField, ...], MinLen(1), MaxLen(16), common.Atomic] = Field(
        alias="fields"
    )
    """The columns that the component is made of."""
    query: common.SqlText | None = None
    """SQL expression over exactly these fields; omitted, the single field itself."""
    normalize: Annotated[tuple[Normalization, ...], MinLen(1), MaxLen(7), common.Unique] | None = (
        None
    )
    """Changes of the text of the field, or of the query's result, in this order; then it is cast to
    `castDataType`. Sides may differ in it. Numbers begin with INTEGER; other types than text and
    numbers have none."""
    cast_data_type: Annotated[common.DataType, TYPE] = common.STRING
    """Type in which both sides are compared; omitted, string. A value that cannot be cast is NULL
    and matches nothing."""

    @property
    def text(self) -> str:
        """The component for people: its query or fields, and how the text is normalised."""
        written = self.query or ", ".join(field.field_name for field in self.fields_)
        return f"{written} ({', '.join(self.normalize)})" if self.normalize else written

    @model_validator(mode="after")
    def _query_for_several_fields(self) -> Self:
        if self.query is None and len(self.fields_) != 1:
            raise contradiction(
                "a component of several fields needs a query",
                found=f"{len(self.fields_)} fields and no query",
                expected="one field, or a query over all of them",
                hint="add a query, such as `query: concat_ws('|', a, b)`; for a key of several "
                "columns, give each column a component of its own in joinKey",
            )
        return self


class Representation(ApiModel):
    """Representation of the key in some sources."""

    data_sources: Annotated[tuple[common.ResourceName, ...], MinLen(1), MaxLen(2000), common.Unique]
    """The sources that write it so."""
    join_key: Annotated[tuple[KeyComponent, ...], MinLen(1), MaxLen(16), common.Atomic]
    """The key's components, in the same order in every representation."""


class DataRelationshipSpec(ApiModel):
    """One entity key, as each source writes it."""

    representations: Annotated[tuple[Representation, ...], MinLen(1), MaxLen(2000), common.Atomic]
    """The ways in which the key is written; a source appears in at most one."""

    @property
    def data_sources(self) -> tuple[str, ...]:
        """Every source that has this key, in the order of the spec."""
        return tuple(name for r in self.representations for name in r.data_sources)

    def join_key_of(self, source: str) -> tuple[KeyComponent, ...] | None:
        """The key as one source writes it; None where the source does not have it."""
        for representation in self.representations:
            if source in representation.data_sources:
                return representation.join_key
        return None

    def normalized_keys(self, *sources: str) -> str:
        """The components that are normalised, as some sources write them; empty without any."""
        texts = (
            f"{source}.{part.text}"
            for source in sources
            for part in self.join_key_of(source) or ()
            if part.normalize
        )
        return ", ".join(texts)


class DataRelationshipStatus(common.ResourceStatus):
    """Observed state of a relationship."""

    used_by: UsedBy | None = None
    """Resources that refer to it."""


class DataRelationship(common.Resource):
    """Columns of different sources that mean the same entity."""

    kind: Literal["DataRelationship"] = "DataRelationship"
    """Name of the kind."""
    spec: DataRelationshipSpec
    """One entity key, as each source writes it."""
    status: DataRelationshipStatus | None = None
    """Observed state; written by the operator."""


# Rows of a join without a match, in a Report.


class KeySpellings(ApiModel):
    """One key as both sides of a join write it."""

    left: common.ShortText
    """Spelling of the source that is joined to."""
    right: common.ShortText
    """Spelling of the source that is joined."""


class NearMiss(ApiModel):
    """Rows without a match that have one once both sides are normalised."""

    normalize: Annotated[tuple[Normalization, ...], MaxLen(7), common.Atomic]
    """Changes of the texts, in their order, after those that the relationship has."""
    rows: Annotated[int, Ge(0)]
    """Rows that have a match then; in an as-of join, rows whose key is there then, at any time."""
    ambiguous: Annotated[int, Ge(0)] = 0
    """Those of them that match several rows then: they would be multiplied."""
    keys: Annotated[tuple[KeySpellings, ...], MaxLen(3), common.Atomic] = ()
    """Samples."""


class UnmatchedRows(ApiModel):
    """Rows of the left side of one join that have a key, and a time, and found no match."""

    child: common.ShortText
    """Field name of the source that was joined."""
    rows: Annotated[int, Ge(0)]
    """Number of these rows."""
    other_times: Annotated[int, Ge(0)] | None = None
    """Of an as-of join, those of them whose key is there, and no row that holds at their time."""
    keys: Annotated[tuple[common.ShortText, ...], MaxLen(3), common.Atomic] = ()
    """Samples of their keys."""
    near_misses: Annotated[tuple[NearMiss, ...], MaxLen(20), common.Atomic] = ()
    """Normalisations that would give some of them a match, the most rows first."""
    not_counted: common.ShortText = ""
    """Reason why samples and near misses are unknown; empty if they are known."""
