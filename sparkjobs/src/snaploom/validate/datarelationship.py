"""DataRelationship, and kinds that sources refer to: transformers, metadata, sources."""

import re
from collections.abc import Iterable, Iterator

from snaploom.models.common import LONG, STRING, DataType
from snaploom.models.datarelationship import (
    DataRelationship,
    KeyComponent,
    Normalization,
    Representation,
)
from snaploom.models.datasource import DataSource
from snaploom.models.fieldtransformer import (
    FieldTransformer,
    MetadataApplicator,
    Rename,
    Transformer,
)
from snaploom.models.findings import Finding
from snaploom.policy import fields
from snaploom.policy.references import Scope, key_column_findings
from snaploom.sources.registry import declared
from snaploom.types.merge import can_cast, common_cast, is_numeric
from snaploom.types.schemas import folded_path, path_text, quote, split_path

# FieldTransformer: expressions parse, replacements refer to groups, ranges are sound.

_GROUP = re.compile(r"\$([0-9]+)")


def transformer_findings(resource: FieldTransformer, scope: Scope) -> fields.Findings:
    """Everything that is wrong with one transformer by itself."""
    transformers = [
        (f"spec.transformers[{index}]", transformer)
        for index, transformer in enumerate(resource.spec.transformers)
    ]
    patterns = [pattern for path, each in transformers for pattern in _patterns(each, path)]
    invalid, groups = fields.regex_findings(patterns, resource, scope.judge_text)
    return (
        *invalid,
        *(
            finding
            for path, transformer in transformers
            for finding in _findings(transformer, resource, path, scope)
        ),
        *(
            finding
            for path, transformer in transformers
            if transformer.rename is not None and f"{path}.rename.pattern" in groups
            for finding in _replacement(
                transformer.rename,
                groups[f"{path}.rename.pattern"],
                resource,
                f"{path}.rename",
            )
        ),
    )


def _patterns(transformer: Transformer, path: str) -> Iterator[tuple[str, str | None]]:
    for index, selector in enumerate(transformer.selectors):
        at = f"{path}.selectors[{index}]"
        yield f"{at}.coordinateIncludeRegex", selector.coordinate_include_regex
        yield f"{at}.coordinateExcludeRegex", selector.coordinate_exclude_regex
    if transformer.rename is not None:
        yield f"{path}.rename.pattern", transformer.rename.pattern


def _findings(
    transformer: Transformer, owner: FieldTransformer, path: str, scope: Scope
) -> Iterator[Finding]:
    if transformer.expression is not None:
        sql, at = transformer.expression.sql, f"{path}.expression.sql"
        yield from _expression(sql, owner, at, scope)
    if transformer.rename is None and not transformer.replace_inputs:
        yield _beside(transformer, owner, path)
    if transformer.snapshot_range is not None:
        snapshots = transformer.snapshot_range
        yield from fields.range_findings(
            snapshots.from_, snapshots.to, owner, f"{path}.snapshotRange"
        )


def _replacement(
    rename: Rename, groups: int, owner: FieldTransformer, path: str
) -> Iterator[Finding]:
    named = [int(number[:4]) for number in _GROUP.findall(rename.replacement or "")]
    if any(number > groups for number in named):
        yield owner.finding(
            "SL131",
            f"{path}.replacement",
            "the replacement refers to a group that the pattern does not have",
            found=f"${max(named)}",
            expected=f"at most {groups} group{'' if groups == 1 else 's'}",
            hint="put what is to be kept of the name into parentheses in the pattern",
        )


def _beside(transformer: Transformer, owner: FieldTransformer, path: str) -> Finding:
    change = Transformer.variant_of(transformer)
    return owner.finding(
        "SL165",
        f"{path}.replaceInputs",
        f"{change} gives no field of another name, so that it cannot stand beside its input",
        found="false",
        expected="true",
    )


def _expression(sql: str, owner: FieldTransformer, path: str, scope: Scope) -> fields.Findings:
    facts, findings = fields.expression_findings(sql, owner, path, scope)
    if facts is None:
        return findings
    others = facts.columns_besides("value")
    if others:
        unknown = owner.finding(
            "SL163",
            path,
            "the expression may read `value` only, the field's own value",
            found=", ".join(others),
            expected="value",
            hint="write `value` for the field; an expression over several columns belongs in a "
            "query of a simpleVirtual source",
        )
        return (*findings, unknown)
    return findings


