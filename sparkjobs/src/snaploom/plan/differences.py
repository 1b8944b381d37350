"""Effects of changed declarations on an output, and differences of rows of two snapshots."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum

from pydantic import JsonValue

from snaploom.confidential import visible
from snaploom.models.common import Resource
from snaploom.plan.bundle import Bundle
from snaploom.plan.history import Structure, StructureConflict, StructureNode, merge_structures
from snaploom.policy.secretdetection import names_a_secret, secret_form
from snaploom.types.merge import CommonFields

# Effects of changed declarations on an output, before anything runs; pure data.

_EMPTY = ("{}", "[]")
_SECRET = ".fromPlaintext."
_SHOWN = 200
"""Characters of a value in a line for people."""


class Area(StrEnum):
    """The subject of a difference."""

    DECLARATION = "DECLARATION"
    """A field of a resource."""
    PLAN = "PLAN"
    """The join tree, or how sources are read."""
    SCHEMA = "SCHEMA"
    """The fields of the output."""
    HISTORY = "HISTORY"
    """The snapshots published already."""


@dataclass(frozen=True)
class Difference:
    """One thing that would be otherwise."""

    area: Area
    subject: str
    """Field of the output, or field path of a resource."""
    before: str
    """As it is; empty where there is nothing."""
    after: str
    """As it would be; empty where nothing would be left."""
    effect: str
    is_refused: bool = False

    @property
    def document(self) -> JsonValue:
        return {
            "area": self.area.value,
            "subject": self.subject,
            "before": self.before,
            "after": self.after,
            "effect": self.effect,
            "refused": self.is_refused,
        }

    def __str__(self) -> str:
        sign = "~" if self.before and self.after else "+" if self.after else "-"
        values = " -> ".join(_short(value) for value in (self.before, self.after) if value)
        mark = "!" if self.is_refused else sign
        # Values come from folders as well; the one line feed is ours.
        head = visible(f"{mark} {self.area.value:<11} {self.subject}: {values}")
        return f"{head}\n    {visible(self.effect)}" if self.effect else head


def declared_differences(before: Bundle, after: Bundle) -> tuple[Difference, ...]:
    """Fields of resources that differ, each with its effect in general."""
    old, new = _declared(before), _declared(after)
    return tuple(
        Difference(
            Area.DECLARATION,
            path,
            shown(path, old.get(path, "")),
            shown(path, new.get(path, "")),
            effect_of(path),
        )
        for path in sorted(old.keys() | new.keys())
        if old.get(path) != new.get(path) and not _is_filled(path, old, new)
    )


def _is_filled(path: str, old: Mapping[str, str], new: Mapping[str, str]) -> bool:
    """Whether something empty on one side has members on the other, which are reported instead."""
    if (old.get(path) or new.get(path)) not in _EMPTY:
        return False
    members = old if path in new else new
    return any(each.startswith((f"{path}.", f"{path}[")) for each in members)


def shown(path: str, value: str) -> str:
    """A value, unless it is the one secret that a declaration may have (rule R16), or another."""
    is_secret = _SECRET in path or secret_form(value) or names_a_secret(path, value)
    return "(hidden)" if value and is_secret else value


def tree_differences(before: Structure, after: Structure) -> tuple[Difference, ...]:
    """Joins that change, and the fields of the output that appear and disappear with them."""
    found: list[Difference] = []
    for name in sorted(before.keys() | after.keys()):
        found.extend(_of_field(before.get(name), after.get(name)))
    return tuple(found)


def history_differences(
    published: Structure, after: Structure, *, is_refused: bool
) -> tuple[Difference, ...]:
    """Contradictions between a join tree and everything ever published.

    `is_refused` is whether contradictions are (`incompatibleSchema: FAIL`).
    """
    conflicts = merge_structures(published, after).conflicts
    return tuple(_contradiction(conflict, is_refused=is_refused) for conflict in conflicts)


def _contradiction(conflict: StructureConflict, *, is_refused: bool) -> Difference:
    effect = (
        "refused: a field is joined and grouped as it was for ever; give it a new fieldName, or "
        "publish to a new folder"
        if is_refused
        else "snapshots before and after cannot be read together (incompatibleSchema: WARN)"
    )
    subject = f"{conflict.field_name}: {conflict.aspect}"
    return Difference(Area.HISTORY, subject, conflict.expected, conflict.found, effect, is_refused)


def _of_field(before: StructureNode | None, after: StructureNode | None) -> Iterator[Difference]:
    if before is None and after is not None:
        yield Difference(Area.PLAN, after.field_name, "", _edge(after), "one more join")
        effect = "snapshots that are published already have no such field: NULL when read together"
        yield Difference(Area.SCHEMA, after.field_name, "", _shape(after), effect)
    elif after is None and before is not None:
        yield Difference(Area.PLAN, before.field_name, _edge(before), "", "one join less")
        effect = "new snapshots do without the field: NULL when read together with older ones"
        yield Difference(Area.SCHEMA, before.field_name, _shape(before), "", effect)
    elif before is not None and after is not None:
        if _edge(before) != _edge(after):
            effect = "its rows are found in another way"
            yield Difference(Area.PLAN, after.field_name, _edge(before), _edge(after), effect)
        if _shape(before) != _shape(after):
            effect = "queries over the field have to change"
            yield Difference(Area.SCHEMA, after.field_name, _shape(before), _shape(after), effect)


def _edge(node: StructureNode) -> str:
    grouped = f", grouped by {', '.join(node.group_by)}" if node.group_by else ""
    parent = node.parent or "the root"
    return f"{node.source} joined to {parent} by {node.relationship}{grouped}"


def _shape(node: StructureNode) -> str:
    place = f"{node.parent}.{node.field_name}" if node.parent else node.field_name
    return f"{place} {'ARRAY<STRUCT<...>>' if node.group_by else 'STRUCT<...>'}"


_EFFECTS = (
    ("spec.outputFolder.folderUri", "publishes to another folder, from the first interval on"),
    ("spec.outputFolder.snapshotAutoDelete", "applied to all snapshots after the next publication"),
    ("spec.outputFolder.readerGrace", "applied by the next gc"),
    ("spec.outputFolder", "for snapshots that are published from now on"),
    ("spec.dataModel.rootDataSource.snapshotFilter", "other snapshots become due; published ones "
     "stay"),
    ("spec.dataModel.rootDataSource.rootKey", "checked for snapshots that are published from now "
     "on"),
    ("spec.checks", "checked for snapshots that are published from now on"),
    ("spec.run", "how and when jobs run; rows stay as they are"),
    ("metadata", ""),
)  # fmt: skip


def effect_of(path: str) -> str:
    """The effect of a change at a path, in general."""
    identity, _, field = path.partition(" ")
    if identity.startswith("OutputDataset/"):
        for beginning, effect in _EFFECTS:
            if field.startswith(beginning):
                return effect
    return "snapshots woven from now on; published ones stay until they are restated"


def _declared(bundle: Bundle) -> dict[str, str]:
    resources: Iterable[Resource] = (
        bundle.output,
        *bundle.data_sources,
        *bundle.data_relationships,
        *bundle.metadata_applicators,
        *bundle.field_transformers,
    )
    found: dict[str, str] = {}
    for resource in resources:
        for path, value in _leaves("spec", resource.dump().get("spec")):
            found[f"{resource.identity} {path}"] = value
    return found


def _leaves(path: str, value: JsonValue) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for name, member in value.items():
            yield from _leaves(f"{path}.{name}", member)
    elif isinstance(value, list) and value:
        for index, member in enumerate(value):
            yield from _leaves(f"{path}[{_key(member, index)}]", member)
    else:
        yield path, str(value)


def _key(member: JsonValue, index: int) -> str:
    """Identity of a member of a list: its name, where it has one, else its place."""
    if isinstance(member, Mapping):
        for name in ("fieldName", "name"):
            if isinstance(member.get(name), str):
                return str(member[name])
    return str(index)


def _short(value: str) -> str:
    return value if len(value) <= _SHOWN else f"{value[: _SHOWN - 3]}..."


# The result of comparing the rows of two snapshots; pure data, and its two forms.

MOST_SAMPLES = 1_000
"""Rows of each kind that can be shown: a person looks at fewer, and the driver holds them."""
SAMPLE_COLUMNS = 20
"""Columns of a changed row that a sample shows; it has the number of the others."""
VALUE_LENGTH = 200
"""Characters of a value that a sample shows, as in other messages."""
_TEXT_COLUMNS = 20
"""Columns that the text lists; the JSON form has all."""


class RowChange(StrEnum):
    """The change of a row."""

    ADDED = "ADDED"
    """Its key is only in the second snapshot, or in more of its rows."""
    REMOVED = "REMOVED"
    """Its key is only in the first snapshot, or in more of its rows."""
    CHANGED = "CHANGED"
    """Its key is in both, and a column that both have differs."""


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """A column that differs in some rows."""

    path: str
    """Path of the column; of a struct where one side is NULL as a whole and the other is not."""
    rows: int

    @property
    def document(self) -> JsonValue:
        return {"column": self.path, "rows": self.rows}


@dataclass(frozen=True, slots=True)
class ChangedValue:
    """A column of one row; values are text, None for NULL."""

    path: str
    before: str | None
    after: str | None

    @property
    def document(self) -> JsonValue:
        return {"column": self.path, "before": self.before, "after": self.after}


@dataclass(frozen=True, slots=True)
class RowSample:
    """One row that is not the same."""

    change: RowChange
    key: tuple[tuple[str, str | None], ...]
    """Column and value of each part of `rootKey`, None for NULL."""
    values: tuple[ChangedValue, ...] = ()
    """Columns that differ; none where the whole row is new or gone."""
    omitted: int = 0
    """Columns that differ beside these."""

    @property
    def document(self) -> JsonValue:
        return {
            "change": self.change.value,
            "key": dict(self.key),
            "columns": [value.document for value in self.values],
            "omitted": self.omitted,
        }


@dataclass(frozen=True)
class RowChanges:
    """Numbers of rows and columns that differ, and some of them."""

    added: int
    """Rows whose key is only in the second, or in more of its rows."""
    removed: int
    """Rows whose key is only in the first, or in more of its rows."""
    changed: int
    """Rows with equal keys and other values."""
    unchanged: int
    """Rows with equal keys and equal values."""
    columns: tuple[ColumnChange, ...] = ()
    """Columns that differ, those of the most rows first."""
    samples: tuple[RowSample, ...] = ()
    """Some of the rows, ordered by key within each kind."""

    @property
    def is_same(self) -> bool:
        return not (self.added or self.removed or self.changed)


@dataclass(frozen=True)
class ComparedSnapshot:
    """One side of a comparison."""

    time: str
    sequence: int | None
    """Manifest entry that published it; None where it was woven for the comparison only."""
    rows: int

    def __str__(self) -> str:
        origin = "dry run" if self.sequence is None else f"manifest {self.sequence}"
        return f"{self.time} ({origin}, {self.rows:,} rows)"

    @property
    def document(self) -> JsonValue:
        return asdict(self)


@dataclass(frozen=True)
class DataComparison:
    """Two snapshots of one output, compared."""

    output: str
    key: tuple[str, ...]
    before: ComparedSnapshot
    after: ComparedSnapshot
    fields: CommonFields
    rows: RowChanges

    @property
    def is_same(self) -> bool:
        return self.rows.is_same and self.fields.is_same

    @property
    def document(self) -> JsonValue:
        """For programs; keys are added, never changed or removed."""
        rows = self.rows
        return {
            "output": self.output,
            "same": self.is_same,
            "key": list(self.key),
            "before": self.before.document,
            "after": self.after.document,
            "rows": {
                "added": rows.added,
                "removed": rows.removed,
                "changed": rows.changed,
                "unchanged": rows.unchanged,
            },
            "columns": [column.document for column in rows.columns],
            "schema": self.fields.document,
            "samples": [sample.document for sample in rows.samples],
        }

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        rows = self.rows
        yield f"{self.output}: {self.before} -> {self.after}"
        yield (
            f"rows by {', '.join(self.key)}: {rows.added:,} added, {rows.removed:,} removed, "
            f"{rows.changed:,} changed, {rows.unchanged:,} unchanged"
        )
        yield from (f"+ column {one.path} {one.type}" for one in self.fields.added)
        yield from (f"- column {one.path} {one.type}" for one in self.fields.removed)
        for one in self.fields.retyped:
            doubt = "" if one.is_compared else " (values are not compared)"
            yield f"~ column {one.path} {one.before} -> {one.after}{doubt}"
        for column in rows.columns[:_TEXT_COLUMNS]:
            yield f"~ {column.path}: {column.rows:,} row{'' if column.rows == 1 else 's'}"
        if len(rows.columns) > _TEXT_COLUMNS:
            yield f"~ {len(rows.columns) - _TEXT_COLUMNS} more columns: -o json lists all"
        for sample in rows.samples:
            key = ", ".join(f"{name} = {_shown(value)}" for name, value in sample.key)
            yield f"{_SIGNS[sample.change]} row {key}"
            for value in sample.values:
                yield f"    {value.path}: {_shown(value.before)} -> {_shown(value.after)}"
            if sample.omitted:
                yield f"    {sample.omitted} more columns differ"


_SIGNS = {RowChange.ADDED: "+", RowChange.REMOVED: "-", RowChange.CHANGED: "~"}


def _shown(value: str | None) -> str:
    return "NULL" if value is None else value
