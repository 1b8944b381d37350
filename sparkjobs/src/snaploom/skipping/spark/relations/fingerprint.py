"""Fingerprint of a reader: everything that can change the meaning of the same bytes (rule S6).

Only what differs from Spark's default is written down, so that a setting that a later Snaploom
learns to watch does not make every index look foreign. An option is left out only where it surely
cannot change a value; unknown options count. Names and defaults are those of Spark 4.3.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from snaploom.policy.fileformats import BUILT_IN, ORC_LEVEL, FileFormat, format_of
from snaploom.skipping.core.definition import ReaderFingerprint
from snaploom.skipping.spark.relations.expressions import Columns, columns_of

Header = Mapping[str, object]
"""First line of a request of the optimizer rule, parsed."""

TIME_ZONE = "spark.sql.session.timeZone"
JVM_ZONE = "zone"
"""Name under which the JVM's own time zone is written down."""

_EVERYWHERE = {
    "spark.sql.caseSensitive": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}
HARMLESS_SETTINGS: Mapping[str, str] = {
    "spark.sql.adaptive.": "how a plan changes while it runs",
    "spark.sql.autoBroadcastJoinThreshold": "how joins are executed",
    "spark.sql.broadcastTimeout": "how long a broadcast may take",
    "spark.sql.catalog.": "which tables there are",
    "spark.sql.catalogImplementation": "where tables are noted",
    "spark.sql.cbo.": "which plan is chosen",
    "spark.sql.codegen.cache.maxEntries": "how many compiled classes are kept",
    "spark.sql.codegen.maxFields": "which plans are compiled as one",
    "spark.sql.codegen.wholeStage": "which plans are compiled as one",
    "spark.sql.defaultCatalog": "which tables a name means",
    "spark.sql.execution.": "how operators work, and how rows go to Python",
    "spark.sql.extensions": "what extensions add is written in an expression, or not used",
    "spark.sql.files.maxPartitionBytes": "how files are split",
    "spark.sql.files.maxPartitionNum": "how files are split",
    "spark.sql.files.maxRecordsPerFile": "how files are written",
    "spark.sql.files.minPartitionNum": "how files are split",
    "spark.sql.files.openCostInBytes": "how files are split",
    "spark.sql.hive.metastore": "where tables are noted",
    "spark.sql.inMemoryColumnarStorage.": "how cached rows are stored",
    "spark.sql.join.preferSortMergeJoin": "how joins are executed",
    "spark.sql.optimizer.dynamicPartitionPruning.": "which files are read",
    "spark.sql.optimizer.excludedRules": "how an expression is written, which is compared",
    "spark.sql.optimizer.nestedSchemaPruning.": "which fields of a file are read",
    "spark.sql.parquet.compression.codec": "how files are written",
    "spark.sql.parquet.output.committer.class": "how files are written",
    "spark.sql.pyspark.": "what errors and plots look like",
    "spark.sql.queryExecutionListeners": "who hears of queries",
    "spark.sql.repl.": "what notebooks show",
    "spark.sql.runSQLOnFiles": "whether a name may be a path",
    "spark.sql.shuffle.": "how rows are distributed",
    "spark.sql.sources.commitProtocolClass": "how files are written",
    "spark.sql.sources.parallelPartitionDiscovery.": "how files are listed",
    "spark.sql.sources.partitionOverwriteMode": "how files are written",
    "spark.sql.sources.useV1SourceList": "which scan reads the same files",
    "spark.sql.statistics.": "which plan is chosen",
    "spark.sql.streaming.": "how streams run",
    "spark.sql.ui.": "what the page of Spark shows",
    "spark.sql.variable.substitute": "what an expression's text is, before it is parsed",
    "spark.sql.warehouse.dir": "where tables are",
}
"""Settings, or how their names begin, that cannot change the value of an expression, each with what
it decides instead. A test compares them with what the classes of Spark's expressions read."""
FORMATS = tuple(sorted(each.name for each in BUILT_IN.values() if each.settings is not None))
"""Formats whose readers are known."""

SETTINGS: tuple[str, ...] = tuple(
    sorted({TIME_ZONE, *_EVERYWHERE}.union(*(each.settings or () for each in BUILT_IN.values())))
)
"""Names of the settings on which readers depend."""

REQUESTED: tuple[str, ...] = (*SETTINGS, *(f"!{prefix}" for prefix in HARMLESS_SETTINGS))
"""Names that the optimizer rule is asked for: settings of readers and, behind `!`, how the names
begin of those that it leaves out of what expressions may read."""

_HARMLESS = frozenset({
    # Which files are read: that is the listing's business, whose every file is matched.
    "path", "paths", "__globpaths__", "__hive_compatible_bucketed_table_insertion__", "basepath",
    "recursivefilelookup", "pathglobfilter", "modifiedbefore", "modifiedafter",
    # How schemas are found: the schema itself is compared, as a whole or column by column.
    "mergeschema", "inferschema", "samplingratio", "preferdate", "ignoreextension",
    # How files are written or split, and what the metastore notes.
    "compression", "codec", "serialization.format", "maxrecordsperfile", "partitionoverwritemode",
    "recordname", "recordnamespace", "quoteall", "ignoreleadingwhitespacewrite", "pretty",
    "parquet.compression", "orc.compress", "lastmodified",
})  # fmt: skip

