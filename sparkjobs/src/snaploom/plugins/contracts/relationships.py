"""Relationships of a contract: joins with what was proved of them, and DataRelationships from them.

The standard knows foreign keys between properties. The output is one table, so that both ends are
columns of it: those of the key, as the joined source and the one it is joined to publish them. How
the key is compared, and what publications proved, are custom properties.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue, ValidationError

from snaploom.models.common import ObjectMeta
from snaploom.models.datarelationship import (
    DataRelationship,
    DataRelationshipSpec,
    KeyComponent,
    Representation,
)
from snaploom.models.report import JoinMeasure
from snaploom.models.shortforms import USUAL_NAMES, ShortFormInvalid, read_type
from snaploom.models.windows import Windows
from snaploom.output.entries import ModelNode
from snaploom.output.state import FolderState
from snaploom.plan.tree import JoinNode, JoinTree
from snaploom.plugins.contracts.document import PublishedTable, node_path
from snaploom.types.schemas import INTEGER_BITS, path_text, split_path

PROOF = "snaploomProof"
"""Custom property: the proof for people."""
COUNTS = "snaploomCounts"
"""Custom property: the same for programs."""
KEY = "snaploomRelationship"
"""Custom property: the DataRelationship, as far as it is about the two sources."""
AS_OF = "snaploomAsOf"
"""Custom property of an as-of join: by which time one of the rows of a key is the match."""

Document = dict[str, JsonValue]

# What publications proved of each join.


@dataclass(frozen=True, slots=True)
class JoinProof:
    """Counts of one join over all live snapshots that have it."""

    snapshots: int = 0
    rows: int = 0
    """Rows of the left sides."""
    multiplied: int = 0
    """Rows that joins added: none, or nothing would be published."""
    matched: int = 0
    """Rows of the left sides that found a match."""
    null_keys: int = 0
    """Rows of the left sides whose key has a NULL component."""

    def with_join(self, join: JoinMeasure) -> "JoinProof":
        """The proof with one more snapshot."""
        return JoinProof(
            self.snapshots + 1,
            self.rows + join.in_,
            self.multiplied + join.out - join.in_,
            self.matched + join.matched,
            self.null_keys + join.null_keys,
        )

    @property
    def counts(self) -> JsonValue:
        return {
            "snapshots": self.snapshots,
            "rows": self.rows,
            "multiplied": self.multiplied,
            "matched": self.matched,
            "nullKeys": self.null_keys,
        }

    def __str__(self) -> str:
        # Cut, not rounded: no share below 100 % is written as 100 %.
        share = self.matched * 10_000 // self.rows if self.rows else 0
        matched = f"{share / 100:.2f}".rstrip("0").rstrip(".")
        snapshots = f"{self.snapshots:,} snapshot{'' if self.snapshots == 1 else 's'}"
        return (
            f"{self.multiplied:,} of {self.rows:,} rows multiplied, {matched} % matched, "
            f"in {snapshots}"
        )


def join_proofs(state: FolderState, tree: JoinTree) -> Mapping[int, JoinProof]:
    """Proofs by number of node, of the joins that the newest snapshot has as they are declared."""
    places = {model.model_hash: _places(model.nodes) for model in state.models}
    wanted = _places(tree.joins)
    proofs: dict[str, JoinProof] = {}
    newest: set[str] = set()
    for record in state.snapshots:
        placed = places[record.model_hash]
        joins = {join.child.casefold(): join for join in record.joins}
        newest = {name for name in joins if name in wanted and placed.get(name) == wanted[name]}
        for name in newest:
            proofs[name] = proofs.get(name, JoinProof()).with_join(joins[name])
    numbers = {node.field_name.casefold(): node.number for node in tree.joins}
    return {numbers[name]: proofs[name] for name in newest}


def _places(nodes: Iterable[JoinNode | ModelNode]) -> dict[str, tuple[str, str, str]]:
    return {
        node.field_name.casefold(): (node.source, node.relationship, node.parent.casefold())
        for node in nodes
    }


# Relationships of the contract of an output.


def add_relationships(
    contract: Document, table: PublishedTable, proofs: Mapping[int, JoinProof]
) -> None:
    """Add the joins that are proved to a contract, with the ids that they refer to.

    A key whose component is made of several columns, or of one that is not published, is nothing
    that the standard can refer to.
    """
    tables = contract["schema"]
    document = tables[0] if isinstance(tables, list) else None
    if not isinstance(document, dict):
        return
    found: list[JsonValue] = [
        relationship
        for node in table.tree.joins
        if node.number in proofs
        and (relationship := _relationship(document, table, node, proofs[node.number]))
    ]
    if found:
        document["relationships"] = found


def _relationship(
    document: Document, table: PublishedTable, node: JoinNode, proof: JoinProof
) -> Document | None:
    if isinstance(node.timed, Windows):
        return None  # none of its keys are published
    tree, spec = table.tree, table.bundle.relationship(node.relationship).spec
    parent = tree.by_number[node.parent_number]
    ends = [_end(document, node_path(tree, at), spec, at.source) for at in (parent, node)]
    if not all(ends):
        return None
    # Rows in a list are many of one key, which they refer to.
    source, target = reversed(ends) if node.group_by else ends
    key: JsonValue = {
        "name": node.relationship,
        "representations": [each.dump() for each in _sides(spec, parent.source, node.source)],
    }
    about: dict[str, JsonValue] = {
        "cardinality": "many-to-one", PROOF: str(proof), COUNTS: proof.counts, KEY: key,
    }  # fmt: skip
    if node.timed is not None:
        about[AS_OF] = node.timed.dump()
    return {
        "type": "foreignKey",
        "from": source[0] if len(source) == 1 else list(source),
        "to": target[0] if len(target) == 1 else list(target),
        "customProperties": [{"property": name, "value": value} for name, value in about.items()],
    }


def _sides(spec: DataRelationshipSpec, *sources: str) -> tuple[Representation, ...]:
    """The representations of a key, with no other sources than these."""
    sides = (
        (each, tuple(name for name in each.data_sources if name in sources))
        for each in spec.representations
    )
    return tuple(each.model_copy(update={"data_sources": names}) for each, names in sides if names)


def _end(
    document: Document, place: Sequence[str], spec: DataRelationshipSpec, source: str
) -> list[str]:
    """References to the columns of a source's key; none where one cannot be referred to."""
    found: list[str] = []
    for part in spec.join_key_of(source) or ():
        names = split_path(part.fields_[0].field_name)
        if len(part.fields_) != 1 or names is None:
            return []
        reference = _reference(document, (*place, *names))
        if reference is None:
            return []
        found.append(reference)
    return found


