"""DataRelationship: every source once, keys of one shape, queries that read what is declared."""

from __future__ import annotations

from snaploom.models.codes import make_finding
from snaploom.models.common import DataType
from snaploom.models.datarelationship import (
    DataRelationship,
    KeyComponent,
    Representation,
)
from snaploom.models.finding import Finding
from snaploom.planning.validation.fields import Findings, duplicate_findings
from snaploom.planning.validation.queries import expression_findings
from snaploom.planning.validation.scope import Scope


def relationship_findings(relationship: DataRelationship, scope: Scope) -> Findings:
    """Everything that is wrong with one relationship, references included."""
    findings: list[Finding] = []
    first = relationship.spec.representations[0]
    seen: dict[str, int] = {}
    for index, representation in enumerate(relationship.spec.representations):
        path = f"spec.representations[{index}]"
        for place, name in enumerate(representation.data_sources):
            at = f"{path}.dataSources[{place}]"
            findings.extend(scope.missing("DataSource", name, relationship, at))
            if name in seen:
                findings.append(_repeated(relationship, name, seen[name], index, at))
            seen.setdefault(name, index)
        findings.extend(_shape(relationship, first, representation, path))
        for place, component in enumerate(representation.join_key):
            findings.extend(_component(relationship, component, f"{path}.joinKey[{place}]", scope))
    return tuple(findings)


def _repeated(owner: DataRelationship, name: str, first: int, second: int, path: str) -> Finding:
    return make_finding(
        "SL160",
        f"DataSource/{name} has this key in two ways",
        resource=owner.identity,
        path=path,
        found=f"representations {first} and {second}",
        expected="each source in one representation",
        hint="declare a second relationship for the other key",
    )


def _shape(
    owner: DataRelationship, first: Representation, other: Representation, path: str
) -> list[Finding]:
    if len(other.join_key) != len(first.join_key):
        return [
            make_finding(
                "SL161",
                "the key has another number of components than in the first representation",
                resource=owner.identity,
                path=f"{path}.joinKey",
                found=str(len(other.join_key)),
                expected=str(len(first.join_key)),
            )
        ]
    return [
        make_finding(
            "SL162",
            "this component is compared as another type than in the first representation",
            resource=owner.identity,
            path=f"{path}.joinKey[{index}].castDataType",
            found=type_text(mine.cast_data_type),
            expected=type_text(theirs.cast_data_type),
            hint="an omitted castDataType is {string: {}}",
        )
        for index, (mine, theirs) in enumerate(zip(other.join_key, first.join_key, strict=True))
        if mine.cast_data_type != theirs.cast_data_type
    ]


def _component(
    owner: DataRelationship, component: KeyComponent, path: str, scope: Scope
) -> Findings:
    names = [field.field_name for field in component.fields_]
    duplicates = duplicate_findings(names, owner, f"{path}.fields")
    return (
        *(f.model_copy(update={"path": f"{f.path}.fieldName"}) for f in duplicates),
        *_comparable(owner, component.cast_data_type, f"{path}.castDataType"),
        *(_query(owner, component, names, f"{path}.query", scope) if component.query else ()),
    )


def _query(
    owner: DataRelationship, component: KeyComponent, names: list[str], path: str, scope: Scope
) -> Findings:
    facts, findings = expression_findings(component.query or "", owner, path, scope)
    if facts is None:
        return findings
    if facts.folded_columns == {name.casefold() for name in names}:
        return findings
    differs = make_finding(
        "SL163",
        "the query must read exactly the declared fields",
        resource=owner.identity,
        path=path,
        found=", ".join(facts.columns) or "no column",
        expected=", ".join(names),
        hint="declare every column that the query reads, and no other; case is ignored",
    )
    return (*findings, differs)


def _comparable(owner: DataRelationship, data_type: DataType, path: str) -> Findings:
    reason = _incomparable(data_type)
    if reason is None:
        return ()
    return (
        make_finding(
            "SL164",
            f"keys cannot be compared as this type: {reason}",
            resource=owner.identity,
            path=path,
            found=type_text(data_type),
            expected="a type with an equality, such as {string: {}}",
        ),
    )


def _incomparable(data_type: DataType) -> str | None:
    if data_type.map_ is not None:
        return "maps have no equality in Spark"
    if data_type.calendar_interval is not None:
        return "calendar intervals have no equality in Spark"
    if data_type.null is not None:
        return "everything would be NULL, which matches nothing"
    if data_type.array is not None:
        return _incomparable(data_type.array.element_type)
    if data_type.struct is not None:
        inner = (_incomparable(field.data_type) for field in data_type.struct.fields_)
        return next((reason for reason in inner if reason), None)
    return None


def type_text(data_type: DataType) -> str:
    """A data type in short, such as `decimal(10,2)`."""
    if data_type.decimal is not None:
        return f"decimal({data_type.decimal.precision},{data_type.decimal.scale})"
    if data_type.array is not None:
        return f"array<{type_text(data_type.array.element_type)}>"
    if data_type.map_ is not None:
        return f"map<{type_text(data_type.map_.key_type)},{type_text(data_type.map_.value_type)}>"
    if data_type.struct is not None:
        inner = (f"{field.name}:{type_text(field.data_type)}" for field in data_type.struct.fields_)
        return f"struct<{','.join(inner)}>"
    return DataType.variant_of(data_type)