_SECRET = re.compile("secret|password|token|credential|key", re.IGNORECASE)


def fingerprint(header: Header) -> ReaderFingerprint:
    """Fingerprint of the relation of a request, as far as values depend on it."""
    file_format = format_of(str(header["format"]))
    zone = str(header.get("zone", ""))
    session_zone = _object(header, "settings").get(TIME_ZONE) or zone
    found = {
        **_object(header, "evaluation"),
        JVM_ZONE: zone,
        TIME_ZONE: session_zone,
    }
    if header.get("isOneEvaluation") is False:
        found["settings"] = "changed after the query was planned"
    return ReaderFingerprint(
        format=str(header["format"]),
        options=tuple(
            (name, _unreadable(value) if _SECRET.search(name) else value)
            for name, value in sorted(_lower(_object(header, "options")).items())
            if name not in _HARMLESS
            and not name.startswith("fs.")
            and value.lower() != file_format.option_defaults.get(name)
        ),
        settings=_settings(header, file_format),
        schema=_schema(header, file_format),
        evaluation=tuple(
            (name, _unreadable(str(value)) if _SECRET.search(name) else str(value))
            for name, value in sorted(found.items())
        ),
    )


def is_unchanged(indexed: ReaderFingerprint, listed: Header) -> bool:
    """Whether unchanged files are read as when they were indexed; `listed` lacks file columns."""
    had_zone = JVM_ZONE in dict(indexed.settings)
    time = {"name": "t", "type": "timestamp", "nullable": True, "metadata": {}}
    schema = {"type": "struct", "fields": [time] if had_zone else []}
    now = fingerprint({**listed, "dataSchema": schema})
    evaluation = now.evaluation if indexed.evaluation else ()
    return replace(now, schema=indexed.schema, evaluation=evaluation) == indexed


def partition_columns(header: Header) -> tuple[tuple[str, str], ...]:
    """Name and Spark type of each partition column of the relation of a request, in order."""
    known = columns(header)
    fields = cast(Sequence[Mapping[str, object]], _object(header, "partitionSchema")["fields"])
    found = [(str(field["name"]), known.find((str(field["name"]),))) for field in fields]
    return tuple((name, term.data_type) for name, term in found if term is not None)


def columns(header: Header) -> Columns:
    """The columns of the relation of a request.

    The column of corrupt records is none: its values depend on which columns a query reads.
    """
    corrupt = (_corrupt_record(header),)
    found = columns_of(
        _object(header, "dataSchema"),
        _object(header, "partitionSchema"),
        is_case_sensitive=_is_on(header, "spark.sql.caseSensitive"),
    )
    if not format_of(str(header["format"])).has_corrupt_records:
        return found
    return replace(found, terms=tuple(term for term in found.terms if term.names != corrupt))


def unusable(header: Header) -> str:
    """Reason why no index applies to a relation read this way; empty if one may."""
    mode = _lower(_object(header, "options")).get("mode", "")
    is_by_position = _matches_fields_by_position(header)
    partial = "spark.sql.json.enablePartialResults"
    has_partial = _is_on(header, partial, "true")
    file_format = format_of(str(header["format"]))
    if file_format.settings is None:
        return f"files of format {file_format.name} cannot be indexed: {', '.join(FORMATS)} can"
    if file_format.has_corrupt_records and mode.upper() == "DROPMALFORMED":
        return "with mode DROPMALFORMED the rows of a file depend on the columns that are read"
    if file_format.may_be_by_place and is_by_position:
        return "fields of structs go by position, so what they hold depends on those that are read"
    if partial in file_format.settings and not has_partial:
        return "without spark.sql.json.enablePartialResults columns depend on each other"
    return ""


def _matches_fields_by_position(header: Header) -> bool:
    """Whether ORC's reader looks for fields of structs by position: Spark gives it only some."""
    settings = _object(header, "settings")
    options = _lower(_object(header, "options"))
    names = (ORC_LEVEL, f"spark.hadoop.{ORC_LEVEL}")
    levels = [options.get(ORC_LEVEL), *(settings.get(name) for name in names)]
    return any(str(level) != "1" for level in levels if level is not None)


@dataclass(frozen=True)
class Difference:
    """One difference of a reader from the indexed one."""

    name: str
    """Of the option or setting; `format` and `schema` otherwise."""
    indexed: str
    now: str

    def __str__(self) -> str:
        if self.name == "schema":
            return "the schema is another"
        return f"{self.name} is {self.now or 'not set'}, indexed with {self.indexed or 'not set'}"


def differences(indexed: ReaderFingerprint, now: ReaderFingerprint) -> tuple[Difference, ...]:
    """Differences of a reader from the indexed one; empty if it reads the same."""
    found = (
        [] if indexed.format == now.format else [Difference("format", indexed.format, now.format)]
    )
    found += _differing(indexed.options, now.options)
    found += _differing(indexed.settings, now.settings)
    if not _same_schema(indexed, now):
        found.append(Difference("schema", indexed.schema, now.schema))
    return tuple(found)


