"""OutputDataset: its references, the names of its fields, and its checks."""

from __future__ import annotations

from snaploom.loading.nearmisses import Guesses
from snaploom.models.codes import make_finding
from snaploom.models.finding import Finding
from snaploom.models.outputdataset import OutputDataset, UsedRelationship
from snaploom.planning.commonchecks.columns import output_column_findings
from snaploom.planning.commonchecks.fields import Findings, duplicate_findings, run_findings
from snaploom.planning.commonchecks.scope import Scope
from snaploom.planning.sparksettings import spark_findings
from snaploom.planning.validation.checks import check_findings, cluster_findings
from snaploom.planning.validation.libraries import library_findings
from snaploom.planning.validation.outputfolder import folder_findings
from snaploom.planning.validation.snapshotfilter import filter_findings

RESERVED_FIELD = "data"
"""Field that holds the columns of a source itself, at every level of the output."""

_MODEL = "spec.dataModel"


def output_findings(output: OutputDataset, scope: Scope) -> Findings:
    """Everything that is wrong with one output, references included; not its join tree."""
    return (
        *_sources(output, scope),
        *_field_names(output),
        *_column_lists(output),
        *output_column_findings(output, scope),
        *_relationships(output, scope),
        *filter_findings(output, scope),
        *folder_findings(output),
        *library_findings(output, scope),
        *check_findings(output, scope),
        *cluster_findings(output, scope),
        *run_findings(output.spec.run, output),
        *spark_findings(output, scope.allow),
    )


def _sources(output: OutputDataset, scope: Scope) -> Findings:
    model = output.spec.data_model
    root = (model.root_data_source.data_source, f"{_MODEL}.rootDataSource.dataSource")
    others = (
        (other.data_source, f"{_MODEL}.otherDataSources[{index}].dataSource")
        for index, other in enumerate(model.other_data_sources)
    )
    findings: list[Finding] = []
    first: dict[str, str] = {}
    for name, path in (root, *others):
        findings.extend(scope.missing("DataSource", name, output, path))
        if name in first:
            findings.append(_listed_twice(output, name, first[name], path))
        first.setdefault(name, path)
    return tuple(findings)


def _listed_twice(output: OutputDataset, name: str, first: str, path: str) -> Finding:
    return make_finding(
        "SL171",
        f"DataSource/{name} is listed already",
        resource=output.identity,
        path=path,
        found=f"{first} and {path}",
        expected="each source once, the root included",
        hint="for a second role, declare a simpleVirtual source over it and list that",
    )


def _field_names(output: OutputDataset) -> Findings:
    partitioned = output.spec.output_folder.snapshot_format.hive_partitioned
    taken = {RESERVED_FIELD: "reserved for the columns of the source itself"}
    findings: list[Finding] = []
    if partitioned is not None:
        name = partitioned.field_name
        if name.casefold() == RESERVED_FIELD:
            path = "spec.outputFolder.snapshotFormat.hivePartitioned.fieldName"
            findings.append(_name_taken(output, name, taken[RESERVED_FIELD], path))
        else:
            taken[name.casefold()] = "the partition column"
    for index, other in enumerate(output.spec.data_model.other_data_sources):
        folded, path = other.field_name.casefold(), f"{_MODEL}.otherDataSources[{index}].fieldName"
        if folded in taken:
            findings.append(_name_taken(output, other.field_name, taken[folded], path))
        taken.setdefault(folded, f"the field of DataSource/{other.data_source}")
    return tuple(findings)


def _name_taken(output: OutputDataset, name: str, by: str, path: str) -> Finding:
    return make_finding(
        "SL170",
        f"the name is {by}" if by.startswith("reserved") else f"the name is taken by {by}",
        resource=output.identity,
        path=path,
        found=name,
        expected="a name of its own, ignoring case",
        hint="choose another fieldName",
    )


def _column_lists(output: OutputDataset) -> Findings:
    model, folder = output.spec.data_model, output.spec.output_folder
    lists = [
        (model.root_data_source.root_key, f"{_MODEL}.rootDataSource.rootKey"),
        (folder.cluster_by, "spec.outputFolder.clusterBy"),
    ]
    lists.extend(
        (other.group_by, f"{_MODEL}.otherDataSources[{index}].transformations.groupBy.fieldNames")
        for index, other in enumerate(model.other_data_sources)
    )
    return tuple(
        finding for names, path in lists for finding in duplicate_findings(names, output, path)
    )


def _relationships(output: OutputDataset, scope: Scope) -> Findings:
    findings: list[Finding] = []
    listed = set(output.spec.data_model.sources)
    for index, used in enumerate(output.spec.data_model.data_relationships):
        path = f"{_MODEL}.dataRelationships[{index}]"
        findings.extend(scope.missing("DataRelationship", used.name, output, f"{path}.name"))
        relationship = scope.relationships.get(used.name)
        if relationship is not None:
            known = relationship.spec.data_sources
            findings.extend(_exclusions(output, used, known, path, scope.guesses))
            if listed <= scope.sources.keys():
                findings.extend(_unused(output, used, listed & set(known), path))
    return tuple(findings)


def _exclusions(
    output: OutputDataset,
    used: UsedRelationship,
    known: tuple[str, ...],
    path: str,
    guesses: Guesses,
) -> list[Finding]:
    there = frozenset(known)
    return [
        make_finding(
            "SL175",
            f"DataRelationship/{used.name} has no such source, so there is nothing to exclude",
            resource=output.identity,
            path=f"{path}.exclusions[{index}].dataSourceSet[{place}]",
            found=name,
            expected="a source of the relationship",
            hint=guesses.did_you_mean(name, known) or "remove it",
        )
        for index, exclusion in enumerate(used.exclusions)
        for place, name in enumerate(exclusion.data_source_set)
        if name not in there
    ]


def _unused(
    output: OutputDataset, used: UsedRelationship, joined: set[str], path: str
) -> list[Finding]:
    if len(joined) >= 2:
        return []
    return [
        make_finding(
            "SL176",
            f"DataRelationship/{used.name} joins no two sources of this output",
            resource=output.identity,
            path=f"{path}.name",
            found=f"only {next(iter(joined))} of its sources" if joined else "none of its sources",
            expected="two sources of the relationship among those of the output",
            hint="remove it, or add the sources that it should join",
        )
    ]
