"""Bloom filters of a metadata store: a Java object stream around Spark's own form.

The stream holds one `BloomFilterMetaData`, whose one field is Spark's `BloomFilterImpl`, which
writes itself as block data: 32-bit version 1, number of hash functions, number of words, and then
64-bit words, all big-endian. Version 2 (Spark 4.1 and later, by default) has a seed and scatters
its bits in another way: the store is pinned to version 1, and a filter of another version is
unknown, never wrongly probed.

What is written equals what the reference's releases write on Spark 3.0, byte for byte; on other
Sparks the descriptor of `BloomFilterImpl` has another serial version UID, and from Spark 4 on no
fields. The reference replaces the class descriptors of a stream by those of its own classes, so
these do not matter to it.
"""

from __future__ import annotations

import struct

from snaploom.interop.xskipper.javastream import (
    CLASS,
    END_BLOCK,
    LONG_BLOCK,
    NULL,
    OBJECT,
    SERIALIZABLE,
    SHORT_BLOCK,
    STREAM_HEADER,
    STRING,
    WRITE_METHOD,
    JavaObject,
    StreamInvalid,
    read_stream,
)

METADATA_CLASS = "io.xskipper.index.metadata.BloomFilterMetaData"
"""Class of the object in a bloom column, since version 3."""

UDT_CLASS = (
    "io.xskipper.metadatastore.parquet.ParquetBaseClauseTranslator$BloomFilterMetaDataTypeUDT"
)
"""Spark type of a bloom column, since version 3."""

FILTER_CLASS = "org.apache.spark.util.sketch.BloomFilterImpl"

_PARENT_CLASS = "io.xskipper.index.metadata.MetadataType"
_FIELD = "bloomFilter"
_FIELD_TYPE = "Lorg/apache/spark/util/sketch/BloomFilter;"
_METADATA_UID = 1
_PARENT_UID = 0x603F5D1B7B764446
"""Java's computed UID of `MetadataType` in the releases for Scala 2.12."""
_FILTER_UID = 0x83037740_76CEABF6 - (1 << 64)
"""Java's computed UID of the class in Spark 3.0."""
_BITS_TYPE = "Lorg/apache/spark/util/sketch/BitArray;"
_BLOCK = 1024
"""Java fills blocks of so many bytes."""
_SHORT_BLOCK_MOST = 255
_HEADER = struct.Struct(">iii")
_VERSION = 1


def read_bloom(data: bytes) -> bytes:
    """The filter in a stream of any version of the store, in Spark's own form.

    Raises:
        StreamInvalid: there is none, it is cut, or it is of another version.
    """
    value = read_stream(data, without_fields=[FILTER_CLASS])
    bloom = value.fields.get(_FIELD) if isinstance(value, JavaObject) else None
    if not isinstance(bloom, JavaObject) or bloom.class_name != FILTER_CLASS:
        found = bloom if isinstance(bloom, JavaObject) else value
        name = found.class_name if isinstance(found, JavaObject) else type(found).__name__
        raise StreamInvalid(f"a {name} is no bloom filter that can be probed")
    return _checked(bloom.block_data())


def write_bloom(bloom: bytes) -> bytes:
    """Stream of a bloom column from a filter in Spark's form; else `StreamInvalid`."""
    return b"".join([_PREFIX, *_blocks(_checked(bloom)), bytes([END_BLOCK])])


def _checked(bloom: bytes) -> bytes:
    if len(bloom) < _HEADER.size:
        raise StreamInvalid("the filter is cut")
    version, hash_functions, count = _HEADER.unpack_from(bloom)
    if version != _VERSION:
        raise StreamInvalid(f"the filter is of version {version}, not {_VERSION}")
    if hash_functions <= 0 or count <= 0 or len(bloom) != _HEADER.size + 8 * count:
        raise StreamInvalid("the filter's length is not the one it names")
    return bloom


def _blocks(data: bytes) -> list[bytes]:
    parts: list[bytes] = []
    for start in range(0, len(data), _BLOCK):
        block = data[start : start + _BLOCK]
        short = len(block) <= _SHORT_BLOCK_MOST
        parts.append(
            struct.pack(">BB", SHORT_BLOCK, len(block))
            if short
            else struct.pack(">Bi", LONG_BLOCK, len(block))
        )
        parts.append(block)
    return parts


def _utf(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode("ascii")


def _class(name: str, uid: int, flags: int, fields: bytes, count: int) -> bytes:
    head = bytes([CLASS]) + _utf(name) + struct.pack(">qBH", uid, flags, count)
    return head + fields + bytes([END_BLOCK])


_PREFIX = b"".join([
    STREAM_HEADER,
    bytes([OBJECT]),
    _class(
        METADATA_CLASS,
        _METADATA_UID,
        SERIALIZABLE,
        b"L" + _utf(_FIELD) + bytes([STRING]) + _utf(_FIELD_TYPE),
        1,
    ),
    _class(_PARENT_CLASS, _PARENT_UID, SERIALIZABLE, b"", 0),
    bytes([NULL]),
    bytes([OBJECT]),
    _class(
        FILTER_CLASS,
        _FILTER_UID,
        SERIALIZABLE | WRITE_METHOD,
        b"I" + _utf("numHashFunctions") + b"L" + _utf("bits") + bytes([STRING]) + _utf(_BITS_TYPE),
        2,
    ),
    bytes([NULL]),
])  # fmt: skip
"""Everything before the block data."""