# MetadataApplicator: its regular expressions compile.


def applicator_findings(applicator: MetadataApplicator, scope: Scope) -> fields.Findings:
    """Everything that is wrong with one applicator by itself."""
    patterns = (
        pattern
        for index, selector in enumerate(applicator.spec.field_selectors)
        for pattern in (
            (
                f"spec.fieldSelectors[{index}].coordinateIncludeRegex",
                selector.coordinate_include_regex,
            ),
            (
                f"spec.fieldSelectors[{index}].coordinateExcludeRegex",
                selector.coordinate_exclude_regex,
            ),
        )
    )
    findings, _ = fields.regex_findings(patterns, applicator, scope.judge_text)
    return findings


# DataSource: the checks of its kind, and of the references that every kind has.


def source_findings(source: DataSource, scope: Scope) -> fields.Findings:
    """Everything that is wrong with one source, references included."""
    return (*declared(source).findings(scope), *_references(source, scope))


def _references(source: DataSource, scope: Scope) -> fields.Findings:
    variant = source.spec.variant
    path = f"spec.{DataSource.variant_of(source.spec)}"
    references = (
        ("MetadataApplicator", "metadataApplicators", variant.metadata_applicators),
        ("FieldTransformer", "fieldTransformers", variant.field_transformers),
    )
    return tuple(
        finding
        for kind, field, names in references
        for index, name in enumerate(names)
        for finding in scope.missing(kind, name, source, f"{path}.{field}[{index}]")
    )


# DataRelationship: every source once, keys of one shape, queries that read declared columns.


def relationship_findings(relationship: DataRelationship, scope: Scope) -> Iterator[Finding]:
    """Everything that is wrong with one relationship, references included."""
    first = relationship.spec.representations[0]
    seen: dict[str, int] = {}
    for index, representation in enumerate(relationship.spec.representations):
        path = f"spec.representations[{index}]"
        for place, name in enumerate(representation.data_sources):
            at = f"{path}.dataSources[{place}]"
            yield from scope.missing("DataSource", name, relationship, at)
            if name in seen:
                yield relationship.finding(
                    "SL160",
                    at,
                    f"DataSource/{name} has this key in two ways",
                    found=f"representations {seen[name]} and {index}",
                    expected="each source in one representation",
                )
            seen.setdefault(name, index)
        yield from _shape(relationship, first, representation, path)
        yield from _texts(relationship, index, path)
        for place, component in enumerate(representation.join_key):
            yield from _component(relationship, component, f"{path}.joinKey[{place}]", scope)
    yield from key_column_findings(relationship, scope)


def _shape(
    owner: DataRelationship, first: Representation, other: Representation, path: str
) -> list[Finding]:
    if len(other.join_key) != len(first.join_key):
        return [
            owner.finding(
                "SL161",
                f"{path}.joinKey",
                "the key has another number of components than in the first representation",
                found=str(len(other.join_key)),
                expected=str(len(first.join_key)),
            )
        ]
    return [
        owner.finding(
            "SL162",
            f"{path}.joinKey[{index}].castDataType",
            "this component is compared as another type than in the first representation",
            found=type_text(mine.cast_data_type),
            expected=type_text(theirs.cast_data_type),
            hint=f"write the same castDataType here, which is {type_text(theirs.cast_data_type)} "
            "there, or change both; an omitted castDataType is {string: {}}",
        )
        for index, (mine, theirs) in enumerate(zip(other.join_key, first.join_key, strict=True))
        if mine.cast_data_type != theirs.cast_data_type
    ]


def _texts(owner: DataRelationship, index: int, path: str) -> Iterator[Finding]:
    representations = owner.spec.representations
    for place, mine in enumerate(representations[index].join_key):
        others = (
            one.join_key[place] for one in representations[:index] if place < len(one.join_key)
        )
        for theirs in others:
            cast = _cast_for(mine, theirs)
            if cast is not None:
                types = [type_text(one.fields_[0].data_type) for one in (theirs, mine)]
                yield owner.finding(
                    "SL159",
                    f"{path}.joinKey[{place}].castDataType",
                    "equal values of these types have different texts, so that they do not match",
                    found=f"{theirs.fields_[0].field_name} of type {types[0]} and "
                    f"{mine.fields_[0].field_name} of type {types[1]}, compared as text",
                    expected="one type on both sides, or a castDataType for both",
                    hint=f"give this component in every representation {cast}",
                )
                break