def _reference(document: Document, path: Sequence[str]) -> str | None:
    """A reference by ids to a column, whose steps get them; None where there is none."""
    steps: list[tuple[str, Document, Sequence[JsonValue]]] = [("schema", document, ())]
    at = document
    for name in path:
        while isinstance(items := at.get("items"), dict):
            at = items
            steps.append(("items", at, ()))
        listed = at.get("properties")
        siblings = listed if isinstance(listed, list) else []
        following = _named(siblings, "name", name)
        if following is None:
            return None
        at = following
        steps.append(("properties", at, siblings))
    return "/".join(f"{section}/{_identified(step, beside)}" for section, step, beside in steps)


def _identified(step: Document, siblings: Sequence[JsonValue]) -> str:
    """The id of an element, which gets one that none beside it has."""
    if "id" not in step:
        plain = re.sub(r"[^A-Za-z0-9_-]", "_", str(step.get("name", "element")))
        taken = {one["id"] for one in siblings if isinstance(one, dict) and "id" in one}
        options = (plain, *(f"{plain}_{number}" for number in range(2, len(taken) + 3)))
        rest = dict(step)
        step.clear()
        step |= {"id": next(option for option in options if option not in taken), **rest}
    return str(step["id"])


def _named(listed: Sequence[JsonValue], key: str, name: str) -> Document | None:
    """The element of a name, whatever its case, or of exactly an id."""
    found = (one for one in listed if isinstance(one, dict))
    plain = str.casefold if key == "name" else str
    return next((one for one in found if plain(str(one.get(key, ""))) == plain(name)), None)


# Relationships of any contract, by tables and columns.


@dataclass(frozen=True)
class Column:
    """A column that a relationship refers to."""

    table: str
    path: tuple[str, ...]
    document: Mapping[str, JsonValue] = field(compare=False)

    def __str__(self) -> str:
        return path_text((self.table, *self.path))


@dataclass(frozen=True)
class ForeignKey:
    """A relationship of a contract, with the ends that it has in the contract itself."""

    text: str
    """As the contract has it."""
    source: tuple[Column, ...]
    target: tuple[Column, ...]
    about: Mapping[str, JsonValue]
    """Custom properties by name."""
    fault: str = ""
    """Reason why an end is not known."""


