"""Codes of findings about relationships, outputs, plans and runs, and the index of all codes."""

from __future__ import annotations

from snaploom.confidential import without_secrets
from snaploom.models.findings import READING, SOURCES, Finding, Severity, error, warning

# Codes of relationships, outputs, runs and indexes: SL16x to SL18x.

OUTPUTS = (
    error(
        "SL160", "Source in two representations",
        "A source has the key of a relationship in two ways.",
        "Keep it in one representation; declare a second relationship for the other key.",
    ),
    error(
        "SL161", "Keys of different length",
        "Representations of a relationship have different numbers of components.",
        "Give every representation the same components, in the same order.",
    ),
    error(
        "SL162", "Key types differ",
        "The same component is compared as different types in two representations.",
        "Write the same castDataType at the same place of every joinKey.",
    ),
    error(
        "SL163", "Query and fields differ",
        "The query of a key component must read exactly the fields that are declared for it.",
        "Declare every column that the query reads, and no other.",
    ),
    error(
        "SL164", "Type cannot be compared",
        "A key cannot be compared as this type, or its field cannot be cast to it.",
        "Use a castDataType such as `{string: {}}`, or convert the field by a query.",
    ),
    error(
        "SL165", "Transformer beside its field",
        "A cast, an expression or a drop is to leave its field as it is: the result would have the "
        "same name as the field, or there would be none.",
        "Make a copy first, by a rename with replaceInputs false, and change the copy.",
    ),
    error(
        "SL170", "Field name taken",
        "A field of the output has a name that is reserved or taken, ignoring case.",
        "Choose another fieldName.",
    ),
    error(
        "SL171", "Source listed twice",
        "A DataSource occurs more than once in an OutputDataset, the root included.",
        "Declare a simpleVirtual source over it for the second role.",
    ),
    error(
        "SL172", "Interval too short for the partition",
        "Intervals are shorter than partition folders can distinguish.",
        "Use a finer timestampFormat or a longer interval.",
    ),
    error(
        "SL173", "Place not absolute",
        "folderUri and sourceUriGlobs must be absolute paths or URIs: what a relative one means "
        "would depend on where a job runs.",
        "Write `/folder/` or `scheme://bucket/folder/`.",
    ),
    error(
        "SL174", "Folders overlap",
        "Two OutputDatasets have the same folder, or one's folder lies in the other's.",
        "Give every OutputDataset a folder of its own.",
    ),
    error(
        "SL175", "Exclusion of an unknown source",
        "An exclusion names a source that the relationship does not have.",
        "Correct the name, or remove it.",
    ),
    warning(
        "SL176", "Relationship not used",
        "A relationship is listed, but joins fewer than two of the listed sources.",
        "Remove it, or add the sources that it should join.",
    ),
    error(
        "SL177", "Target without files",
        "A skipping index is about files that Spark lists. A database, a query over other sources, "
        "and a table of Iceberg or Delta, which keeps its own files, have none.",
        "Index the files that the source reads, or leave the index out.",
    ),
    warning(
        "SL178", "Compression that few can read",
        "JSON Lines compressed with SNAPPY uses Hadoop's framing, which few tools outside Hadoop "
        "and Spark can read.",
        "Set dataCompression to GZIP or NONE.",
    ),
    warning(
        "SL179", "Nothing to do, ever",
        "Settings are legal, but together they mean that nothing will ever happen.",
        "Change one of the settings that the finding names, or remove the resource.",
    ),
    error(
        "SL180", "Length of zero",
        "A length of time must be longer than nothing.",
        "Give one of its parts.",
    ),
    error(
        "SL181", "Circle of outputs",
        "An output reads files that it publishes itself, directly or through other outputs, so "
        "that every publication would ask for the next.",
        "Break the circle at one of the outputs that are named: read the files of its sources "
        "instead, or publish elsewhere.",
    ),
    error(
        "SL182", "Spark setting refused",
        "A setting of `run.spark` is not on the list of harmless ones, has a field of its own, or "
        "takes a name that the operator needs.",
        "Leave it out, or have it added to the list that the message names: in a cluster by the "
        "chart's value `allow`, on a laptop by `--allow`.",
    ),
    error(
        "SL183", "Password of an index",
        "Jobs write an index and queries of other sessions read it, by a URI that holds no secret; "
        "so that both find user and password of OpenSearch outside of the declaration.",
        "Use fromEnvironment, or fromSecret in a cluster.",
    ),
    error(
        "SL184", "Not with an Iceberg table",
        "A setting that `dataFormat: ICEBERG` cannot carry out, or has in another way.",
        "Leave the setting out, or choose another dataFormat for a new folder.",
    ),
    warning(
        "SL185", "Index type not known",
        "The type of an index is none of the built-in ones, so a registered type must bring it.",
        "Correct the name, or register the type where the job runs.",
    ),
    error(
        "SL186", "Index not possible",
        "An index has columns or parameters that its type cannot use.",
        "Give the columns and parameters that the type takes; the reference of indexes lists them.",
    ),
    error(
        "SL187", "Index names clash",
        "Two indexes would be stored under names of which one begins with the other.",
        "Rename a column, leave one index out, or use the form NATIVE.",
    ),
    error(
        "SL188", "Expectation not possible",
        "An expectation (`checks[]`) is not about columns of the output, or is neither true nor "
        "false.",
        "Write a condition over columns of the output, such as `count(*) > 0` or "
        "`count_if(data.amount < 0) = 0`.",
    ),
    error(
        "SL189", "Column not of the output",
        "`clusterBy` names a column that the output does not have.",
        "Write columns of the root as data.column, and those of others as fieldName.data.column.",
    ),
    error(
        "SL190", "Server not allowed",
        "The server of an index, or of a URI, is forbidden, as a metadata service "
        "is; or the server of an index is not among those that the administrator allows.",
        "Name another server; that of an index can be added to the list `endpoints` (chart value "
        "`allow.endpoints`, or `--allow endpoints=HOST:PORT`).",
    ),
)  # fmt: skip


