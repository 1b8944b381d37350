"""SkippingIndex: its target exists, its indexes are possible and their names do not clash."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from snaploom.loading.nearmisses import did_you_mean
from snaploom.models.datasource import DataSource
from snaploom.models.findings import Finding
from snaploom.models.skippingindex import Index, ParquetForm, SkippingIndex
from snaploom.policy import fields
from snaploom.policy.addresses import EndpointRules, refusal_of_host
from snaploom.policy.fileformats import format_of
from snaploom.policy.formatfaults import format_findings, target_place
from snaploom.policy.pods import spark_findings
from snaploom.policy.references import Scope
from snaploom.policy.sqlfunctions import CHANGES_VERDICTS
from snaploom.sources.registry import declared

BUILT_IN_TYPES = ("MIN_MAX", "VALUE_SET", "BLOOM_FILTER", "PARTITION")
"""Types that need no registration; each is kept about one column, or an expression."""


def _whole(text: str) -> bool:
    return text.isdecimal() and text.isascii() and len(text) < 19 and int(text) > 0


def _share(text: str) -> bool:
    try:
        return 0 < float(text) < 1
    except ValueError:
        return False


_PARAMETERS: dict[tuple[str, str], tuple[Callable[[str], bool], str]] = {
    ("VALUE_SET", "limit"): (_whole, "a whole number above 0"),
    ("BLOOM_FILTER", "ndv"): (_whole, "a whole number above 0"),
    ("BLOOM_FILTER", "fpp"): (_share, "a number between 0 and 1, such as 0.01"),
}


def index_findings(resource: SkippingIndex, scope: Scope) -> fields.Findings:
    """Everything that is wrong with one skipping index, references included."""
    of_indexes = (
        finding
        for number, index in enumerate(resource.spec.indexes)
        for finding in _index(index, resource, f"spec.indexes[{number}]", scope)
    )
    subjects = (
        f"{index.type} on {index.column or index.expression or ', '.join(index.columns or ())}"
        for index in resource.spec.indexes
    )
    return (
        *_target(resource, scope),
        *of_indexes,
        *fields.duplicate_findings(subjects, resource, "spec.indexes"),
        *_names(resource),
        *_where(resource, scope),
        *_credentials(resource),
        *server_findings(resource, EndpointRules(entries=scope.allow.endpoints)),
        *fields.run_findings(resource.spec.run, resource),
        *spark_findings(resource, scope.allow),
    )


def _target(resource: SkippingIndex, scope: Scope) -> fields.Findings:
    target = resource.spec.target
    if target.data_source is not None:
        path = "spec.target.dataSource"
        source = scope.sources.get(target.data_source)
        missing = scope.missing("DataSource", target.data_source, resource, path)
        return missing if source is None else _source_without_files(resource, source)
    if target.output_dataset is not None:
        return scope.missing(
            "OutputDataset", target.output_dataset, resource, "spec.target.outputDataset"
        )
    if target.path is None:
        return ()
    named = format_of(target.path.format)
    if named.table or named.reader:
        return _without_files(resource, "path.format", named.table or named.name)
    place = target_place(resource.identity)
    return format_findings(target.path.format, dict(target.path.options), scope.allow, place)


def _source_without_files(resource: SkippingIndex, source: DataSource) -> fields.Findings:
    found = declared(source)
    if found.files is not None:
        return ()
    return _without_files(resource, "dataSource", f"{source.name}, which is {found.called}")


def _without_files(resource: SkippingIndex, field: str, found: str) -> fields.Findings:
    return (
        resource.finding(
            "SL177",
            f"spec.target.{field}",
            "an index is about files that Spark reads itself, and this target has none",
            found=found,
            expected="a source or folder of files, such as Parquet, ORC, Avro, CSV or JSON",
        ),
    )


def _index(index: Index, owner: SkippingIndex, path: str, scope: Scope) -> list[Finding]:
    findings = [*_expression(index, owner, path, scope), *_parameters(index, owner, path)]
    if index.columns is not None:
        findings.extend(fields.duplicate_findings(index.columns, owner, f"{path}.columns"))
    if index.type not in BUILT_IN_TYPES:
        findings.append(
            owner.finding(
                "SL185",
                f"{path}.type",
                "this is not a built-in index type, so it must be registered where the job runs",
                found=index.type,
                expected=", ".join(BUILT_IN_TYPES),
                hint=did_you_mean(index.type, BUILT_IN_TYPES),
            )
        )
    elif index.columns is not None:
        findings.append(_impossible(index, owner, f"{path}.columns", "one column", "columns"))
    elif index.type == "PARTITION" and index.expression is not None:
        at = f"{path}.expression"
        findings.append(_impossible(index, owner, at, "a partition column", "an expression"))
    return findings


def _impossible(
    index: Index, owner: SkippingIndex, path: str, expected: str, found: str
) -> Finding:
    return owner.finding(
        "SL186",
        path,
        f"{index.type} is kept about {expected}",
        found=found,
        expected=expected,
        hint="write one index for each column, with `column: NAME`"
        if found == "columns"
        else "write `column: NAME` with a column of the folders' names",
    )


def _expression(index: Index, owner: SkippingIndex, path: str, scope: Scope) -> fields.Findings:
    if index.expression is None:
        return ()
    return fields.expression_findings(index.expression, owner, f"{path}.expression", scope)[1]


def _parameters(index: Index, owner: SkippingIndex, path: str) -> Iterator[Finding]:
    for name, value in index.parameters.items():
        allowed, expected = _PARAMETERS.get((index.type, name), (None, ""))
        if allowed is not None and not allowed(value):
            yield owner.finding(
                "SL186",
                f"{path}.parameters.{name}",
                f"{index.type} cannot use this value of {name}",
                found=value,
                expected=expected,
                hint=f"write {expected}, or leave {name} out",
            )


def _names(resource: SkippingIndex) -> list[Finding]:
    """Names of the version 4 store must be prefix-free (rule S29); NATIVE has no such names."""
    parquet = resource.spec.store.parquet
    if parquet is None or parquet.form is not ParquetForm.XSKIPPER:
        return []
    stored = [
        (f"{(index.column or '').casefold()}_{index.type.casefold().replace('_', '')}", number)
        for number, index in enumerate(resource.spec.indexes)
        if index.column is not None
    ]
    return [
        _clash(resource, first, second)
        for name, first in stored
        for other, second in stored
        if other.startswith(f"{name}_")
    ]


def _clash(resource: SkippingIndex, first: int, second: int) -> Finding:
    indexes = resource.spec.indexes
    return resource.finding(
        "SL187",
        f"spec.indexes[{second}].column",
        "the stored name of one index begins with that of another, so readers would mix them up",
        found=f"{indexes[second].column}, and {indexes[first].type} of {indexes[first].column}",
        expected="names that are not prefixes of each other",
    )


def _where(resource: SkippingIndex, scope: Scope) -> fields.Findings:
    if resource.spec.where is None:
        return ()
    return fields.expression_findings(
        resource.spec.where, resource, "spec.where", scope, refused=CHANGES_VERDICTS
    )[1]


def server_findings(resource: SkippingIndex, rules: EndpointRules) -> Iterator[Finding]:
    """Faults of the server of an index, as far as its name shows.

    The resolved address is judged when it is connected to.
    """
    cluster = resource.spec.store.open_search
    if cluster is None:
        return
    why = refusal_of_host(cluster.host, cluster.port, rules)
    if not why:
        return
    host = f"[{cluster.host}]" if ":" in cluster.host else cluster.host
    place = f"{host}:{cluster.port}"
    listed = replace(rules, entries=(*rules.entries, place))
    can_be_listed = not refusal_of_host(cluster.host, cluster.port, listed)
    yield resource.finding(
        "SL190",
        "spec.store.openSearch.host",
        f"this server is not connected to: {why}",
        found=place,
        expected=", ".join(rules.entries) if rules.is_restricted else "a server of OpenSearch",
        hint=f"or have '{place}' added to the list 'endpoints' (chart value allow.endpoints, "
        f"or --allow endpoints={place})"
        if can_be_listed
        else "name another server",
    )


def _credentials(resource: SkippingIndex) -> list[Finding]:
    """Queries of later sessions find an index by a stored URI, and no secret can stand in it."""
    cluster = resource.spec.store.open_search
    credentials = None if cluster is None else cluster.credentials
    path = "spec.store.openSearch.credentials"
    if credentials is None or credentials.from_plaintext is None:
        return [*fields.variable_findings(credentials, resource, path)]
    return [
        resource.finding(
            "SL183",
            f"{path}.fromPlaintext",
            "queries cannot know a password that stands in the declaration of an index",
            found="fromPlaintext",
            expected="fromEnvironment or fromSecret",
        )
    ]