def foreign_keys(contract: Mapping[str, JsonValue]) -> Iterator[ForeignKey]:
    """Return the relationships of all tables and columns, in the order of the contract."""
    tables = listed(contract, "schema")
    for table in tables:
        for raw in listed(table, "relationships"):
            yield _foreign_key(tables, raw, None)
        for column in _all_columns(str(table.get("name")), table, ()):
            for raw in listed(column.document, "relationships"):
                yield _foreign_key(tables, raw, column)


def relationship_statements(
    contract: Mapping[str, JsonValue], table: str
) -> Iterator[tuple[str, str]]:
    """Statements of a contract about relationships between columns of one table."""
    for key in foreign_keys(contract):
        ends = (*key.source, *key.target)
        if not key.fault and {end.table for end in ends} == {table}:
            source, target = (
                ", ".join(path_text(column.path).casefold() for column in side)
                for side in (key.source, key.target)
            )
            yield f"relationship {source} -> {target}", "a foreign key"


def _foreign_key(
    tables: Sequence[Document], raw: Mapping[str, JsonValue], column: Column | None
) -> ForeignKey:
    about = {str(one.get("property")): one.get("value") for one in listed(raw, "customProperties")}
    sources, targets = () if column else _texts(raw.get("from")), _texts(raw.get("to"))
    found = {text: _column(tables, text) for text in (*sources, *targets)}
    source = [column] if column else [found[text] for text in sources]
    target = [found[text] for text in targets]
    unknown = next((text for text, at in found.items() if at is None), "")
    fault = f"{unknown} is no column of this contract" if unknown else ""
    if not fault and (not source or len(source) != len(target)):
        fault = f"{len(source)} columns refer to {len(target)}"
    return ForeignKey(
        f"{column or ', '.join(sources)} -> {', '.join(targets)}",
        tuple(at for at in source if at),
        tuple(at for at in target if at),
        about,
        fault,
    )


def _texts(value: JsonValue) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else (str(value),) if value else ()


def _column(tables: Sequence[Document], text: str) -> Column | None:
    """The column that a reference by ids, or by names with points, is about."""
    text = text.removeprefix("#")
    if "#" in text:
        return None  # of another contract
    if "/" not in text:
        name, *names = text.split(".")
        return _walk(tables, "name", name, [("properties", each) for each in names])
    steps = text.strip("/").split("/")
    pairs = list(zip(steps[::2], steps[1::2], strict=False))
    if len(steps) % 2 or not pairs or pairs[0][0] != "schema":
        return None
    return _walk(tables, "id", pairs[0][1], pairs[1:])


def _walk(
    tables: Sequence[Document], key: str, name: str, steps: Sequence[tuple[str, str]]
) -> Column | None:
    at = _named(tables, key, name)
    table = str(at.get("name")) if at else ""
    path: list[str] = []
    for section, step in steps:
        while at and section == "properties" and isinstance(items := at.get("items"), dict):
            at = items
        if at is None:
            return None
        if section == "items":
            inner = at.get("items")
            at = inner if isinstance(inner, dict) else None
            continue
        at = _named(listed(at, "properties"), key, step)
        path.append(str(at.get("name")) if at else "")
    return Column(table, tuple(path), at) if at and path else None


def _all_columns(
    table: str, document: Mapping[str, JsonValue], above: tuple[str, ...]
) -> Iterator[Column]:
    while isinstance(items := document.get("items"), dict):
        document = items
    for each in listed(document, "properties"):
        path = (*above, str(each.get("name")))
        yield Column(table, path, each)
        yield from _all_columns(table, each, path)


def listed(document: Mapping[str, JsonValue], key: str) -> list[Document]:
    """The objects in a list of a contract; none where it has no such list."""
    found = document.get(key)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


# DataRelationships from the relationships of a contract.


@dataclass(frozen=True)
class ReadRelationships:
    """DataRelationships of a contract."""

    resources: tuple[DataRelationship, ...]
    notes: tuple[str, ...]
    """Relationships that were left out, and guesses, for people."""


def data_relationships(contract: Mapping[str, JsonValue]) -> ReadRelationships:
    """Return a DataRelationship for each foreign key between two tables of a contract.

    Relationships that `snaploom contract` wrote come back as they were declared, as far as the
    output uses them. Of others, tables are taken for DataSources of the same names.
    """
    reader = _Reader()
    for key in foreign_keys(contract):
        reader.add(key)
    return ReadRelationships(tuple(reader.resources()), tuple(reader.notes))


