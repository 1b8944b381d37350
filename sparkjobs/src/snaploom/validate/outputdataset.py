"""OutputDataset: references, names of fields, the snapshots it takes, checks, and libraries."""

from collections.abc import Iterator

from snaploom.loading.nearmisses import Guesses, did_you_mean, listing
from snaploom.models import common
from snaploom.models.datasource import DataSource
from snaploom.models.findings import Finding
from snaploom.models.outputdataset import (
    FromCron,
    IntervalRules,
    OutputDataset,
    TimestampFormat,
    UsedRelationship,
)
from snaploom.models.windows import Windows
from snaploom.plan.tree import JoinNode, JoinTree
from snaploom.policy.fields import (
    Findings,
    cron_findings,
    duplicate_findings,
    expression_findings,
    instant_findings,
    length_findings,
    range_findings,
    run_findings,
    shortened,
    zone_findings,
)
from snaploom.policy.fileformats import format_of
from snaploom.policy.pods import spark_findings
from snaploom.policy.references import (
    DATA,
    Scope,
    column_findings,
    output_column_findings,
    undeclared_in_output,
)
from snaploom.policy.sqlfunctions import CHANGES_VERDICTS
from snaploom.policy.sqltext import SqlFacts
from snaploom.sources.registry import declared
from snaploom.types.schemas import split_path
from snaploom.validate.outputs import brings, folder_findings, history_finding

# Libraries that Spark needs for the sources of an output, and that only a run can see.


def library_findings(output: OutputDataset, scope: Scope) -> Iterator[Finding]:
    """Libraries that an output's sources need, and that its Spark configuration does not name."""
    wanted: dict[str, str] = {}
    for name in scope.reads.reached(output.spec.data_model.sources):
        kind = declared(scope.sources[name]).table_format
        if kind is not None:
            wanted[kind] = min(name, wanted.get(kind, name))
    for kind, name in sorted(wanted.items()):
        if not brings(output, kind):
            yield output.finding(
                "SL149",
                "spec.run.spark.sparkConf",
                f"DataSource/{name} is a table of {format_of(kind).table}, which Spark reads by a "
                "library that only a run can see",
                found=f"no jar of {format_of(kind).table}",
                expected="its library, for the Spark that is used, on Spark's class path",
            )


# Columns that `checks[]` and `clusterBy` name, as far as they can be judged without data.

_TRUE_OR_FALSE = ("boolean", "")
"""Types of an expectation; of some the text does not show any, and Spark has the last word."""


def check_findings(output: OutputDataset, scope: Scope) -> Iterator[Finding]:
    """Everything that is wrong with the expectations of an output."""
    fields = _fields(output)
    for index, check in enumerate(output.spec.checks):
        path = f"spec.checks[{index}].expression"
        facts, wrong = expression_findings(
            check.expression, output, path, scope, aggregate=True, refused=CHANGES_VERDICTS
        )
        yield from wrong
        if facts is not None and not wrong:
            yield from _not_of_output(output, facts, fields, path)
            yield from _not_declared(output, facts, fields, path, scope)
            yield from _not_boolean(output, facts, check.expression, path)


def cluster_findings(output: OutputDataset, scope: Scope) -> Findings:
    """Columns of `clusterBy` that the output does not have."""
    fields = _fields(output)
    known = {field.casefold() for field in fields}
    outside = tuple(
        output.finding(
            "SL189",
            f"spec.outputFolder.clusterBy[{index}]",
            "the output has no such column",
            found=name,
            expected=f"columns below {listing(fields)}",
            hint=f"for a column of the root, write {DATA}.{name}",
        )
        for index, name in enumerate(output.spec.output_folder.cluster_by)
        if name.partition(".")[0].strip("`").casefold() not in known
    )
    wrong = {finding.path for finding in outside}
    columns = (
        (f"spec.outputFolder.clusterBy[{index}]", name)
        for index, name in enumerate(output.spec.output_folder.cluster_by)
    )
    undeclared = (
        _undeclared("SL189", output, name, split_path(name) or (), path, scope)
        for path, name in columns
        if path not in wrong
    )
    return (*outside, *(finding for found in undeclared for finding in found))


