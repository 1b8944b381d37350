"""Footers of which Arrow must not be asked everything: it ends the process."""

import base64
import io
import os
import pickle
import random
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest
from support.documentation.examples import REPOSITORY
from support.hostile.thriftedit import (
    INT32,
    INT64,
    LIST,
    STRUCT,
    TEXT,
    Value,
    edited,
    text,
    varint,
    whole,
)
from support.skipping.indexeddata import build, index

from snaploom.errors import SourceNotReadable
from snaploom.parquet.batches import FailedFooter, FooterParser
from snaploom.parquet.footers import FooterInvalid, local_footer_bytes, parse_footer
from snaploom.plugins.discovery.discover import discover
from snaploom.skipping.spark.targets.targetlookup import open_path

TABLE = pa.table({
    "id": pa.array(range(10), pa.int64()),
    "text": [f"x{n}" for n in range(10)],
    "half": pa.array([1.5] * 10, pa.float32()),
    "price": pa.array([Decimal("1.23")] * 10, pa.decimal128(20, 2)),
    "day": [date(2026, 1, 1)] * 10,
    "is_new": [True] * 10,
    "lines": [{"n": 1, "tags": [1, 2]}] * 10,
})  # fmt: skip
Edit = Callable[[Value], None]


def parquet_file(table: pa.Table = TABLE, **options: object) -> bytes:
    """The bytes of a file of two row groups."""
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=5, **options)
    return sink.getvalue()


def first_chunk(footer: Value) -> Value:
    """The first column chunk of a file, a column of whole numbers."""
    return footer.get(4).members[0].get(1).members[0]


def _described(footer: Value) -> Value:
    return first_chunk(footer).get(3)


def _other_type(footer: Value) -> None:
    _described(footer).fields[0] = (1, whole(5))


def _type_again(footer: Value) -> None:
    _described(footer).fields.append((1, whole(5)))


def _short_bound(footer: Value) -> None:
    _described(footer).get(12).put(6, text(b"abc"))


def _long_histogram(footer: Value) -> None:
    numbers = Value(LIST, members=[whole(1, INT64)] * 9, of=INT64)
    _described(footer).get(16).put(3, numbers)


def _bytes_of_numbers(footer: Value) -> None:
    sizes = _described(footer).get(16)
    sizes.fields = [(1, whole(9, INT64)), *sizes.fields]


def _encodings_as_texts(footer: Value) -> None:
    _described(footer).get(2).of = TEXT


def _notes_as_numbers(footer: Value) -> None:
    footer.get(5).of = INT32


def _no_description(footer: Value) -> None:
    first_chunk(footer).fields = first_chunk(footer).fields[:1]


def _encrypted(footer: Value) -> None:
    path = Value(LIST, members=[text(b"id")], of=TEXT)
    key = Value(STRUCT, fields=[(1, path)])
    first_chunk(footer).put(8, Value(STRUCT, fields=[(2, key)]))


def _fewer_columns(footer: Value) -> None:
    del footer.get(4).members[0].get(1).members[0]


def _no_columns(footer: Value) -> None:
    footer.get(4).members[0].get(1).members.clear()


ODD: dict[str, Edit] = {
    "other type": _other_type,
    "type again": _type_again,
    "short bound": _short_bound,
    "long histogram": _long_histogram,
    "bytes of numbers": _bytes_of_numbers,
    "encodings as texts": _encodings_as_texts,
    "notes as numbers": _notes_as_numbers,
    "no description": _no_description,
    "encrypted": _encrypted,
    "fewer columns": _fewer_columns,
    "no columns": _no_columns,
}
"""Changes to a footer after which nobody should ask Arrow about its first column."""


class _Keys(pe.KmsClient):
    """Keys that are wrapped in nothing."""

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
        return base64.b64encode(key_bytes)

    def unwrap_key(self, wrapped_key: bytes, master_key_identifier: str) -> bytes:
        return base64.b64decode(wrapped_key)


def write_with_encrypted_column(file: Path) -> None:
    """Write a file whose footer anybody can read, and of whose columns one is encrypted."""
    factory = pe.CryptoFactory(lambda config: _Keys())
    settings = pe.EncryptionConfiguration(
        footer_key="footer", column_keys={"column": ["text"]}, plaintext_footer=True
    )
    properties = factory.file_encryption_properties(pe.KmsConnectionConfig(), settings)
    with pq.ParquetWriter(file, TABLE.schema, encryption_properties=properties) as writer:
        writer.write_table(TABLE)


def damage(footer: Value, random: random.Random) -> None:
    for _ in range(random.randint(1, 3)):
        _change(random.choice(_values(footer.get(4))), random)


def _values(value: Value) -> list[Value]:
    members = [*value.members, *(each for _, each in value.fields)]
    return [value, *(found for each in members for found in _values(each))]


