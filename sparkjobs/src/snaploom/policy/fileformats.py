"""File formats: one value for each, which other modules ask, and the options that it may have."""

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from functools import cache
from importlib.metadata import entry_points
from typing import cast

from snaploom.errors import FormatNotAllowed
from snaploom.installed import load_registered

# Character sets that Spark's readers of files know, each format in its own way.

OF_RECORDS = "UTF-8 US-ASCII ISO-8859-1 UTF-16 UTF-16BE UTF-16LE UTF-32"
"""The list of charsets of Spark's readers of CSV and JSON."""
OF_TEXT = "UTF-8 US-ASCII"
"""Charsets whose texts are all UTF-8, which is how Spark reads text regardless of its option."""
OF_XML = "a character set such as UTF-8, ISO-8859-1, windows-1252 or UTF-16"
"""Description of the charsets that `is_known` accepts, for people."""
TO_UTF_8 = (
    "convert the files to UTF-8, such as by `iconv -f windows-1252 -t UTF-8`, and leave this out"
)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:+-]{0,63}")
_OF_SEVERAL_BYTES = frozenset({"utf-16", "utf-32"})
"""Of which Spark does not find line ends, since a byte order mark decides their bytes."""


def is_known(name: str) -> bool:
    """Whether a name is that of a character set, by Python's list, which has the names of Java."""
    if not _NAME.fullmatch(name):
        return False
    try:
        "a".encode(name)
    except (LookupError, UnicodeError):
        return False
    return True


def json_option_missing(options: Mapping[str, str]) -> tuple[str, str, str] | None:
    """The option of a character set that JSON in lines cannot be read with, as it stands.

    With its value and what would be right; None for none, or where Spark does not know the set.
    """
    given = {option.casefold(): (option, value) for option, value in options.items()}
    option, charset = given.get("encoding", given.get("charset", ("", "UTF-8")))
    is_whole = given.get("multiline", ("", ""))[1].casefold() == "true"
    is_other = charset.casefold() not in OF_RECORDS.casefold().split()
    if is_whole or is_other or charset.casefold() == "utf-8":
        return None
    if charset.casefold() in _OF_SEVERAL_BYTES:
        return option, charset, 'UTF-16LE or UTF-16BE with lineSep "\\n", or multiLine "true"'
    if "linesep" in given:
        return None
    return option, charset, f'lineSep, such as "\\n", beside {charset}'


# What options of formats may hold.


@dataclass(frozen=True)
class Holds:
    """The allowed values of an option."""

    expected: str
    fits: Callable[[str], bool]
    hint: str = "correct the value"


def _matches(expected: str, pattern: str) -> Holds:
    compiled = re.compile(pattern)
    return Holds(expected, lambda value: compiled.fullmatch(value) is not None)


def _choice(names: str, hint: str = Holds.hint) -> Holds:
    listed = names.split()
    folded = frozenset(name.casefold() for name in listed)
    return Holds(" or ".join(listed), lambda value: value.casefold() in folded, hint)


def _characters(most: int) -> Holds:
    return Holds(
        f"1 to {most} characters" if most > 1 else "one character",
        lambda value: 0 < len(value) <= most,
    )


def _whole(low: int, high: int) -> Holds:
    def fits(value: str) -> bool:
        return bool(re.fullmatch(r"-?[0-9]{1,10}", value)) and low <= int(value) <= high

    return Holds(f"a whole number from {low} to {high}", fits)


def _is_share(value: str) -> bool:
    return bool(re.fullmatch(r"[0-9]{0,9}\.?[0-9]{1,17}", value)) and 0 < float(value) <= 1


def _is_avro_schema(value: str) -> bool:
    try:
        return isinstance(json.loads(value), dict | list | str)
    except (ValueError, RecursionError):
        return False