def evaluation_differences(
    indexed: ReaderFingerprint, now: ReaderFingerprint
) -> tuple[Difference, ...]:
    """Return the surroundings of expressions that differ from those they were indexed in."""
    return tuple(_differing(indexed.evaluation, now.evaluation))


def _differing(
    indexed: Sequence[tuple[str, str]], now: Sequence[tuple[str, str]]
) -> list[Difference]:
    before, after = dict(indexed), dict(now)
    return [
        Difference(name, before.get(name, ""), after.get(name, ""))
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]


def _same_schema(indexed: ReaderFingerprint, now: ReaderFingerprint) -> bool:
    if indexed.schema == now.schema:
        return True
    if not indexed.schema or not now.schema:
        return False
    before, after = json.loads(indexed.schema), json.loads(now.schema)
    read = format_of(now.format)
    if read.may_be_by_place:
        # Columns of old ORC files go by position, which columns added at the end do not change, nor
        # fields of a struct that a query does not read. Types are compared term by term.
        shorter, longer = sorted(([name for name, _ in each] for each in (before, after)), key=len)
        return longer[: len(shorter)] == shorter
    return read.has_footers and _is_part(after, before)


def _is_part(part: object, whole: object) -> bool:
    """Whether schema JSON is that of a whole schema with fields of structs left out.

    Spark leaves out those that a query does not read, before the optimizer rule sees the relation.
    """
    match part, whole:
        case {"fields": list(some), **others}, {"fields": list(every), **those}:
            by_name = {field["name"]: field for field in every}
            return others == those and all(
                _is_part(field, by_name.get(field["name"])) for field in some
            )
        case dict(), dict():
            return part.keys() == whole.keys() and all(
                _is_part(value, whole[name]) for name, value in part.items()
            )
    return part == whole


def _unreadable(value: str) -> str:
    """Hash that distinguishes two values without revealing them: an index is readable by many."""
    return "sha256:" + hashlib.sha256(value.encode()).hexdigest()[:16]


def _settings(header: Header, file_format: FileFormat) -> tuple[tuple[str, str], ...]:
    given = _object(header, "settings")
    watched = {**_EVERYWHERE, **(file_format.settings or {})}
    found = {
        name: str(given[name])
        for name, default in watched.items()
        if given.get(name) is not None and str(given[name]).lower() != default
    }
    zone = str(header.get("zone", ""))
    session_zone = str(given.get(TIME_ZONE) or zone)
    if _depends_on_zone(header, file_format, found):
        found[TIME_ZONE] = session_zone
        found[JVM_ZONE] = zone
    elif "timestamp" in {
        term.data_type for term in columns_of(_object(header, "partitionSchema"), {}).terms
    }:  # Spark parses values in paths in the session's time zone.
        found[TIME_ZONE] = session_zone
    return tuple(sorted(found.items()))


def _depends_on_zone(header: Header, file_format: FileFormat, found: Mapping[str, str]) -> bool:
    """Whether instants depend on a time zone.

    CSV and JSON have local times, ORC converts to the JVM's zone, and the old calendar that LEGACY
    stands for was a local one.
    """
    if '"timestamp"' not in json.dumps(header["dataSchema"]):
        return False
    if file_format.are_columns_joint:
        return True
    options = _lower(_object(header, "options"))
    modes = [value for name, value in options.items() if "rebasemode" in name]
    modes += [value for name, value in found.items() if "RebaseMode" in name]
    is_converted = found.get("spark.sql.parquet.int96TimestampConversion") is not None
    return is_converted or any(mode.upper() != "CORRECTED" for mode in modes)


def _schema(header: Header, file_format: FileFormat) -> str:
    """Columns with their types where one column's value depends on the others, else nothing."""
    if file_format.are_columns_joint:
        top = columns_of(_object(header, "dataSchema"), {}).terms
        found = [[term.key, term.data_type] for term in top if len(term.names or ()) == 1]
        return json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    if file_format.has_footers and _is_on(header, "spark.sql.parquet.fieldId.read.enabled"):
        return json.dumps(header["dataSchema"], sort_keys=True, separators=(",", ":"))
    return ""


def _corrupt_record(header: Header) -> str:
    setting = "spark.sql.columnNameOfCorruptRecord"
    default = str(_object(header, "settings").get(setting) or "_corrupt_record")
    return _lower(_object(header, "options")).get("columnnameofcorruptrecord", default)


def _is_on(header: Header, setting: str, default: str = "false") -> bool:
    value = _object(header, "settings").get(setting)
    return str(default if value is None else value).lower() == "true"


def _object(header: Header, name: str) -> Mapping[str, object]:
    return cast(Mapping[str, object], header[name])


def _lower(options: Mapping[str, object]) -> dict[str, str]:
    return {name.lower(): str(value) for name, value in options.items()}
