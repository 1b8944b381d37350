"""Spark's failures as errors of Snaploom: one line, no stack trace, and what to do."""

import itertools
import json
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import unescape

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from snaploom import errors
from snaploom.policy.fileformats import NULL_TEXT

# Spark's failures as errors of Snaploom: one line, no stack trace, and a fix.

# PySpark logs every refused query with its stack trace; what it means is in the error.
for _name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
    logging.getLogger(_name).setLevel(logging.CRITICAL)

LONGEST_MESSAGE = 600
"""Characters of Spark's text that are kept: enough for the sentence, not for a plan."""
DEEPEST_CAUSE = 12
"""Causes that are followed; Spark nests five or six."""

_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]")
_FILE = re.compile(
    r"(?:reading file|read file:|does not exist:|footer for file:?) ?'?"
    r"((?:[A-Za-z][\w+.-]*:)?/.+?)'?(?=\.?\s*(?:SQLSTATE|Could not|Data type|File does|\n|$)|\. )"
)
# Blanks are looked at from their first one only: each of many would look at all after it.
_AFTER_MESSAGE = re.compile(r"(?:^|(?<=\S))\s*+SQLSTATE:.*|\n.*", re.DOTALL)
_ABOUT_FILE = re.compile(r"^Encountered error while reading file .+?\. (?=[A-Z])")
"""The file stands under `found` as well, where it is easier to see."""
_ANSI_ADVICE = re.compile(
    r"\. If necessary set \S* to \S* to bypass this error(?:, and return NULL instead)?"
)
"""A setting that a run fixes: without ANSI, rows would change in silence."""
_EXPRESSION = re.compile(
    r"^== SQL \(.{1,80}\) ==\n(?P<line>.{1,2000})\n(?P<blank> *)(?P<mark>\^+)$", re.M
)
"""The part of a query at which Spark failed, which it underlines."""
_FRAMES = re.compile(
    r"(?m)(?:Traceback \(most recent call last\):\n)?"
    r"(?:^[ \t|]*File \"[^\"\n]*\", line \d+.*\n?(?:^[ \t|]{4,}.*\n?)*)+"
)
"""Frames of a traceback of Python, whose source lines may hold anything: no rule looks at them."""
_JAVA_FRAMES = re.compile(r"\n[ \t]+at .*")
_EXCEPTION_NAME = re.compile(r"^(?:(?:[a-z]\w*\.)+[A-Z]\w*(?:Exception|Error): )+")
_TITLE = re.compile(r"<title>([^<]+)</title>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str]
    error: type[errors.SnaploomError]
    hint: str
    expected: str | None = None
    message: str | None = None
    """Its meaning, where Spark's sentence only has the value found."""
    field: str | None = None
    """The field that is wrong whatever was at work, with names of groups in braces."""


def _rule(
    pattern: str,
    error: type[errors.SnaploomError],
    hint: str,
    expected: str | None = None,
    message: str | None = None,
    field: str | None = None,
) -> _Rule:
    return _Rule(re.compile(pattern), error, hint, expected, message, field)


_HEADER_HINT = (
    'leave formatOptions enforceSchema out, which matches columns by name; "true" takes them by '
    "their place, whatever the header has: declare schemaFields with it"
)
_TYPE_HINT = (
    "the file's type differs from the declared or inferred one: correct schemaFields, or rewrite "
    "the file"
)
_OTHER_TYPE = "a column of a file has a type that cannot be read as the declared one"

MORE_MEMORY = (
    "raise run.spark.driver.memory (on a cluster run.spark.executor.memory too), as far as the "
    "machine has it, such as to twice as much; or have less in memory at once: fewer rows a key of "
    "a groupBy, fewer snapshots at a time, and less that runs beside it"
)
"""Hint where memory is used up."""
OF_WORKERS = (
    "set PYSPARK_PYTHON to the path of a Python that has Snaploom, on every machine on which Spark "
    "runs Python's workers, before the session starts"
)
"""Hint where workers lack a package."""

_RULES = (
    _rule(
        r"(?P<found>ModuleNotFoundError: No module named '(?:snaploom|pyarrow)\b[^'\n]{0,80}')",
        errors.SnaploomError,
        OF_WORKERS,
        "workers whose Python has Snaploom",
        "Spark's Python workers run another Python than this process",
    ),
    _rule(
        r"No space left on device|Read-only file system|Disk quota exceeded",
        errors.FolderNotWritable,
        "make room, or make the folder (and Spark's scratch folder) writable, and run again",
        "folders that take writes, with room for the data",
        "a folder refuses writes",
    ),
    _rule(
        r"\b(?:PSQLException|SQL\w*Exception|JdbcSQL\w+): ",
        errors.SourceNotReadable,
        "the database did not answer a read that it had begun: look at it, and run again",
        "a table that stays, and a database that answers, while it is read",
    ),
    _rule(
        r"(?m)Class \S+FileSystem not found|No FileSystem for scheme|software[./]amazon[./]\S+$",
        errors.SourceNotReadable,
        "add the jars of its client to Spark's classpath, in the version of Spark's own Hadoop; "
        "s3: needs hadoop-aws, spark-hadoop-cloud and Amazon's SDK",
        "a scheme that this Spark can read and write",
        "Spark has no client for this scheme, or a part of it",
    ),
    _rule(
        r"AccessDeniedException|Status Code: 40[13]|SignatureDoesNotMatch|InvalidAccessKeyId",
        errors.SourceNotReadable,
        "check the credentials in the environment of the process, and their permissions",
        "credentials that the store accepts",
        "the store refuses Spark's credentials",
    ),
    _rule(
        r"\[FAILED_READ_FILE\.PARQUET_COLUMN_DATA_TYPE_MISMATCH\]",
        errors.SourceSchemaInvalid,
        _TYPE_HINT,
        "files whose columns have the declared types",
    ),
    _rule(
        r"(?P<found>(?<=Parquet type: )[^.\n]{1,200}|(?<=The )data type TIME\b)",
        errors.SourceSchemaInvalid,
        "write times in microseconds (pandas by to_parquet(..., coerce_timestamps='us'), PyArrow "
        "by write_table with the same, Polars by cast(pl.Datetime('us'))), fractions of two bytes "
        "as float32, and UUIDs and times of day as texts",
        "columns of types that Spark has",
        "a column has a type that Spark has not, such as times in nanoseconds",
    ),
    _rule(
        r"Class (?P<found>\S{1,200}Codec) was not found",
        errors.SourceNotReadable,
        "write the file with another codec, such as ZSTD or SNAPPY; or add the jar of this one to "
        "Spark's classpath",
        "files compressed by a codec that this Spark has",
        "a file is compressed by a codec that this Spark has not",
    ),
    _rule(
        r"Cannot convert Avro (?P<found>field '[^']{0,300}' to SQL field "
        r"[^(]{1,300}\(avroType = .{1,300}\))",
        errors.SourceSchemaInvalid,
        _TYPE_HINT,
        "files whose columns have the declared types",
        _OTHER_TYPE,
    ),
    _rule(
        r"ORC does not support type conversion from file type (?P<found>.+) \(\d+\) "
        r"to reader type (?P<expected>.+) \(\d+\)",
        errors.SourceSchemaInvalid,
        _TYPE_HINT,
        message=_OTHER_TYPE,
    ),
    _rule(
        r"ClassCastException: (?P<found>\S.*) is not a group",
        errors.SourceSchemaInvalid,
        _TYPE_HINT,
        "files whose columns have the declared types",
        _OTHER_TYPE,
    ),
    _rule(
        r"CSV header does not conform to the schema.*\n\s*Header: (?P<found>.*)\n"
        r"\s*Schema: (?P<expected>.*)",
        errors.SourceSchemaInvalid,
        _HEADER_HINT,
        message="the header of a CSV file is not that of the schema, name by name",
    ),
    _rule(
        r"Number of column in CSV header .*\n\s*(?P<found>Header length: \d+), "
        r"(?P<expected>schema size: \d+)",
        errors.SourceSchemaInvalid,
        _HEADER_HINT,
        message="the header of a CSV file has more or fewer columns than the schema",
    ),
    _rule(
        r"(?P<found>Unexpected character \(.{1,10} \(code 65279[^)]{0,20}\)\)|"
        r"position is negative)",
        errors.SourceNotReadable,
        "JSON in UTF-16 or UTF-32 needs formatOptions encoding, and in lines it may not begin with "
        "a byte order mark: convert the files to UTF-8, such as by `iconv -f UTF-16 -t UTF-8`",
        "JSON in UTF-8, or in the character set of formatOptions encoding",
        "the bytes of a file are not of the character set that it is read in",
    ),
    _rule(
        r"(?P<found>Cannot parse the (?:field name '[^']{0,300}' and the )?value .{1,300}? "
        r"(?:of the JSON token type VALUE_STRING to target|as target) .{1,300})",
        errors.SourceNotReadable,
        "declare the column as string in schemaFields, and cast it by a fieldTransformer, which "
        "gives NULL for a text that is no number; or write numbers without quotes; formatOptions "
        "mode: PERMISSIVE gives NULL for a value that does not fit",
        "a value of the declared type, numbers without quotes",
        "a text of JSON is no value of the declared type",
    ),
    _rule(
        r"\[MALFORMED_RECORD_IN_PARSING\b(?s:.*)\n(?P<found>.+)",
        errors.SourceNotReadable,
        "correct the file, or format, formatOptions or schemaFields; formatOptions mode: "
        'PERMISSIVE gives NULL for a value that does not fit; of CSV, nullValue: "" takes an empty '
        "value in quotes for NULL",
        "records that fit the format and the schema",
        "a record cannot be read",
    ),
    _rule(
        r"Could not read file: .{1,2000}\. (?P<found>there is no (?:sheet|table) .{1,512}|"
        r"the option `(?:sheet|table)` names none); "
        r"its (?P<option>sheet|table)s are (?P<expected>.+)",
        errors.SourceNotReadable,
        "name one of those that are expected; files without it need a source of their own",
        message="a sheet or table of a file is to be read that is not there",
        field="spec.hdfsLike.formatOptions.{option}",
    ),
    _rule(
        r"Could not read file: .{1,2000}?\. "
        r"(?P<found>(?:(?:cell|the cells) [A-Z]{1,3}[0-9]|row [0-9]).{1,1000})",
        errors.SourceNotReadable,
        "correct the file, or formatOptions or schemaFields by which it is read: string holds "
        "every value that is no bytes",
        "values of the declared types, in a workbook below a header",
        "a value of a workbook or a database cannot be read",
    ),
    _rule(
        r"\[(?:FAILED_READ_FILE|CANNOT_READ_FILE_FOOTER|MALFORMED_RECORD|MALFORMED_CSV_RECORD|"
        r"UNABLE_TO_INFER_SCHEMA|INVALID_JSON_RECORD)|is not a Parquet file|"
        r"Malformed ORC file|Not an Avro data file|Could not read file",
        errors.SourceNotReadable,
        "the file is missing, truncated or not of the declared format: write it again, or take it "
        "out of sourceUriGlobs",
        "whole files of the declared format",
    ),
    _rule(
        r"\[MALFORMED_CHARACTER_CODING\]",
        errors.SourceNotReadable,
        "give formatOptions encoding the character set of the files, or write them in UTF-8",
        "files in the character set of formatOptions encoding",
        "a file is not text of the character set that is declared for it",
    ),
    _rule(
        r"\[PATH_NOT_FOUND\]|FileNotFoundException|NoSuchFileException",
        errors.SourceNotReadable,
        "a file vanished after it was listed: run again once the source is at rest",
        "files that stay while they are read",
    ),
    _rule(
        r"\[(?:AVRO_|KAFKA_)?DATA_SOURCE_NOT_(?:FOUND|ENABLED)\]",
        errors.SourceSchemaInvalid,
        "name a format that this Spark has: parquet, orc, csv, json, avro, text, or the class of "
        "one in its jars",
        "a format that this Spark can read",
    ),
    _rule(
        r"\[COLUMN_ALREADY_EXISTS|duplicate field\(s\).*case-insensitive",
        errors.SourceSchemaInvalid,
        "rename one of the columns; names are compared ignoring case",
        "names that differ in more than case",
        "two columns have the same name",
    ),
    _rule(
        r"\[CANNOT_MERGE_",
        errors.SourceSchemaInvalid,
        "write the files with one type, or declare them as two sources",
        "types of which one holds all values of the other",
        "files give one column types that have nothing in common",
    ),
    _rule(
        r"\[AMBIGUOUS_",
        errors.SourceSchemaInvalid,
        "qualify the column with the alias of its source",
        "names that mean one column",
    ),
    _rule(
        r"\[(?:BINARY_|INTERVAL_)?ARITHMETIC_OVERFLOW|ArithmeticException: \w+ overflow",
        errors.SourceError,
        "compute in a wider type, such as CAST(a AS DECIMAL(38, 0)) * b, or use try_add, "
        "try_subtract, try_multiply, which give NULL where the result does not fit; of sum() and "
        "conv(), widen what goes in; a key needs a castDataType that holds the result, too",
        "results that fit; whole numbers are computed in the wider type of the two sides",
        "a result is too large for the type in which an expression of a query is computed",
    ),
    _rule(
        r"\[(?:CAST_OVERFLOW|NUMERIC_)",
        errors.SourceError,
        "cast to a wider type, such as BIGINT, DOUBLE or DECIMAL(38, 6), or use try_cast, which "
        "gives NULL where a value does not fit",
        "values that the type of the cast holds",
    ),
    _rule(
        r"\[(?:CAST_|CANNOT_PARSE_|INVALID_FORMAT\.MISMATCH_INPUT)",
        errors.SourceError,
        "correct the values or the type, or use try_cast, try_to_timestamp, try_to_date or "
        "try_to_number, which give NULL for a text that cannot be read",
        "values that are written as the type or the format wants them",
    ),
    _rule(
        r"\[(?:INTERVAL_DIVIDED|DIVIDE|REMAINDER)_BY_ZERO",
        errors.SourceError,
        "divide by nullif(b, 0), or use try_divide, of remainders try_mod: both give NULL for zero",
        "a divisor other than zero",
    ),
    _rule(
        r"\[INVALID_ARRAY_INDEX|\[INVALID_INDEX_OF_ZERO",
        errors.SourceError,
        "ask size() first, or use get(a, i), which counts from 0, or try_element_at(a, i), which "
        "counts from 1: both give NULL where there is no element",
        "an index within the array",
    ),
    _rule(
        r"\[(?:INVALID_FRACTION|DATETIME_)",
        errors.SourceError,
        "correct the values, or leave out by CASE WHEN those that are no part of a date; "
        "try_make_timestamp gives NULL for them",
        "parts of a date and time of the years 1 to 9999",
    ),
    _rule(
        r"\[(?:UNRESOLVED_|TABLE_OR_VIEW_NOT_FOUND|PARSE_|DATATYPE_MISMATCH|MISSING_AGGREGATION|"
        r"MISSING_GROUP_BY|UNSUPPORTED_|INVALID_|WRONG_NUM_ARGS|NOT_A_|GROUP_BY_|NESTED_AGG)",
        errors.SourceSchemaInvalid,
        "correct the query or the expression for this schema",
        "a query over columns that there are, of types that fit",
    ),
    _rule(
        r"\[SPARK_JOB_CANCELLED\]|cancelled job group|part of cancelled|"
        r"SparkContext was shut down|InterruptedException",
        errors.Interrupted,
        "run again; nothing was published",
    ),
    _rule(
        r"OutOfMemoryError|GC overhead limit",
        errors.MemoryUsedUp,
        MORE_MEMORY,
        "enough memory for the data",
        "Spark found no memory for what it reads or joins",
    ),
)


def translate(
    error: Exception, *, resource: str | None = None, path: str | None = None
) -> errors.SnaploomError:
    """The error of Snaploom for a failure of Spark; never raises.

    An error of Snaploom is returned as it is; `resource` is the one at work, when it is known.
    """
    if isinstance(error, errors.SnaploomError):
        return error
    chain = tuple(_messages(error)) or ("",)
    text = "\n".join(chain).replace(NULL_TEXT, "(empty)")
    file = _FILE.search(text)
    for rule in _RULES:
        match = rule.pattern.search(text)
        if match is not None:
            sentence = condense(_line_at(text, match.start()))
            found = _detail(chain, match, text) if file is None else f"in {file[1]}"
            groups = match.groupdict()
            if "found" in groups:
                found = condense(groups["found"]) + (f" in {file[1]}" if file else "")
            elif rule.message:
                found = sentence + _expression(text)
            return rule.error(
                rule.message or sentence,
                resource=resource,
                path=rule.field.format(**groups) if rule.field else path,
                found=found,
                expected=groups.get("expected", rule.expected),
                hint=rule.hint,
            )
    return errors.SnaploomError(
        condense(chain[-1] if isinstance(error, Py4JJavaError) else chain[0]),
        resource=resource,
        path=path,
    )


def _expression(text: str) -> str:
    """Return the part of a query that failed, if Spark underlines it."""
    match = _EXPRESSION.search(text)
    if match is None:
        return ""
    begin = len(match["blank"])
    return f", in {match['line'][begin : begin + len(match['mark'])]}"


def condense(message: str) -> str:
    """The first sentence of a message of Spark, without condition, plan and SQL state."""
    line = _AFTER_MESSAGE.sub("", answered(message).strip())
    line = _EXCEPTION_NAME.sub("", line)
    condition = _CONDITION.match(line)
    line = line[condition.end() if condition else 0 :].strip().rstrip(".")
    line = _ANSI_ADVICE.sub("", line)
    line = _ABOUT_FILE.sub("a file cannot be read: ", line)
    if len(line) > LONGEST_MESSAGE:
        return line[: LONGEST_MESSAGE - 1] + "…"
    return line or "Spark failed without a message"


def answered(message: str) -> str:
    """The message, with a server's own words for the document around them.

    Iceberg quotes whole what it does not know: answers of a proxy, or of what a catalog runs in.
    """
    if not message.startswith("org.apache.iceberg."):
        return message
    head, brace, rest = message.partition("{")
    try:
        document: Mapping[str, object] = json.JSONDecoder().raw_decode(brace + rest)[0]
    except (ValueError, RecursionError):
        head, title = message.partition("<")[0], _TITLE.search(message)
        answer = unescape(title[1]) if title else ""
    else:
        inner = document.get("error")
        fields = inner if isinstance(inner, dict) else document
        names = ("type", "error", "message", "error_description")
        texts = {name: text for name in names if isinstance(text := fields.get(name), str)}
        is_error = texts.keys() - {"type"}
        answer = ": ".join(texts.values()) if is_error else " ".join(f"{brace}{rest}".split())
    # Iceberg has `null` for the type of error that such an answer lacks.
    return f"{head.removesuffix('null: ')}{answer.strip()}" if answer.strip() else message


def _line_at(text: str, position: int) -> str:
    start = text.rfind("\n", 0, position) + 1
    line = text[start:].split("\n", 1)[0]
    bracket = _CONDITION.search(line)
    return line[bracket.start() :] if bracket else line


def _detail(chain: tuple[str, ...], match: re.Match[str], text: str) -> str | None:
    """The deepest cause, when it adds to the line that is the message already."""
    deepest = condense(chain[-1])
    return None if deepest in condense(_line_at(text, match.start())) else deepest


def _messages(error: Exception) -> Iterator[str]:
    if isinstance(error, Py4JJavaError):
        messages = _java_messages(error.java_exception)
    else:
        origin = getattr(error, "_origin", None) if isinstance(error, PySparkException) else None
        causes = _java_messages(origin) if isinstance(origin, JavaObject) else ()
        messages = itertools.chain((str(error),), causes)
    for message in messages:
        yield _FRAMES.sub("", _JAVA_FRAMES.sub("", message))


def _java_messages(throwable: JavaObject | None) -> Iterator[str]:
    """Messages of an exception of the JVM and its causes, while the JVM runs."""
    for _ in range(DEEPEST_CAUSE):
        if throwable is None:
            return
        try:
            message, cause = str(throwable.toString()), throwable.getCause()
        except (Py4JError, OSError):
            return
        yield message
        throwable = cause