_BOOLEAN = _choice("true false")
_MODE = _choice("PERMISSIVE DROPMALFORMED FAILFAST")
# Spark takes anything else for the name of a class, and loads it.
_COMPRESSION = _choice("none uncompressed bzip2 deflate gzip lz4 snappy zstd")
_REBASE = _choice("EXCEPTION CORRECTED LEGACY")
_CHARSET = _choice(OF_RECORDS, TO_UTF_8)
_TEXT_CHARSET = _choice(OF_TEXT, TO_UTF_8)
_XML_CHARSET = Holds(OF_XML, is_known, TO_UTF_8)
_LOCALE = _matches("a language tag such as en-US", r"[A-Za-z0-9-]{1,35}")
_ZONE = _matches("a time zone", r"[A-Za-z0-9_+:/-]{1,64}")
_TIME = _matches(
    "a time such as 2020-01-31T00:00:00", r"[0-9]{4}-[0-9]{2}-[0-9]{2}[0-9T:. Z+-]{0,30}"
)
_SHORT_NAME = Holds("a name of up to 512 characters", lambda value: 0 < len(value) <= 512)
_TEXT = Holds("a text of up to 1024 characters", lambda value: len(value) <= 1024)
_PATTERN = Holds("a pattern of up to 256 characters", lambda value: 0 < len(value) <= 256)
_BY_NAME = (
    "by place, a file with other columns, or with columns in another order, gives values of one "
    "column as those of another: leave it out, and rename columns by a FieldTransformer"
)
_SHARE = Holds("a number above 0, up to 1", _is_share)
_LINE_END = _characters(8)
_MARK = Holds("one character, or nothing", lambda value: len(value) <= 2)
"""Two, since Spark takes `\\t` and the like for one."""


def _switches(names: str) -> dict[str, Holds]:
    return dict.fromkeys(names.split(), _BOOLEAN)


OF_FILES: Mapping[str, Holds] = {
    "ignoreCorruptFiles": _BOOLEAN,
    "ignoreMissingFiles": _BOOLEAN,
    "modifiedAfter": _TIME,
    "modifiedBefore": _TIME,
    # Of Hadoop, which matches it in linear time (RE2).
    "pathGlobFilter": Holds("a glob of up to 1024 characters", lambda v: 0 < len(v) <= 1024),
    "recursiveFileLookup": _BOOLEAN,
}
"""Options of every format that is files."""

_OF_TIMES: Mapping[str, Holds] = {
    "dateFormat": _PATTERN,
    "enableDateTimeParsingFallback": _BOOLEAN,
    "locale": _LOCALE,
    "timeFormat": _PATTERN,
    "timeZone": _ZONE,
    "timestampFormat": _PATTERN,
    "timestampNTZFormat": _PATTERN,
}
_OF_RECORDS: Mapping[str, Holds] = {
    **_OF_TIMES,
    "charset": _CHARSET,
    "columnNameOfCorruptRecord": _SHORT_NAME,
    "compression": _COMPRESSION,
    "encoding": _CHARSET,
    "mode": _MODE,
    "multiLine": _BOOLEAN,
    "samplingRatio": _SHARE,
    "singleVariantColumn": _SHORT_NAME,
}
"""Options of formats whose records are text."""

# Settings of Spark that change the meaning of the bytes of files (rule S6), by format.

