"""File formats and character sets that declarations may name, with their options."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from snaploom.errors import FormatNotAllowed
from snaploom.loading.nearmisses import did_you_mean
from snaploom.models.allowances import Allowances
from snaploom.models.findings import Finding, make_finding
from snaploom.models.outputdataset import DataFormat

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

    Args:
        options: of Spark's reader.

    Returns:
        The option, its value and what would be right; None where nothing is at fault, or the
        character set is none that Spark knows, which is a fault of its own.
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
    return (
        option,
        charset,
        f'lineSep, such as "\\n", beside {charset}',
    )


# File formats that declarations may read, and the allowed values of their options.

FORMAT_CODE = "SL136"
"""Code of a format that is not on the list."""
OPTION_CODE = "SL137"
"""Code of an option that is not on the list, or holds something else than it is for."""

AVRO_CLASS = "org.apache.spark.sql.avro.AvroFileFormat"
"""Avro's implementation. Spark 4.3 has it without the short name `avro`, and where the separate
jar brings the short name, the class is the same (rule W7)."""
_SPARK_NAMES: Mapping[str, str] = {"avro": AVRO_CLASS}
"""Spark's name of a format, where it differs."""

SELF_DESCRIBING = frozenset({"avro", "orc", "parquet"})
"""Formats whose files contain their schema."""

_LONGEST_SHOWN = 60
"""Characters of a value that a message shows: enough to recognise it."""


@dataclass(frozen=True)
class Holds:
    """The allowed values of an option."""

    expected: str
    fits: Callable[[str], bool]
    hint: str = "correct the value"


@dataclass(frozen=True)
class FormatFault:
    """A format or an option that a declaration may not have."""

    code: str
    option: str | None
    """The option; None for the format itself."""
    message: str
    found: str
    """The value found; never the value of an option that may hold a secret."""
    expected: str
    hint: str


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