def _cast_for(one: KeyComponent, other: KeyComponent) -> str | None:
    is_text = one.cast_data_type == other.cast_data_type == STRING
    if not is_text or one.query is not None or other.query is not None:
        return None
    return common_cast(_text_of(one), _text_of(other))


def _text_of(component: KeyComponent) -> DataType:
    """The type whose texts a component without a query has once it is normalised."""
    if not component.normalize:
        return component.fields_[0].data_type
    return LONG if Normalization.INTEGER in component.normalize else STRING


def _component(
    owner: DataRelationship, component: KeyComponent, path: str, scope: Scope
) -> fields.Findings:
    names = [field.field_name for field in component.fields_]
    duplicates = fields.duplicate_findings(names, owner, f"{path}.fields")
    return (
        *(f.model_copy(update={"path": f"{f.path}.fieldName"}) for f in duplicates),
        *_normalizable(owner, component, f"{path}.normalize"),
        *_comparable(owner, component.cast_data_type, f"{path}.castDataType"),
        *_castable(owner, component, f"{path}.castDataType"),
        *(_query(owner, component, names, f"{path}.query", scope) if component.query else ()),
    )


def _query(
    owner: DataRelationship, component: KeyComponent, names: list[str], path: str, scope: Scope
) -> fields.Findings:
    facts, findings = fields.expression_findings(component.query or "", owner, path, scope)
    if facts is None:
        hint = _backticks(component.query or "", names).removeprefix("; ")
        return tuple(f.model_copy(update={"hint": hint or f.hint}) for f in findings)
    if facts.folded_columns == {folded_path(name) for name in names}:
        return findings
    differs = owner.finding(
        "SL163",
        path,
        "the query must read exactly the declared fields",
        found=", ".join(facts.columns) or "no column",
        expected=", ".join(names),
        hint="declare every column that the query reads, and no other; case is ignored"
        + _backticks(component.query or "", names),
    )
    return (*findings, differs)


def _backticks(query: str, names: Iterable[str]) -> str:
    read = query.casefold()
    odd = []
    for name in names:
        wanted = path_text(split_path(name) or (name,))
        if "`" in wanted and wanted.casefold() not in read:
            odd.append(wanted)
        elif split_path(name) is None:
            odd.append(quote(name))
        elif "." in wanted and quote(wanted).casefold() in read:
            # In backticks it is one column, without them a field of a struct.
            odd.append(quote(wanted))
    if not odd:
        return ""
    return f"; write {', '.join(odd)} with the backticks, in fieldName and in the query"


def _comparable(owner: DataRelationship, data_type: DataType, path: str) -> Iterator[Finding]:
    reason = _incomparable(data_type)
    if reason is not None:
        yield owner.finding(
            "SL164",
            path,
            f"keys cannot be compared as this type: {reason}",
            found=type_text(data_type),
            expected="a type with an equality, such as {string: {}}",
        )


def _normalizable(owner: DataRelationship, component: KeyComponent, path: str) -> Iterator[Finding]:
    """A finding where the values of a field have no text to normalise; queries give texts."""
    declared, steps = component.fields_[0].data_type, component.normalize
    if not steps or component.query is not None or declared == STRING:
        return
    name, is_number = component.fields_[0].field_name, is_numeric(declared)
    if is_number and steps[0] is Normalization.INTEGER:
        return
    way = "begin it with INTEGER, or leave it out" if is_number else "leave it out"
    yield owner.finding(
        "SL166",
        path,
        "a value of this type has no text that could be normalised so",
        found=f"{', '.join(steps)} of {name} ({type_text(declared)})",
        expected="a field of type string" + (", or INTEGER first" if is_number else ""),
        hint=f"{way} here: it may stand in the other representations only",
    )


def _castable(owner: DataRelationship, component: KeyComponent, path: str) -> Iterator[Finding]:
    """A finding when Spark has no cast from a field's type; types of queries are known later."""
    wanted, declared = component.cast_data_type, component.fields_[0].data_type
    declared = STRING if component.normalize else declared
    if component.query is not None or _incomparable(wanted) or can_cast(declared, wanted):
        return
    yield owner.finding(
        "SL164",
        path,
        "a value of the field's type cannot be cast to this type",
        found=f"{type_text(wanted)}, of {component.fields_[0].field_name} ({type_text(declared)})",
        expected=" or ".join(dict.fromkeys((type_text(declared), "string")))
        + ", or another type to which Spark casts the field",
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