class _Reader:
    def __init__(self) -> None:
        self._found: dict[str, dict[tuple[KeyComponent, ...], list[str]]] = {}
        self._seen: set[tuple[tuple[Column, ...], tuple[Column, ...]]] = set()
        self.notes: list[str] = []

    def add(self, key: ForeignKey) -> None:
        ends = key.source, key.target
        if ends in self._seen and not key.fault:
            return  # the same, at a table and at its column
        self._seen.add(ends)
        try:
            name, sides = self._own(key) if KEY in key.about else self._foreign(key)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            self.notes.append(f"{key.text}: left out, since {place}: {first['msg']}")
            return
        except _LeftOut as why:
            self.notes.append(f"{key.text}: left out, since {why}")
            return
        merged = self._found.setdefault(name, {})
        for side in sides:
            listed = merged.setdefault(side.join_key, [])
            listed.extend(source for source in side.data_sources if source not in listed)

    def resources(self) -> Iterator[DataRelationship]:
        for name, sides in self._found.items():
            representations = tuple(
                Representation(data_sources=tuple(sources), join_key=key)
                for key, sources in sides.items()
            )
            yield DataRelationship(
                metadata=ObjectMeta(name=name),
                spec=DataRelationshipSpec(representations=representations),
            )

    def _own(self, key: ForeignKey) -> tuple[str, Sequence[Representation]]:
        document = key.about[KEY]
        if not isinstance(document, dict):
            raise _LeftOut(f"its {KEY} is no mapping")
        name = ObjectMeta.model_validate({"name": document.get("name")}).name
        spec = {"representations": document.get("representations")}
        return name, DataRelationshipSpec.model_validate(spec).representations

    def _foreign(self, key: ForeignKey) -> tuple[str, Sequence[Representation]]:
        if key.fault:
            raise _LeftOut(key.fault)
        tables = [sorted({column.table for column in side}) for side in (key.source, key.target)]
        if len(tables[0]) != 1 or len(tables[1]) != 1:
            raise _LeftOut("its columns are of several tables")
        ((source,), (target,)) = tables
        if source == target:
            raise _LeftOut(f"both ends are {source}: the other role needs a DataSource of its own")
        words = [_resource_part(text) for text in (source, target, key.source[-1].path[-1])]
        pieces = [words[:2], [words[0], words[2]], *([*words[:2], str(n)] for n in range(2, 999))]
        options = ("-".join(each) for each in pieces if all(each))
        name = next(each for each in options if each not in self._found)
        pairs = [
            self._components(key, one, other)
            for one, other in zip(key.source, key.target, strict=True)
        ]
        sides = ((source, [pair[0] for pair in pairs]), (target, [pair[1] for pair in pairs]))
        representations = [
            Representation.model_validate({"dataSources": [table], "joinKey": parts})
            for table, parts in sides
        ]
        return ObjectMeta.model_validate({"name": name}).name, representations

    def _components(self, key: ForeignKey, one: Column, other: Column) -> tuple[Document, Document]:
        types = [_type_of(one), _type_of(other)]
        cast: Document = {}
        if types[0] == types[1]:
            cast["castDataType"] = types[0]
        elif all(set(each) <= _WHOLE for each in types):
            cast["castDataType"] = {"long": {}}
        else:
            self.notes.append(f"{key.text}: types differ, so that texts are compared")
        parts: list[Document] = [
            {"fields": [{"fieldName": path_text(column.path), "dataType": kind}], **cast}
            for column, kind in zip((one, other), types, strict=True)
        ]
        return parts[0], parts[1]


def _resource_part(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-").lower()


class _LeftOut(Exception):
    """A relationship of a contract is no DataRelationship."""


_WHOLE = {next(iter(read_type(name))) for name in INTEGER_BITS}
_LOGICAL = {
    "string": "string", "integer": "bigint", "boolean": "boolean", "date": "date",
    "timestamp": "timestamp",
}  # fmt: skip
"""Spark's types by logical ones that leave no choice."""


def _type_of(column: Column) -> Document:
    physical = str(column.document.get("physicalType") or "").lower()
    base = physical.partition("(")[0].strip()
    logical = str(column.document.get("logicalType") or "")
    try:
        return read_type(physical)
    except ShortFormInvalid:
        text = USUAL_NAMES.get(base) or _LOGICAL.get(logical)
    if text is None:
        found = physical or logical or "none"
        raise _LeftOut(f"the type of {column} is not known: {found}")
    return read_type(text)