def _fields(output: OutputDataset) -> tuple[str, ...]:
    return (DATA, *(other.field_name for other in output.spec.data_model.other_data_sources))


def _not_of_output(
    output: OutputDataset, facts: SqlFacts, fields: tuple[str, ...], path: str
) -> Iterator[Finding]:
    known = {field.casefold() for field in fields}
    others = [name for name in facts.columns if name.partition(".")[0].casefold() not in known]
    if others:
        yield output.finding(
            "SL188",
            path,
            "the output has no such column",
            found=", ".join(others),
            expected=f"columns below {listing(fields)}",
            hint=did_you_mean(others[0].partition(".")[0], fields)
            or f"for a column of the root, write {DATA}.{others[0]}; for one of another "
            "source begin with its fieldName",
        )


def _not_declared(
    output: OutputDataset, facts: SqlFacts, fields: tuple[str, ...], path: str, scope: Scope
) -> list[Finding]:
    known = {field.casefold() for field in fields}
    return [
        finding
        for name in facts.columns
        if name.partition(".")[0].casefold() in known
        for finding in _undeclared("SL188", output, name, tuple(name.split(".")), path, scope)
    ]


def _undeclared(
    code: str, output: OutputDataset, name: str, parts: tuple[str, ...], path: str, scope: Scope
) -> Findings:
    found = undeclared_in_output(output, parts, scope)
    if found is None:
        return ()
    expected, hint = found
    return (
        output.finding(
            code,
            path,
            "the output has no such column",
            found=name,
            expected=expected,
            hint=hint,
        ),
    )


def _not_boolean(output: OutputDataset, facts: SqlFacts, text: str, path: str) -> Iterator[Finding]:
    if facts.data_type not in _TRUE_OR_FALSE:
        yield output.finding(
            "SL188",
            path,
            "an expectation must be true or false",
            found=f"{shortened(text)} is of type {facts.data_type}",
            expected="a comparison, such as count(*) > 0 or data.amount >= 0",
        )


# Snapshots that an output takes: starts, zones, exclusions, settings that take none at all.

RESOLUTIONS = {
    TimestampFormat.UNIX_SECONDS: (common.NANOS_PER_SECOND, "a second"),
    TimestampFormat.UNIX_MILLISECONDS: (common.NANOS_PER_MILLISECOND, "a millisecond"),
}
"""Shortest time that partition folders can distinguish; ISO 8601 has as many digits as needed."""

_FILTER = "spec.dataModel.rootDataSource.snapshotFilter"


def filter_findings(output: OutputDataset, scope: Scope) -> Findings:
    """Everything that is wrong with an output's choice of snapshots."""
    snapshot_filter = output.spec.data_model.root_data_source.snapshot_filter
    if snapshot_filter.from_interval is not None:
        intervals = snapshot_filter.from_interval
        zone = intervals.interval_start_date.timezone
        path = f"{_FILTER}.fromInterval.intervalStartDate.timezone"
        return (
            *zone_findings(zone, output, path),
            *_common(intervals, intervals.interval_length, output, scope, "fromInterval"),
        )
    ticks = snapshot_filter.from_cron
    assert ticks is not None  # guaranteed by one_of
    return (*_cron(ticks, output), *_common(ticks, ticks.length, output, scope, "fromCron"))


def _cron(ticks: FromCron, output: OutputDataset) -> Findings:
    path = f"{_FILTER}.fromCron"
    return (
        *cron_findings(ticks.schedule, output, f"{path}.schedule"),
        *zone_findings(ticks.time_zone, output, f"{path}.timeZone"),
        *instant_findings(ticks.start_date, output, f"{path}.startDate")[1],
    )