_PARQUET = {
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.int96AsTimestamp": "true",
    "spark.sql.parquet.int96TimestampConversion": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "corrected",
    "spark.sql.parquet.int96RebaseModeInRead": "corrected",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.fieldId.read.enabled": "false",
    "spark.sql.parquet.fieldId.read.ignoreMissing": "false",
    "spark.sql.parquet.reader.respectUnknownTypeAnnotation.enabled": "false",
    "spark.sql.parquet.ignoreVariantAnnotation": "false",
    "spark.sql.legacy.parquet.nanosAsLong": "false",
    "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing": "false",
    "spark.sql.legacy.parquet.datetimeRebaseModeInRead": "corrected",
    "spark.sql.legacy.parquet.int96RebaseModeInRead": "corrected",
}
ORC_LEVEL = "orc.force.positional.evolution.level"
"""Option for the depth to which ORC looks for columns by position; 1 is that of only columns."""
_ORC = {
    ORC_LEVEL: "1",
    f"spark.hadoop.{ORC_LEVEL}": "1",
    "spark.sql.orc.impl": "native",
    "orc.force.positional.evolution": "false",
    "spark.hadoop.orc.force.positional.evolution": "false",
    "orc.proleptic.gregorian.default": "false",
    "spark.hadoop.orc.proleptic.gregorian.default": "false",
}
_TEXTUAL = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.columnNameOfCorruptRecord": "_corrupt_record",
    "spark.sql.legacy.charVarcharAsString": "false",
    "spark.sql.timestampType": "timestamp_ltz",
    "spark.sql.legacy.javaCharsets": "false",
    "spark.sql.legacy.timeParserPolicy": "corrected",
}
_CSV = {
    **_TEXTUAL,
    "spark.sql.csv.parser.columnPruning.enabled": "true",
    "spark.sql.legacy.csv.enableDateTimeParsingFallback": "",
}
_JSON = {
    **_TEXTUAL,
    "spark.sql.json.enableExactStringParsing": "true",
    "spark.sql.json.enablePartialResults": "true",
    "spark.sql.legacy.json.allowEmptyString.enabled": "false",
    "spark.sql.legacy.json.enableDateTimeParsingFallback": "",
}
_AVRO = {
    "spark.sql.avro.datetimeRebaseModeInRead": "corrected",
    "spark.sql.legacy.avro.datetimeRebaseModeInRead": "corrected",
    "spark.sql.legacy.avro.allowIncompatibleSchema": "false",
    "avro.mapred.ignore.inputs.without.extension": "false",
    "spark.hadoop.avro.mapred.ignore.inputs.without.extension": "false",
}
_TEXT_SETTINGS = {"spark.sql.legacy.javaCharsets": "false"}


_SAME_BYTES = frozenset({
    # Parquet keeps text as bytes, which older writers do not mark as text, and both kinds of
    # timestamps as microseconds.
    ("binary", "string"), ("string", "binary"), ("date", "timestamp_ntz"),
    ("timestamp", "timestamp_ntz"), ("timestamp_ntz", "timestamp"),
})  # fmt: skip

# The formats.

AVRO_CLASS = "org.apache.spark.sql.avro.AvroFileFormat"
"""Avro's implementation. Spark 4.3 has it without the short name `avro`, and where the separate
jar brings the short name, the class is the same (rule W7)."""
NULL_TEXT = "\ufdd0snaploom: no value\ufdd0"
"""The text of an absent value of CSV, so that `""` is an empty text and not NULL. U+FDD0 is a
character that Unicode keeps out of texts that are exchanged."""
ENTRY_POINTS = "snaploom.formats"
"""Entry-point group of formats that other packages bring, each a `FileFormat` with a `reader`."""


