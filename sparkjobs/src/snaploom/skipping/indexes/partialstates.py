"""Partial states of builders as bytes: Arrow's own format, which runs nothing when it is read."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa


def pack(arrays: Sequence[pa.Array]) -> bytes:
    """Arrays of any lengths and types as bytes."""
    columns = [
        pa.LargeListArray.from_arrays(pa.array([0, len(array)], pa.int64()), array)
        for array in arrays
    ]
    batch = pa.record_batch(columns, [str(position) for position in range(len(columns))])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def unpack(content: bytes) -> list[pa.Array]:
    """Arrays that `pack` was given; `pa.ArrowInvalid` for other bytes."""
    with pa.ipc.open_stream(content) as reader:
        batch = reader.read_next_batch()
    return [column.flatten() for column in batch.columns]
