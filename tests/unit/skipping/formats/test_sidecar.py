"""Our own Parquet files: what is written is read back, and nothing else is."""

from __future__ import annotations

import base64
import io
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.skipping.indexstores import definition, table

from snaploom.errors import IndexUnreadable, KeyUnavailable
from snaploom.skipping.formats import parquetfiles
from snaploom.skipping.formats.parquetfiles import (
    METADATA_KEY,
    ParquetKeys,
    SidecarReader,
    write_sidecars,
)

ROWS = table({"b": (2, 20), "a": (1, 10), "c": (3, None)})


class PlainService:
    """Wraps by label and Base64: enough to see which key is asked for."""

    def __init__(self, *labels: str) -> None:
        self.labels = labels

    def wrap(self, label: str, key: bytes) -> str:
        return f"{label}:{base64.b64encode(key).decode()}"

    def unwrap(self, label: str, wrapped: str) -> bytes:
        if label not in self.labels:
            raise KeyUnavailable(f"no key {label}")
        return base64.b64decode(wrapped.removeprefix(f"{label}:"))


def encoded(rows: pa.Table = ROWS) -> bytes:
    (file,) = write_sidecars([rows], definition(), None)
    return file.data


def test_every_kind_of_column_is_read_back() -> None:
    values = {
        "i1.values": pa.array([1, None, 3], pa.int64()),
        "i1.values.1": pa.array([4, 5, 6], pa.int64()),
        "i1.set": pa.array([[b"x"], None, []], pa.list_(pa.large_binary())),
        "i1.d": pa.array([None, 1, 2], pa.decimal128(38, 2)),
        "i1.f": pa.array([1.5, None, float("inf")], pa.float32()),
        "i1.t": pa.array([1, -1, None], pa.int8()),
        "i1.o": pa.array([True, None, False], pa.bool_()),
    }
    rows = pa.table({**{name: ROWS[name] for name in parquetfiles._IDENTITY}, **values})
    reader = SidecarReader(encoded(rows), "x", None)
    assert reader.read(reader.columns).replace_schema_metadata(None) == rows.sort_by("path")


def test_only_the_columns_that_are_asked_for_are_read() -> None:
    assert SidecarReader(encoded(), "x", None).read(["i1.min"]).column_names == ["i1.min"]


def test_large_input_makes_files_of_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquetfiles, "FILE_BYTES", 1)
    monkeypatch.setattr(parquetfiles, "ROW_GROUP_ROWS", 2)
    files = list(write_sidecars([ROWS, ROWS], definition(), None))
    assert sum(file.rows for file in files) == 6
    assert len(files) > 1


def test_file_of_a_newer_format_is_refused() -> None:
    sink = io.BytesIO()
    pq.write_table(ROWS.replace_schema_metadata({METADATA_KEY: b'{"format":2}'}), sink)
    with pytest.raises(IndexUnreadable, match="newer Snaploom"):
        SidecarReader(sink.getvalue(), "x", None)


def test_file_of_another_owner_is_refused() -> None:
    sink = io.BytesIO()
    pq.write_table(ROWS, sink)
    with pytest.raises(IndexUnreadable, match="none of Snaploom's"):
        SidecarReader(sink.getvalue(), "x", None)


@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_encrypted_file_is_read_with_its_keys_only(plaintext_footer: bool) -> None:
    declared = replace(
        definition(),
        indexes=(replace(definition().indexes[0], key_label="k1"),),
        footer_key_label="k2",
        plaintext_footer=plaintext_footer,
    )
    keys = ParquetKeys(PlainService("k1", "k2"))
    (file,) = write_sidecars([ROWS], declared, keys)
    read = SidecarReader(file.data, "x", keys).read(ROWS.column_names)
    assert read.replace_schema_metadata(None) == ROWS.sort_by("path")
    assert b"file:/data/flights" not in file.data
    with pytest.raises(KeyUnavailable):
        SidecarReader(file.data, "x", None).read(["path", "i1.min"])


def test_encryption_without_a_key_service_is_refused() -> None:
    with pytest.raises(KeyUnavailable):
        list(write_sidecars([ROWS], replace(definition(), footer_key_label="k"), None))