def _change(value: Value, random: random.Random) -> None:
    if value.kind in (INT32, INT64):
        value.raw = varint(random.choice([0, 1, 2, 4, 10, 12, 2**32 - 1, 2**64 - 1]))
    elif value.kind == TEXT:
        length = random.choice([0, 1, 3, 4, 7, 8, 12, 16, 17])
        value.raw = varint(length) + random.randbytes(length)
    elif value.kind == STRUCT and value.fields:
        place = random.randrange(len(value.fields))
        number, found = value.fields[place]
        others = [found, whole(3), text(b"ab"), Value(STRUCT)]
        match random.randrange(4):
            case 0:
                del value.fields[place]
            case 1:
                value.fields.append((random.randint(1, 20), random.choice(others)))
            case 2:
                value.fields[place] = (random.randint(1, 16), found)
            case _:
                value.fields[place] = (number, random.choice(others))
    elif value.kind == LIST and value.members:
        if random.random() < 0.5:
            del value.members[random.randrange(len(value.members))]
        else:
            value.members.append(random.choice(value.members))


ASK = """
import pickle, sys
import pyarrow as pa, pyarrow.parquet as pq
from snaploom.parquet.footers import FooterInvalid, parse_footer

def ask(metadata):
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for column in map(group.column, range(metadata.num_columns)):
            column.num_values, column.total_uncompressed_size
            try:
                found = column.statistics
                found and found.has_min_max and (found.min_raw, found.max_raw)
            except (OSError, ValueError, OverflowError, pa.ArrowException):
                pass

parse = {"ours": parse_footer, "arrow": lambda content: pq.read_metadata(pa.BufferReader(content))}
asked = 0
for content in pickle.load(sys.stdin.buffer):
    try:
        metadata = parse[sys.argv[1]](content)
    except (FooterInvalid, OSError, ValueError, pa.ArrowException):
        continue
    ask(metadata)
    asked += 1
print(asked)
"""
"""Asks about every column chunk of footers, and prints how many footers could be parsed."""


def asked(parser: str, contents: list[bytes]) -> subprocess.CompletedProcess[bytes]:
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY / "sparkjobs/src")}
    command = [sys.executable, "-c", ASK, parser]
    return subprocess.run(
        command, input=pickle.dumps(contents), env=environment, capture_output=True, check=False
    )


@pytest.mark.parametrize("name", ["other type", "short bound", "long histogram", "encrypted"])
def test_arrow_ends_the_process_over_an_odd_column_chunk(name: str) -> None:
    """Where this fails, Arrow has learned to raise, and `parquet.footers` may go."""
    assert asked("arrow", [edited(parquet_file(), ODD[name])]).returncode < 0


@pytest.mark.parametrize("name", ODD)
def test_a_footer_with_an_odd_column_chunk_is_refused(name: str) -> None:
    with pytest.raises(FooterInvalid):
        parse_footer(edited(parquet_file(), ODD[name]))


@pytest.mark.parametrize("name", ODD)
def test_an_odd_footer_among_its_like_fails_by_itself(name: str) -> None:
    content = parquet_file()
    found = FooterParser().parse([content, content, edited(content, ODD[name]), content])
    assert [each.place for each in found if isinstance(each, FailedFooter)] == [2]


@pytest.mark.parametrize("seed", range(3))
def test_damaged_footers_never_end_the_process(seed: int) -> None:
    chance = random.Random(seed)
    files = [parquet_file(), parquet_file(use_deprecated_int96_timestamps=True, version="1.0")]
    contents = [
        edited(chance.choice(files), lambda found: damage(found, chance)) for _ in range(1500)
    ]
    done = asked("ours", contents)
    assert done.returncode == 0, done.stderr[-500:]
    assert int(done.stdout) > 300  # of 1,500 about 900: the others are refused


@pytest.mark.parametrize(
    "options",
    [{}, {"version": "1.0"}, {"store_decimal_as_integer": True}, {"use_dictionary": False}],
)
def test_sound_footers_are_parsed_whatever_wrote_them(options: dict[str, object]) -> None:
    content = parquet_file(**options)
    assert parse_footer(content).equals(pq.read_metadata(pa.BufferReader(content)))


def test_an_encrypted_column_is_a_footer_that_proves_nothing(tmp_path: Path) -> None:
    write_with_encrypted_column(tmp_path / "a.parquet")
    with pytest.raises(FooterInvalid, match="encrypted"):
        parse_footer(local_footer_bytes(str(tmp_path / "a.parquet")))


def test_init_names_a_file_with_an_encrypted_column(tmp_path: Path) -> None:
    write_with_encrypted_column(tmp_path / "a.parquet")
    with pytest.raises(SourceNotReadable, match=r"a.parquet: not readable .* decrypt"):
        discover([str(tmp_path)], "file:///m/")


def test_a_build_reads_a_file_whose_footer_is_odd_and_takes_it_for_what_it_is(spark, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    for name, least in (("a", 0), ("b", 100), ("c", 200)):
        ids = pa.table({"id": pa.array(range(least, least + 10), pa.int64())})
        (data / f"{name}.parquet").write_bytes(parquet_file(ids))
    odd = data / "b.parquet"
    odd.write_bytes(edited(odd.read_bytes(), ODD["long histogram"]))
    target = open_path(spark, str(data), "parquet")
    rows = build(target, index(target, "MIN_MAX", "id"))
    assert [(row["i1.min"], row["i1.max"]) for row in rows] == [(0, 9), (100, 109), (200, 209)]
    assert target.counters.scanned_files == 1