@dataclass(frozen=True)
class FileFormat:
    """All that distinguishes a format from others; no other module knows formats by their names."""

    name: str
    """As declarations spell it; case does not count."""
    options: Mapping[str, Holds] = field(default_factory=dict)
    """Options that may be given, with what each may hold."""
    _: KW_ONLY
    spark_name: str = ""
    """Spark's name, where it differs."""
    reader: str = ""
    """`module:function` that opens a file (`snaploom.files.typedfiles.Reader`), for a format that
    Spark cannot read; it must be importable by workers of Spark."""
    reader_options: tuple[str, ...] = ()
    """Options that the reader takes by keyword, `nullValue` as `null_value`."""
    tables: str = ""
    """`module:function` that lists the tables of a file (`snaploom.files.measured.FileTable`) where
    it may have several; its reader takes `schema`, which values must fit, and `most`, how many of
    them are read to find out their types without one."""
    check: str = ""
    """`module:function` that refuses files which Spark reads in part and in silence."""
    table: str = ""
    """Display name of a format of tables that have versions of their own; empty for files."""
    endings: tuple[str, ...] = ()
    """Endings of names by which `init --from` finds files."""
    read_options: Mapping[str, str] = field(default_factory=dict)
    """Options to read files of others with, unless a source sets its own: Spark by itself gives
    NULL for a value that does not fit the schema. Those of CSV are in `sources.files.csv`."""
    missing_option: Callable[[Mapping[str, str]], tuple[str, str, str] | None] | None = None
    """Finds an option without which others cannot be read: option, value, and what is right."""
    schema_option: str = ""
    """The option by which Spark reads columns that only some files have."""
    is_self_describing: bool = False
    """Whether files contain their schema."""
    is_never_empty: bool = False
    """Whether a file of zero bytes is no file. (Hive writes ORC files of zero bytes.)"""
    is_merged: bool = False
    """Whether Spark takes one file's schema for all, unless an option merges those of all."""
    may_be_by_place: bool = False
    """Whether columns may have names by place, as Hive's have."""
    has_footers: bool = False
    """Whether files end in a footer of Parquet."""
    has_file_path: bool = True
    """Whether Spark exposes the file of a row (`_metadata.file_path`)."""
    has_named_values: bool = False
    """Whether every record names its fields, and Spark reads them with regard to case."""
    has_text_values: bool = False
    """Whether values are text, which reading can change."""
    has_elements: bool = False
    """Whether fields are elements, which may stand several times in a record."""
    has_headers: bool = False
    """Whether records are laid out by options, and a header may name the columns."""
    same_bytes: frozenset[tuple[str, str]] = frozenset()
    """Types of a file and declared ones, which the reader takes for each other unchanged."""
    settings: Mapping[str, str] | None = None
    """Settings that matter to indexes of files, with their defaults in lower case; None where
    files cannot be indexed."""
    option_defaults: Mapping[str, str] = field(default_factory=dict)
    """Options that are as good as absent, in lower case."""
    is_inferred: bool = False
    """Whether Spark looks for columns in the files, which may be read without columns."""
    has_corrupt_records: bool = False
    """Whether Spark may drop a record, or keep it in a column of its own."""
    are_columns_joint: bool = False
    """Whether the value of a column depends on the others, and instants on a time zone."""

    @property
    def in_spark(self) -> str:
        """Spark's name."""
        return self.spark_name or ("binaryFile" if self.reader else self.name)

    def arguments(self, options: Mapping[str, str], **others: object) -> Mapping[str, object]:
        """Keyword arguments of its reader: its options, and others where it has tables."""
        given = {name.casefold(): value for name, value in options.items()}
        by_name = {name.replace("_", ""): name for name in self.reader_options}
        own = {by_name[name]: value for name, value in given.items() if name in by_name}
        return {**own, **(others if self.tables else {})}


_OF_READERS = {name: holds for name, holds in OF_FILES.items() if name != "ignoreCorruptFiles"}