def _common(
    rules: IntervalRules, length: common.TimeOffset, output: OutputDataset, scope: Scope, form: str
) -> Findings:
    path = f"{_FILTER}.{form}"
    length_field = "intervalLength" if form == "fromInterval" else "length"
    excluded = (
        finding
        for index, interval in enumerate(rules.exclude_intervals)
        for finding in range_findings(
            interval.from_, interval.to, output, f"{path}.excludeIntervals[{index}]"
        )
    )
    return (
        *excluded,
        *length_findings(rules.max_snapshot_age, output, f"{path}.maxSnapshotAge"),
        *_resolution(length, output, f"{path}.{length_field}"),
        *_never_published(rules, output, scope, path),
    )


def _resolution(length: common.TimeOffset, output: OutputDataset, path: str) -> Iterator[Finding]:
    partitioned = output.spec.output_folder.snapshot_format.hive_partitioned
    if partitioned is None or partitioned.timestamp_format not in RESOLUTIONS:
        return
    nanos, name = RESOLUTIONS[partitioned.timestamp_format]
    longer = length.model_copy(update={"nano": 0})
    if not longer.is_zero or length.nano >= nanos:
        return
    yield output.finding(
        "SL172",
        path,
        f"intervals are shorter than {name}, the resolution of partition folders",
        found=f"{length.nano} ns, with timestampFormat {partitioned.timestamp_format}",
        expected=f"at least {name}",
    )


def _never_published(
    rules: IntervalRules, output: OutputDataset, scope: Scope, path: str
) -> list[Finding]:
    root = output.spec.data_model.root_data_source.data_source
    if rules.only_closed_intervals and _reads_now(scope.sources.get(root), scope):
        return [_never_closed(root, output, path)]
    return []


def _never_closed(root: str, output: OutputDataset, path: str) -> Finding:
    return output.finding(
        "SL179",
        f"{path}.onlyClosedIntervals",
        "nothing will ever be published: the root is known at the time of reading only, "
        "which always lies in an interval that has not ended",
        found=f"onlyClosedIntervals true, and DataSource/{root} with fromReadTime",
        expected="onlyClosedIntervals false, or a root with fromFieldValue",
        hint=f"write `onlyClosedIntervals: false`, or name a field of DataSource/{root} with "
        "the time in its snapshot.fromFieldValue",
    )


def _reads_now(source: DataSource | None, scope: Scope) -> bool:
    read = None if source is None else declared(source).snapshots_of
    if read is not None:
        source = scope.sources.get(read)
    return source is not None and declared(source).is_read_now


# OutputDataset: its references, the names of its fields, and its checks.

RESERVED_FIELD = "data"
"""Field that holds the columns of a source itself, at every level of the output."""

_MODEL = "spec.dataModel"