FORMATS: Mapping[str, Mapping[str, Holds]] = {
    "avro": {
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
    "binaryFile": OF_FILES,
    "csv": {
        **OF_FILES,
        **_OF_RECORDS,
        "charToEscapeQuoteEscaping": _MARK,
        "codec": _COMPRESSION,
        "columnPruning": _BOOLEAN,
        "comment": _MARK,
        "delimiter": _characters(32),
        "emptyValue": _TEXT,
        "enforceSchema": _BOOLEAN,
        "escape": _MARK,
        "escapeQuotes": _BOOLEAN,
        "extension": _matches("three letters", r"[A-Za-z]{3}"),
        "header": _BOOLEAN,
        "ignoreLeadingWhiteSpace": _BOOLEAN,
        "ignoreTrailingWhiteSpace": _BOOLEAN,
        "inferSchema": _BOOLEAN,
        # The parser takes memory for all of it at once: 16 Mi characters, a million columns.
        "inputBufferSize": _whole(16, 1 << 24),
        "lineSep": _LINE_END,
        "maxCharsPerColumn": _whole(-1, (1 << 31) - 1),
        "maxColumns": _whole(1, 1_000_000),
        "nanValue": _TEXT,
        "negativeInf": _TEXT,
        "nullValue": _TEXT,
        "positiveInf": _TEXT,
        "preferDate": _BOOLEAN,
        "quote": _MARK,
        "quoteAll": _BOOLEAN,
        "sep": _characters(32),
        "unescapedQuoteHandling": _choice(
            "STOP_AT_CLOSING_QUOTE STOP_AT_DELIMITER BACK_TO_DELIMITER SKIP_VALUE RAISE_ERROR"
        ),
    },
    "delta": {},
    "iceberg": {},
    "json": {
        **OF_FILES,
        **_OF_RECORDS,
        "allowBackslashEscapingAnyCharacter": _BOOLEAN,
        "allowComments": _BOOLEAN,
        "allowNonNumericNumbers": _BOOLEAN,
        "allowNumericLeadingZeros": _BOOLEAN,
        "allowSingleQuotes": _BOOLEAN,
        "allowUnquotedControlChars": _BOOLEAN,
        "allowUnquotedFieldNames": _BOOLEAN,
        "dropFieldIfAllNull": _BOOLEAN,
        "explodeEmbeddedArray": _BOOLEAN,
        "ignoreNullFields": _BOOLEAN,
        "inferTimestamp": _BOOLEAN,
        "lineSep": _LINE_END,
        "prefersDecimal": _BOOLEAN,
        "pretty": _BOOLEAN,
        "primitivesAsString": _BOOLEAN,
        "sortKeys": _BOOLEAN,
        "useUnsafeRow": _BOOLEAN,
        "writeNonAsciiCharacterAsCodePoint": _BOOLEAN,
    },
    "orc": {
        **OF_FILES,
        "compression": _choice("none uncompressed snappy zlib lzo lz4 zstd brotli"),
        "mergeSchema": _BOOLEAN,
        "orc.compress": _choice("none uncompressed snappy zlib lzo lz4 zstd brotli"),
    },
    "parquet": {
        **OF_FILES,
        "compression": _choice("none uncompressed snappy gzip lzo brotli lz4 lz4_raw zstd"),
        "datetimeRebaseMode": _REBASE,
        "int96RebaseMode": _REBASE,
        "mergeSchema": _BOOLEAN,
        "parquet.compression": _choice("none uncompressed snappy gzip lzo brotli lz4 lz4_raw zstd"),
    },
    "text": {
        **OF_FILES,
        "compression": _COMPRESSION,
        "encoding": _TEXT_CHARSET,
        "lineSep": _LINE_END,
        "wholetext": _BOOLEAN,
    },
    "xml": {
        **OF_FILES,
        **_OF_RECORDS,
        "arrayElementName": _SHORT_NAME,
        "attributePrefix": _TEXT,
        "charset": _XML_CHARSET,
        "declaration": _TEXT,
        "encoding": _XML_CHARSET,
        "excludeAttribute": _BOOLEAN,
        "ignoreNamespace": _BOOLEAN,
        "ignoreSurroundingSpaces": _BOOLEAN,
        "indent": _TEXT,
        "inferSchema": _BOOLEAN,
        "nullValue": _TEXT,
        "preferDate": _BOOLEAN,
        "prefersDecimal": _BOOLEAN,
        "rootTag": _SHORT_NAME,
        "rowTag": _SHORT_NAME,
        "useLegacyXMLParser": _BOOLEAN,
        "validateName": _BOOLEAN,
        "valueTag": _SHORT_NAME,
        "wildcardColName": _SHORT_NAME,
    },
}

REFUSED: Mapping[str, str] = {
    "archivePathFilter": "it opens archives, whose size nothing bounds",
    "avroSchemaUrl": "it names a file or server that is asked for the schema; use avroSchema",
    "basePath": "it names a place; use captures of sourceUriPrefix for values in paths",
    "ignoredPathSegmentRegex": "it is a regular expression, and brings hidden files to light",
    "path": "it names a place, which has a field of its own",
    "paths": "it names places, which have a field of their own",
    "rowValidationXSDPath": "it names a file whose own references are fetched from anywhere",
}
"""Options of Spark that are refused unless an administrator allows them, and why."""

_UNKNOWN = "options go into the configuration of Hadoop, where they can name classes and servers"


def allowed_format(name: str, allow: Allowances) -> str | None:
    """A format by the name that the lists have for it; None where it is on none."""
    folded = name.casefold()
    return next((one for one in (*FORMATS, *allow.formats) if one.casefold() == folded), None)


def spark_format(name: str, allow: Allowances) -> str:
    """The name by which Spark finds a format.

    `format_faults` must have no fault of it.
    """
    found = allowed_format(name, allow) or name
    return _SPARK_NAMES.get(found, found)


def format_faults(
    name: str, options: Mapping[str, str], allow: Allowances
) -> tuple[FormatFault, ...]:
    """Faults of a declared format and its options."""
    found = allowed_format(name, allow)
    if found is None:
        return (_format_fault(name),)
    return tuple(_option_faults(found, options, allow))


@dataclass(frozen=True)
class FormatPlace:
    """Where a resource declares a format and its options."""

    resource: str
    """`Kind/name`; empty where no resource declares it."""
    format: str
    options: str

    def of(self, fault: FormatFault) -> str:
        """Field path of the fault."""
        return self.format if fault.option is None else f"{self.options}.{fault.option}"


def source_place(resource: str) -> FormatPlace:
    """Where a DataSource declares them."""
    return FormatPlace(resource, "spec.hdfsLike.format", "spec.hdfsLike.formatOptions")


def target_place(resource: str) -> FormatPlace:
    """Where a SkippingIndex declares them."""
    return FormatPlace(resource, "spec.target.path.format", "spec.target.path.options")


def format_findings(
    name: str, options: Mapping[str, str], allow: Allowances, place: FormatPlace
) -> tuple[Finding, ...]:
    """Faults of a format and its options, as findings."""
    return tuple(
        make_finding(
            fault.code,
            fault.message,
            resource=place.resource,
            path=place.of(fault),
            found=fault.found,
            expected=fault.expected,
            hint=fault.hint,
        )
        for fault in format_faults(name, options, allow)
    )


def require_format(
    name: str, options: Mapping[str, str], allow: Allowances, place: FormatPlace
) -> str:
    """The name by which Spark finds a format, of which nothing is at fault.

    Raises:
        FormatNotAllowed: the format or an option is on no list.
    """
    for fault in format_faults(name, options, allow):
        raise FormatNotAllowed(
            fault.message,
            resource=place.resource or None,
            path=place.of(fault),
            found=fault.found,
            expected=fault.expected,
            hint=fault.hint,
        )
    return spark_format(name, allow)


def _format_fault(name: str) -> FormatFault:
    shown = name[:_LONGEST_SHOWN]
    by_class = next((short for short, spark in _SPARK_NAMES.items() if spark == name), "")
    guess = f"write `{by_class}`" if by_class else did_you_mean(name, FORMATS)
    return FormatFault(
        FORMAT_CODE,
        None,
        "this is not a file format that may be read",
        shown,
        ", ".join(FORMATS),
        f"{f'{guess} Otherwise' if guess else 'use one of these, or'} have `{shown}` added to the "
        f"list `formats` (chart value allow.formats, or --allow formats={shown})",
    )


def _option_faults(
    found: str, options: Mapping[str, str], allow: Allowances
) -> Iterator[FormatFault]:
    listed = {option.casefold(): holds for option, holds in FORMATS.get(found, {}).items()}
    added = frozenset(entry.casefold() for entry in allow.options)
    given: set[str] = set()
    for option, value in options.items():
        folded = option.casefold()
        if folded in given:
            yield FormatFault(
                OPTION_CODE, option, "an option is given twice, since case does not count",
                option, "every option once", "remove one of the two",
            )  # fmt: skip
        given.add(folded)
        if f"{found}.{option}".casefold() in added:
            continue
        holds = listed.get(folded)
        if holds is None:
            yield _unlisted(found, option)
        elif not holds.fits(value):
            yield FormatFault(
                OPTION_CODE, option, f"the option of {found} cannot hold this",
                value[:_LONGEST_SHOWN], holds.expected, holds.hint,
            )  # fmt: skip
    missing = json_option_missing(options) if found == "json" else None
    if missing is not None:
        option, value, expected = missing
        yield FormatFault(
            OPTION_CODE, option, "JSON in lines cannot be read in this character set as it stands",
            value[:_LONGEST_SHOWN], expected,
            "set these options (lines have no byte order mark then), or convert the files to "
            f"UTF-8, such as by `iconv -f {value[:_LONGEST_SHOWN]} -t UTF-8`, and leave this out",
        )  # fmt: skip


def _unlisted(found: str, option: str) -> FormatFault:
    shown = option[:_LONGEST_SHOWN]
    reasons = {name.casefold(): reason for name, reason in REFUSED.items()}
    reason = reasons.get(option.casefold())
    guess = "" if reason else did_you_mean(option, FORMATS.get(found, {}))
    return FormatFault(
        OPTION_CODE,
        option,
        f"this option of {found} may not be given: {reason or _UNKNOWN}",
        shown,
        f"options of {found} that are on the list",
        f"{f'{guess} Otherwise' if guess else 'leave it out, or'} have `{found}.{shown}` added to "
        f"the list `options` (chart value allow.options, or --allow options={found}.{shown})",
    )


# Names of formats as Spark's reader and writer take them (rule W7).

FORMAT_NAMES: Mapping[DataFormat, str] = {
    DataFormat.PARQUET: "parquet",
    DataFormat.AVRO: "avro",
    DataFormat.JSONL: "json",
    DataFormat.ICEBERG: "parquet",
}
"""The files of each format that is published, as declarations name them."""

SPARK_FORMATS: Mapping[DataFormat, str] = {
    **FORMAT_NAMES,
    DataFormat.AVRO: AVRO_CLASS,
}
"""Spark's name of the files of each format that is published."""

JSON_OPTIONS: Mapping[str, str] = {
    # Spark's defaults write milliseconds, and would lose the last three digits without a word.
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "timeZone": "UTC",
}
"""With which JSON is written and read, so that times come back as they were."""

READ_OPTIONS: Mapping[DataFormat, Mapping[str, str]] = {
    DataFormat.PARQUET: {},
    DataFormat.AVRO: {},
    DataFormat.JSONL: {**JSON_OPTIONS, "mode": "FAILFAST"},
    DataFormat.ICEBERG: {},
}
"""Options that Spark needs to read back the written files."""

NULL_TEXT = "\ufdd0snaploom: no value\ufdd0"
"""The text of an absent value of CSV, so that `""` is an empty text and not NULL. U+FDD0 is a
character that Unicode keeps out of texts that are exchanged."""

SOURCE_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "json": {"mode": "FAILFAST"},
    "xml": {"mode": "FAILFAST"},
}
"""Options to read files of others with, unless a source sets its own: Spark by itself gives NULL
for a value that does not fit the schema. Those of CSV are in
`sources.files.csv`."""
