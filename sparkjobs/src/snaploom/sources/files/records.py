"""Lines of text, and what readers of JSON and of text pass over in silence."""

import json
import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from snaploom.errors import SourceNotReadable
from snaploom.files.listed import ListedFile
from snaploom.policy.fileformats import OF_FILES

# Files of text as their lines, each with its file and its place, for any purpose.

_OF_FILES = frozenset(name.casefold() for name in (*OF_FILES, "compression", "codec"))
"""Options that decide which files are read, and how they are unpacked."""


CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_HEAD = 256 << 10
_BETWEEN = re.compile(r"[\s,\[\ufeff]*")


def head_of(uri: str, opened: pa.NativeFile, most: int) -> bytes:
    """The first bytes of a file, unpacked by the end of its name."""
    codec = CODECS.get(posixpath.splitext(uri)[1])
    stream = pa.CompressedInputStream(opened, codec) if codec else opened
    return bytes(stream.read(most))


def first_keys(opened: Callable[[ListedFile], pa.NativeFile], file: ListedFile) -> Sequence[str]:
    """The keys of the records with which a file of JSON begins, first ones first."""
    keys, place, text, decoder = dict[str, None](), 0, "", json.JSONDecoder()
    # Up to the record that the head has not whole; what cannot be read is for its reader to name.
    with suppress(ValueError, RecursionError, OSError, pa.ArrowException):
        with opened(file) as stream:
            text = head_of(file.uri, stream, _HEAD).decode(errors="ignore")
        while found := _BETWEEN.match(text, place):
            record, place = decoder.raw_decode(text, found.end())
            keys.update(dict.fromkeys(record if isinstance(record, dict) else ()))
    return list(keys)


def options_of_files(options: Mapping[str, str]) -> dict[str, str]:
    """Options that hold for any way to read the same files."""
    return {name: value for name, value in options.items() if name.casefold() in _OF_FILES}


def text_lines(
    spark: SparkSession,
    paths: Sequence[str],
    options: Mapping[str, str],
    line_end: str | None = None,
    charset: str | None = None,
) -> DataFrame:
    """Every line with its `file` (a URL), the `block` of the file, and its `place` in there.

    `paths` are globs, as Spark's reader takes them. Only options that choose files and unpack them
    matter. Without `line_end` any usual one divides lines; without `charset` the text is UTF-8.
    """
    reader = spark.read.format("text").options(**options_of_files(options))
    if charset is not None:
        reader = reader.option("encoding", charset)  # of what separates lines, and no more
    frame = (reader if line_end is None else reader.option("lineSep", line_end)).load(list(paths))
    meta = frame.metadataColumn("_metadata")
    return frame.select(
        meta.getField("file_path").alias("file"),
        meta.getField("file_block_start").alias("block"),
        sf.monotonically_increasing_id().alias("place"),
        decoded(charset).alias("line"),
    )


def decoded(charset: str | None) -> Column:
    """The text of `value`, which has the bytes of a file as they are."""
    value = sf.col("value")
    return value if charset is None else sf.decode(value.cast("binary"), charset)


def with_numbers(lines: DataFrame) -> DataFrame:
    """Lines with their `number` in the file, from 1."""
    in_order = Window.partitionBy("file").orderBy("block", "place")
    return lines.withColumn("number", sf.row_number().over(in_order))


# Records that Spark's readers of JSON and text skip silently, found before files are read.

MOST_SUSPECTS = 100
"""Lines that one look takes a second time, one by one: each is proved to be wrong or passed."""
LONGEST_SUSPECT = 1 << 20
"""Characters of such a line; a longer one is not proved to be wrong, and is read as before."""
LONGEST_FILE = 16 << 20
"""Bytes of a file of JSON with one value that is checked: as many as one task holds with ease."""
LONGEST_SHOWN = 200
"""Characters of a line that a message shows: enough to find it."""

_NO_NUMBERS = "(?<=[\\[:,\\s])[-+]?(?:NaN|Infinity|INF)(?=[\\s,\\]}])"
"""Tokens that Python and others write for numbers that JSON does not have."""

_HIGH, _LOW = "\\\\u[dD][89abAB][0-9a-fA-F]{2}", "\\\\u[dD][c-fC-F][0-9a-fA-F]{2}"
HALF_PAIR = f"(?<!\\\\)(?:\\\\{{2}})*(?:{_HIGH}(?!{_LOW})|(?<!{_HIGH}){_LOW})"
"""An escape of JSON that is half of a surrogate pair, and no character: for Java and for Python."""