def output_findings(output: OutputDataset, scope: Scope) -> Findings:
    """Everything that is wrong with one output, references included; not its join tree."""
    model, folder = output.spec.data_model, output.spec.output_folder
    lists = [
        (model.root_data_source.root_key, f"{_MODEL}.rootDataSource.rootKey"),
        (folder.cluster_by, "spec.outputFolder.clusterBy"),
    ]
    lists.extend(
        (other.group_by, f"{_MODEL}.otherDataSources[{index}].transformations.groupBy.fieldNames")
        for index, other in enumerate(model.other_data_sources)
    )
    lists.extend(
        (tuple(one.name for one in other.windows.aggregates),
         f"{_MODEL}.otherDataSources[{index}].windows.aggregates")
        for index, other in enumerate(model.other_data_sources)
        if other.windows is not None
    )  # fmt: skip
    return (
        *_sources(output, scope),
        *_field_names(output),
        *_histories(output, scope),
        *_timed_rules(output),
        *tuple(
            finding for names, path in lists for finding in duplicate_findings(names, output, path)
        ),
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


def _sources(output: OutputDataset, scope: Scope) -> Iterator[Finding]:
    model = output.spec.data_model
    root = (model.root_data_source.data_source, f"{_MODEL}.rootDataSource.dataSource")
    others = (
        (other.data_source, f"{_MODEL}.otherDataSources[{index}].dataSource")
        for index, other in enumerate(model.other_data_sources)
    )
    first: dict[str, str] = {}
    for name, path in (root, *others):
        yield from scope.missing("DataSource", name, output, path)
        if name in first:
            yield output.finding(
                "SL171",
                path,
                f"DataSource/{name} is listed already",
                found=f"{first[name]} and {path}",
                expected="each source once, the root included",
            )
        first.setdefault(name, path)


def _histories(output: OutputDataset, scope: Scope) -> Iterator[Finding]:
    for index, other in enumerate(output.spec.data_model.other_data_sources):
        source = scope.sources.get(other.data_source)
        if other.snapshot.history is None or source is None:
            continue
        kind = declared(source)
        below = None if kind.snapshots_of is None else scope.sources.get(kind.snapshots_of)
        why = (kind if below is None else declared(below)).no_history
        if why:
            yield history_finding(output, index, why)


def _timed_rules(output: OutputDataset) -> Iterator[Finding]:
    for index, other in enumerate(output.spec.data_model.other_data_sources):
        rule, path = other.timed, f"{_MODEL}.otherDataSources[{index}]"
        if rule is None:
            continue
        path = f"{path}.{rule.place}"
        if other.as_of is not None and other.windows is not None:
            yield output.finding(
                "SL167",
                path,
                "asOf takes one row of a key, and windows leave none",
                found=f"both, for DataSource/{other.data_source}",
                expected="asOf, or windows",
                hint="leave one of them out: LAST of windows gives the newest value; or read the "
                "source a second time by a simpleVirtual one",
            )
        if other.group_by:
            takes = "takes one row of a key" if other.as_of is not None else "aggregate their rows"
            yield output.finding(
                "SL167",
                path,
                f"{rule.place} {takes}, and groupBy takes all of them",
                found=f"both, for DataSource/{other.data_source}",
                expected=f"{rule.place}, or transformations.groupBy",
                hint="leave one of them out",
            )
        if rule.time_zone is not None:
            yield from zone_findings(rule.time_zone, output, f"{path}.timeZone")
        for name, length in rule.lengths.items():
            if length.month or length.year:
                yield output.finding(
                    "SL167",
                    f"{path}.{name}",
                    "months and years have no one length, by which two times could be compared",
                    found=f"{length.year} years and {length.month} months",
                    expected="weeks, days, hours, minutes or seconds",
                    hint="write `30d` for a month, or `365d` for a year",
                )


def timed_findings(output: OutputDataset, tree: JoinTree, scope: Scope) -> Iterator[Finding]:
    """Faults of as-of joins and windows that show once it is known what each source is joined to.

    These are columns that parents do not declare, types without a common order, and sources that
    are joined to one of which windows leave no row.
    """
    places = {
        other.field_name: index
        for index, other in enumerate(output.spec.data_model.other_data_sources)
    }
    for node in tree.joins:
        rule = node.timed
        if rule is None:
            continue
        path = f"{_MODEL}.otherDataSources[{places[node.field_name]}].{rule.place}"
        parent = tree.node(node.parent).source
        yield from column_findings(parent, rule.parent_field, output, f"{path}.parentField", scope)
        fields = rule.child_fields
        columns = [(parent, rule.parent_field)]
        columns.extend((node.source, fields[name]) for name in rule.time_fields)
        declared = [(scope.columns_of(name), column) for name, column in columns]
        found = [None if known is None else known.type_of(column) for known, column in declared]
        types = [common.DataType.variant_of(one) for one in found if one is not None]
        fault = rule.fault(types) if len(types) == len(columns) else ""
        if fault:
            message, _, hint = fault.partition(": ")
            yield output.finding(
                "SL167",
                f"{path}.childField",
                message,
                found="; ".join(
                    f"{column} of DataSource/{name} is {type_}"
                    for (name, column), type_ in zip(columns, types, strict=True)
                ),
                expected="times, or numbers, that compare without a guess",
                hint=hint,
            )
        if isinstance(rule, Windows):
            yield from _window_findings(output, tree, node, rule, path, scope)


def _window_findings(
    output: OutputDataset, tree: JoinTree, node: JoinNode, rule: Windows, path: str, scope: Scope
) -> Iterator[Finding]:
    known = scope.columns_of(node.source)
    for index, one in enumerate(rule.aggregates):
        type_ = None if known is None or one.field is None else known.type_of(one.field)
        variant = "" if type_ is None else common.DataType.variant_of(type_)
        message, _, hint = (one.fault(variant) if variant else "").partition(": ")
        if message:
            yield output.finding(
                "SL167",
                f"{path}.aggregates[{index}].field",
                message,
                found=f"{one.field} of DataSource/{node.source} is {variant}",
                expected=f"a column that {one.function} takes",
                hint=hint,
            )
    for child in tree.children(node.number):
        yield output.finding(
            "SL167",
            path,
            f"DataSource/{child.source} is joined to a source of which windows leave no row",
            found=f"DataSource/{node.source} with windows, and `{child.field_name}` below it by "
            f"DataRelationship/{child.relationship}",
            expected="nothing that is joined to a source with windows",
            hint="rule that join out by `exclusions` of the relationship",
        )


def _field_names(output: OutputDataset) -> Iterator[Finding]:
    partitioned = output.spec.output_folder.snapshot_format.hive_partitioned
    taken = {RESERVED_FIELD: "reserved for the columns of the source itself"}
    if partitioned is not None:
        name = partitioned.field_name
        if name.casefold() == RESERVED_FIELD:
            path = "spec.outputFolder.snapshotFormat.hivePartitioned.fieldName"
            yield _name_taken(output, name, taken[RESERVED_FIELD], path)
        else:
            taken[name.casefold()] = "the partition column"
    for index, other in enumerate(output.spec.data_model.other_data_sources):
        folded, path = other.field_name.casefold(), f"{_MODEL}.otherDataSources[{index}].fieldName"
        if folded in taken:
            yield _name_taken(output, other.field_name, taken[folded], path)
        taken.setdefault(folded, f"the field of DataSource/{other.data_source}")


def _name_taken(output: OutputDataset, name: str, by: str, path: str) -> Finding:
    return output.finding(
        "SL170",
        path,
        f"the name is {by}" if by.startswith("reserved") else f"the name is taken by {by}",
        found=name,
        expected="a name of its own, ignoring case",
    )


def _relationships(output: OutputDataset, scope: Scope) -> Iterator[Finding]:
    listed = set(output.spec.data_model.sources)
    for index, used in enumerate(output.spec.data_model.data_relationships):
        path = f"{_MODEL}.dataRelationships[{index}]"
        yield from scope.missing("DataRelationship", used.name, output, f"{path}.name")
        relationship = scope.relationships.get(used.name)
        if relationship is not None:
            known = relationship.spec.data_sources
            yield from _exclusions(output, used, known, path, scope.guesses)
            if listed <= scope.sources.keys():
                yield from _unused(output, used, listed & set(known), path)


def _exclusions(
    output: OutputDataset,
    used: UsedRelationship,
    known: tuple[str, ...],
    path: str,
    guesses: Guesses,
) -> list[Finding]:
    there = frozenset(known)
    return [
        output.finding(
            "SL175",
            f"{path}.exclusions[{index}].dataSourceSet[{place}]",
            f"DataRelationship/{used.name} has no such source, so there is nothing to exclude",
            found=name,
            expected="a source of the relationship",
            hint=guesses.did_you_mean(name, known),
        )
        for index, exclusion in enumerate(used.exclusions)
        for place, name in enumerate(exclusion.data_source_set)
        if name not in there
    ]


def _unused(
    output: OutputDataset, used: UsedRelationship, joined: set[str], path: str
) -> Iterator[Finding]:
    may_miss = {
        other.data_source
        for other in output.spec.data_model.other_data_sources
        if other.path_missing_mode is common.PathMissingMode.CONTINUE_IGNORE
    }
    if len(joined) >= 2 or joined & may_miss:  # such a source waits for a relationship
        return
    yield output.finding(
        "SL176",
        f"{path}.name",
        f"DataRelationship/{used.name} joins no two sources of this output",
        found=f"only {next(iter(joined))} of its sources" if joined else "none of its sources",
        expected="two sources of the relationship among those of the output",
    )