BUILT_IN: Mapping[str, FileFormat] = {
    each.name: each
    for each in (
        FileFormat(
            "arrow",
            _OF_READERS,
            reader="snaploom.files.typedfiles:open_ipc",
            endings=("arrow", "arrows", "feather", "ipc"),
            is_self_describing=True,
            is_never_empty=True,
        ),
        FileFormat(
            "avro",
            {
                **OF_FILES,
                "avroSchema": Holds("a schema of Avro, as JSON", _is_avro_schema),
                "compression": _choice("uncompressed snappy deflate bzip2 xz zstandard"),
                "datetimeRebaseMode": _REBASE,
                "enableStableIdentifiersForUnionType": _BOOLEAN,
                "ignoreExtension": _BOOLEAN,
                "mode": _MODE,
                "positionalFieldMatching": _choice("false", _BY_NAME),
                "recordName": _SHORT_NAME,
                "recordNamespace": _SHORT_NAME,
                # Spark's own bounds.
                "recursiveFieldMaxDepth": _whole(-1, 15),
                "stableIdentifierPrefixForUnionType": _SHORT_NAME,
            },
            spark_name=AVRO_CLASS,
            endings=("avro",),
            is_self_describing=True,
            is_never_empty=True,
            schema_option="avroSchema=JSON of a schema with the column",
            settings=_AVRO,
            option_defaults={"datetimerebasemode": "corrected"},
        ),
        FileFormat(
            "binaryFile",
            OF_FILES,
            has_file_path=False,
        ),
        FileFormat(
            "csv",
            {
                **OF_FILES,
                **_OF_RECORDS,
                **_switches(
                    "columnPruning enforceSchema escapeQuotes header ignoreLeadingWhiteSpace "
                    "ignoreTrailingWhiteSpace inferSchema preferDate quoteAll"
                ),
                "charToEscapeQuoteEscaping": _MARK,
                "codec": _COMPRESSION,
                "comment": _MARK,
                "delimiter": _characters(32),
                "emptyValue": _TEXT,
                "escape": _MARK,
                "extension": _matches("three letters", r"[A-Za-z]{3}"),
                # The parser takes memory for all of it at once: 16 Mi characters, and
                # a million columns.
                "inputBufferSize": _whole(16, 1 << 24),
                "lineSep": _LINE_END,
                "maxCharsPerColumn": _whole(-1, (1 << 31) - 1),
                "maxColumns": _whole(1, 1_000_000),
                "nanValue": _TEXT,
                "negativeInf": _TEXT,
                "nullValue": _TEXT,
                "positiveInf": _TEXT,
                "quote": _MARK,
                "sep": _characters(32),
                "unescapedQuoteHandling": _choice(
                    "STOP_AT_CLOSING_QUOTE STOP_AT_DELIMITER BACK_TO_DELIMITER "
                    "SKIP_VALUE RAISE_ERROR"
                ),
            },
            endings=("csv", "tsv", "psv", "tab", "txt", "dat", "asc"),
            has_text_values=True,
            has_headers=True,
            is_inferred=True,
            has_corrupt_records=True,
            are_columns_joint=True,
            settings=_CSV,
            option_defaults={
                "header": "false",
                "sep": ",",
                "delimiter": ",",
                "multiline": "false",
                "quote": '"',
                "escape": "\\",
                "mode": "permissive",
                "encoding": "utf-8",
                "charset": "utf-8",
                "enforceschema": "true",
                "nullvalue": "",
            },
        ),
        FileFormat(
            "delta",
            table="Delta",
            has_file_path=False,
        ),
        FileFormat(
            "iceberg",
            table="Iceberg",
            has_file_path=False,
        ),
        FileFormat(
            "json",
            {
                **OF_FILES,
                **_OF_RECORDS,
                **_switches(
                    "allowBackslashEscapingAnyCharacter allowComments allowNonNumericNumbers "
                    "allowNumericLeadingZeros allowSingleQuotes allowUnquotedControlChars "
                    "allowUnquotedFieldNames dropFieldIfAllNull explodeEmbeddedArray "
                    "ignoreNullFields inferTimestamp prefersDecimal pretty primitivesAsString "
                    "sortKeys useUnsafeRow writeNonAsciiCharacterAsCodePoint"
                ),
                "lineSep": _LINE_END,
            },
            endings=("json", "jsonl", "ndjson"),
            has_text_values=True,
            has_named_values=True,
            read_options={"mode": "FAILFAST"},
            check="snaploom.sources.files.records:check_json",
            missing_option=json_option_missing,
            is_inferred=True,
            has_corrupt_records=True,
            are_columns_joint=True,
            settings=_JSON,
            option_defaults={
                "multiline": "false",
                "mode": "permissive",
                "primitivesasstring": "false",
            },
        ),
        FileFormat(
            "orc",
            {
                **OF_FILES,
                "compression": _choice("none uncompressed snappy zlib lzo lz4 zstd brotli"),
                "mergeSchema": _BOOLEAN,
                "orc.compress": _choice("none uncompressed snappy zlib lzo lz4 zstd brotli"),
            },
            endings=("orc",),
            is_self_describing=True,
            is_merged=True,
            may_be_by_place=True,
            schema_option="mergeSchema=true",
            is_inferred=True,
            are_columns_joint=True,
            settings=_ORC,
        ),
        FileFormat(
            "parquet",
            {
                **OF_FILES,
                "compression": _choice("none uncompressed snappy gzip lzo brotli lz4 lz4_raw zstd"),
                "datetimeRebaseMode": _REBASE,
                "int96RebaseMode": _REBASE,
                "mergeSchema": _BOOLEAN,
                "parquet.compression": _choice(
                    "none uncompressed snappy gzip lzo brotli lz4 lz4_raw zstd"
                ),
            },
            endings=("parquet", "pq"),
            is_self_describing=True,
            is_never_empty=True,
            is_merged=True,
            has_footers=True,
            schema_option="mergeSchema=true",
            is_inferred=True,
            settings=_PARQUET,
            option_defaults={"datetimerebasemode": "corrected", "int96rebasemode": "corrected"},
            same_bytes=_SAME_BYTES,
        ),
        FileFormat(
            "sqlite",
            {**_OF_READERS, "table": _SHORT_NAME},
            reader="snaploom.files.sqlite:open_sqlite",
            reader_options=("table",),
            tables="snaploom.files.sqlite:tables_of",
            endings=("sqlite", "sqlite3", "db", "db3"),
            is_never_empty=True,
        ),
        FileFormat(
            "text",
            {
                **OF_FILES,
                "compression": _COMPRESSION,
                "encoding": _TEXT_CHARSET,
                "lineSep": _LINE_END,
                "wholetext": _BOOLEAN,
            },
            check="snaploom.sources.files.records:check_text",
            settings=_TEXT_SETTINGS,
            option_defaults={"wholetext": "false"},
        ),
        FileFormat(
            "xlsx",
            {**_OF_READERS, "header": _BOOLEAN, "nullValue": _TEXT, "sheet": _SHORT_NAME},
            reader="snaploom.files.workbooks:open_xlsx",
            reader_options=("header", "null_value", "sheet"),
            tables="snaploom.files.workbooks:tables_of",
            endings=("xlsx", "xlsm"),
            is_never_empty=True,
        ),
        FileFormat(
            "xml",
            {
                **OF_FILES,
                **_OF_RECORDS,
                **_switches(
                    "excludeAttribute ignoreNamespace ignoreSurroundingSpaces inferSchema "
                    "preferDate prefersDecimal useLegacyXMLParser validateName"
                ),
                "arrayElementName": _SHORT_NAME,
                "attributePrefix": _TEXT,
                "charset": _XML_CHARSET,
                "declaration": _TEXT,
                "encoding": _XML_CHARSET,
                "indent": _TEXT,
                "nullValue": _TEXT,
                "rootTag": _SHORT_NAME,
                "rowTag": _SHORT_NAME,
                "valueTag": _SHORT_NAME,
                "wildcardColName": _SHORT_NAME,
            },
            has_elements=True,
            has_text_values=True,
            has_named_values=True,
            read_options={"mode": "FAILFAST"},
        ),
    )
}


@cache
def file_format(name: str) -> FileFormat | None:
    """The format of a name, without regard to case: ours, or one of an installed package."""
    folded = name.casefold()
    found = next((one for one in BUILT_IN.values() if one.name.casefold() == folded), None)
    for entry in () if found else entry_points(group=ENTRY_POINTS):
        if entry.name.casefold() == folded:
            members = FileFormat.__dataclass_fields__
            loaded = load_registered(entry, "the file format", members, FormatNotAllowed)
            return cast(FileFormat, loaded)
    return found


def format_of(name: str) -> FileFormat:
    """The format of a name; one about which nothing is known where an administrator added it."""
    return file_format(name) or FileFormat(name, has_file_path=False)


def format_names() -> tuple[str, ...]:
    """Names of all formats."""
    return (*BUILT_IN, *sorted(entry.name for entry in entry_points(group=ENTRY_POINTS)))


def known_formats() -> tuple[FileFormat, ...]:
    """All formats but those whose packages cannot be loaded, which fail where they are named."""
    found = []
    for name in format_names():
        with suppress(FormatNotAllowed):
            found.append(format_of(name))
    return tuple(found)