# Codes of planning: SL30x.

PLANNING = (
    error(
        "SL301", "Ambiguous join tree",
        "There are several equally good ways to reach a source from the root.",
        "Give one relationship a lower antiPriority, or exclude sources.",
    ),
    error(
        "SL302", "Source not reachable",
        "No relationship leads from the root to a source, and its pathMissingMode is ERROR.",
        "Add the relationship or the source that the hint names, or set pathMissingMode.",
    ),
    warning(
        "SL303", "Source left out",
        "No relationship leads from the root to a source; its pathMissingMode leaves it out.",
        "Nothing, or add the relationship that the hint names.",
    ),
    error(
        "SL304", "Join tree too deep",
        "A source lies further from the root than maxDepth allows.",
        "Raise maxDepth, or relate the source to one that is nearer to the root.",
    ),
    error(
        "SL305", "Partition shared",
        "Two snapshots would be published into the same partition folder.",
        "Choose a finer timestampFormat; ISO8601_DATE_TIME distinguishes all times.",
    ),
    warning(
        "SL306", "Newest snapshot of an open interval",
        "With preference NEWEST an interval that has not ended is published with what is newest "
        "at that moment, so the result depends on when the run starts.",
        "Set onlyClosedIntervals to true, or prefer OLDEST.",
    ),
    warning(
        "SL307", "Source without snapshots",
        "A source has no snapshot at all: no file matches its globs, or its data is empty.",
        "Check that the data is there, and how the place is spelt.",
    ),
    warning(
        "SL308", "Relationship never used",
        "A relationship could join sources of the output, but the join tree has better ways to all "
        "of them.",
        "Remove it, or lower its antiPriority where it is meant to be used.",
    ),
)  # fmt: skip


# Codes of requests: SL19x.

ASKING = (
    error(
        "SL191", "Request not valid",
        "A command was asked for a name that is not among the resources, or given an option that "
        "it cannot read.",
        "Correct the name or the option.",
    ),
    error(
        "SL192", "Preflight failed",
        "The folder or a source contradicts the declarations, or cannot be reached.",
        "Follow the message; its first word is the reason, which has a section of its own "
        "among the reasons.",
    ),
)  # fmt: skip


# Every code that a finding can have, with its meaning, severity and fix.

CODES = (*READING, *SOURCES, *OUTPUTS, *ASKING, *PLANNING)

CODE_BY_ID = {code.code: code for code in CODES}


def make_finding(
    code: str,
    message: str,
    *,
    resource: str = "",
    path: str = "",
    found: str = "",
    expected: str = "",
    hint: str = "",
    severity: Severity | None = None,
) -> Finding:
    """A finding with the severity of its code.

    Without `hint` the catalogue's is used; `severity` is only for codes whose severity the caller
    decides.
    """
    catalogued = CODE_BY_ID[code]
    grave = catalogued.severity or severity
    assert grave is not None, f"{code} needs a severity"
    return Finding(
        code=code,
        severity=grave,
        resource=resource,
        path=path,
        message=without_secrets(message),
        hint=hint or catalogued.fix,
        found=without_secrets(found),
        expected=expected,
    )