_OF_LINES = "leave multiLine out"
_OF_RECORDS = 'set formatOptions multiLine: "true" where a file is one value over several lines'


class _KeyTwice(ValueError):
    """An object has a key twice."""


def check_json(
    spark: SparkSession, paths: Sequence[str], options: Mapping[str, str], resource: str
) -> None:
    """Refuse lines of several records, objects that have a key twice, and half characters.

    A source that takes records as they come (`mode`), or whose records may have comments
    (`allowComments`), is not looked at. With `multiLine` each file is what else a line is. `paths`
    are globs, as Spark's reader takes them.
    """
    given = {name.casefold(): value for name, value in options.items()}
    if given.get("mode", "FAILFAST").upper() != "FAILFAST":
        return
    if given.get("allowcomments", "").lower() == "true":
        return
    encoding = given.get("encoding", given.get("charset", "UTF-8")).upper()
    charset = None if encoding in ("UTF-8", "UTF8") else encoding
    is_whole = given.get("multiline", "").lower() == "true"
    if is_whole:
        frame = _whole_texts(spark, paths, options, charset)
    else:
        frame = text_lines(spark, paths, options, given.get("linesep"), charset)
    line = sf.col("line")
    # In brackets, what follows the first value is either a second one or not JSON.
    listed = sf.concat(sf.lit("["), sf.regexp_replace(line, _NO_NUMBERS, "null"), sf.lit("]"))
    second = sf.variant_get("parsed", "$[1]", "variant")
    is_suspect = sf.col("parsed").isNull() | second.isNotNull()
    longest = LONGEST_FILE if is_whole else LONGEST_SUSPECT
    suspects = (
        frame.where((sf.trim(line) != "") & (sf.length(line) <= longest))
        .withColumn("parsed", sf.try_parse_json(listed))
        .where(is_suspect | line.rlike(HALF_PAIR))
        .select("file", "line")
        .limit(MOST_SUSPECTS)
    )
    for file, text in suspects.collect():
        fault = _json_fault(text, "file" if is_whole else "line")
        if fault:
            raise SourceNotReadable(
                fault,
                resource=resource,
                path="spec.hdfsLike.format",
                found=f"{text[:LONGEST_SHOWN]} in {unquote(file)}",
                expected=f"one JSON value a {'file' if is_whole else 'line'}, whose objects have "
                "every key once, and whose escapes are characters",
                hint=f"write the file so, or {_OF_LINES if is_whole else _OF_RECORDS}; "
                "formatOptions mode: PERMISSIVE reads the first value, the last of equal keys, "
                "and ? for half of a surrogate pair",
            )


def check_text(
    spark: SparkSession, paths: Sequence[str], options: Mapping[str, str], resource: str
) -> None:
    """Refuse text that is not UTF-8, the only character set that Spark reads as text.

    `paths` are globs, as Spark's reader takes them.
    """
    wrong = text_lines(spark, paths, options).where(~sf.is_valid_utf8("line")).head()
    if wrong is not None:
        raise SourceNotReadable(
            "a text file is not UTF-8",
            resource=resource,
            path="spec.hdfsLike.format",
            found=unquote(wrong["file"]),
            expected="text in UTF-8",
            hint="write the file in UTF-8, or read it by format binaryFile and decode it in a "
            "simpleVirtual source",
        )


def _whole_texts(
    spark: SparkSession, paths: Sequence[str], options: Mapping[str, str], charset: str | None
) -> DataFrame:
    reader = spark.read.format("text").options(**options_of_files(options))
    frame = reader.option("wholetext", "true").load(list(paths))
    meta = frame.metadataColumn("_metadata")
    return frame.where(meta.getField("file_size") <= LONGEST_FILE).select(
        meta.getField("file_path").alias("file"), decoded(charset).alias("line")
    )


def _json_fault(text: str, unit: str) -> str:
    """Return why a text is wrong; empty where that is not proved, which Spark then has to judge."""
    decoder = json.JSONDecoder(object_pairs_hook=_every_key_once, strict=False)
    stripped = text.strip()
    try:
        _, end = decoder.raw_decode(stripped)
    except _KeyTwice as twice:
        return f"an object of JSON has the key {twice} twice"
    except (ValueError, RecursionError):
        return ""
    if stripped[end:].strip():
        return f"a {unit} of JSON has more than one value"
    if re.search(HALF_PAIR, stripped):
        return "a text of JSON has half of a surrogate pair, which is no character"
    return ""


def _every_key_once(pairs: Sequence[tuple[str, object]]) -> None:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise _KeyTwice(json.dumps(key, ensure_ascii=False)[:LONGEST_SHOWN])
        seen.add(key)
