"""Java's object serialisation, read without Java: Bloom filters and old metadata in it."""

from __future__ import annotations

import struct
from collections.abc import Collection
from dataclasses import dataclass, field
from decimal import Context, Decimal

from snaploom.skipping.core.definition import Value

# Java's object serialisation stream, read without Java.

STREAM_HEADER = b"\xac\xed\x00\x05"
"""Magic and version of every stream."""

NULL, CLASS, OBJECT, STRING = 0x70, 0x72, 0x73, 0x74
SHORT_BLOCK, LONG_BLOCK, END_BLOCK = 0x77, 0x7A, 0x78
FIRST_HANDLE = 0x7E0000
WRITE_METHOD, SERIALIZABLE = 0x01, 0x02

_MAX_DEPTH = 64
_PRIMITIVES = {
    "B": ">b", "C": ">H", "D": ">d", "F": ">f", "I": ">i", "J": ">q", "S": ">h", "Z": ">?",
}  # fmt: skip


class StreamInvalid(ValueError):
    """Not a stream that can be read here; the message describes the fault."""


@dataclass
class JavaObject:
    """An object, with the data that its classes' own `writeObject` added, in order.

    Its fields are those of its class and of all above it.
    """

    class_name: str
    fields: dict[str, object] = field(default_factory=dict)
    added: list[object] = field(default_factory=list)

    def block_data(self) -> bytes:
        """All block data that was added, joined."""
        return b"".join(part for part in self.added if isinstance(part, bytes))


@dataclass
class _Class:
    name: str
    flags: int = 0
    fields: list[tuple[str, str]] = field(default_factory=list)
    parent: _Class | None = None


def read_stream(data: bytes, without_fields: Collection[str] = ()) -> object:
    """First value of a stream; `without_fields` are classes that write no default fields."""
    try:
        return _Reader(data, frozenset(without_fields)).read()
    except (struct.error, IndexError, KeyError, UnicodeDecodeError) as error:
        raise StreamInvalid(f"cut or damaged ({type(error).__name__})") from error


class _Reader:
    def __init__(self, data: bytes, without_fields: frozenset[str]) -> None:
        self._data = data
        self._at = 0
        self._depth = 0
        self._handles: list[object] = []
        self._without_fields = without_fields

    def read(self) -> object:
        if self._take(4) != STREAM_HEADER:
            raise StreamInvalid("no Java object stream")
        return self._content()

    def _take(self, count: int) -> bytes:
        taken = self._data[self._at : self._at + count]
        if count < 0 or len(taken) != count:
            raise StreamInvalid("it ends early")
        self._at += count
        return taken

    def _number(self, form: str) -> int:
        (value,) = struct.unpack(form, self._take(struct.calcsize(form)))
        return int(value)

    def _utf(self, count: int) -> str:
        """Java's modified UTF-8: surrogates one by one, and a NUL of two bytes."""
        raw = self._take(count).replace(b"\xc0\x80", b"\0")
        text = raw.decode("utf-8", "surrogatepass")
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")

    def _content(self) -> object:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise StreamInvalid("it is nested too deeply")
        value = self._tagged(self._number(">B"))
        self._depth -= 1
        return value

    def _tagged(self, tag: int) -> object:
        match tag:
            case 0x70:
                return None
            case 0x71:
                return self._handles[self._number(">I") - FIRST_HANDLE]
            case 0x72:
                return self._class()
            case 0x73:
                return self._object()
            case 0x74:
                return self._remember(self._utf(self._number(">H")))
            case 0x7C:
                return self._remember(self._utf(self._number(">Q")))
            case 0x75:
                return self._array()
            case 0x77:
                return self._take(self._number(">B"))
            case 0x7A:
                return self._take(self._number(">i"))
        raise StreamInvalid(f"the tag {tag:#04x} is not understood")

    def _remember(self, value: object) -> object:
        self._handles.append(value)
        return value

    def _until_end(self) -> list[object]:
        found: list[object] = []
        while self._data[self._at] != END_BLOCK:
            found.append(self._content())
        self._at += 1
        return found

    def _class(self) -> _Class:
        described = _Class(self._utf(self._number(">H")))
        self._number(">q")
        self._remember(described)
        described.flags = self._number(">B")
        for _ in range(self._number(">H")):
            code = chr(self._number(">B"))
            name = self._utf(self._number(">H"))
            if code in "[L":
                self._content()
            described.fields.append((name, code))
        self._until_end()
        described.parent = self._class_or_none()
        return described

    def _class_or_none(self) -> _Class | None:
        described = self._content()
        if described is not None and not isinstance(described, _Class):
            raise StreamInvalid("a class was expected")
        return described

    def _lineage(self) -> list[_Class]:
        described = self._class_or_none()
        lineage: list[_Class] = []
        # Not until there is no parent: a class may be named as its own.
        while described is not None and len(lineage) < _MAX_DEPTH:
            lineage.append(described)
            described = described.parent
        if not lineage or described is not None:
            raise StreamInvalid("an object of no class")
        return lineage[::-1]

    def _object(self) -> JavaObject:
        lineage = self._lineage()
        made = JavaObject(lineage[-1].name)
        self._remember(made)
        for described in lineage:
            if not described.flags & SERIALIZABLE:
                raise StreamInvalid(f"the class {described.name} writes itself")
            if described.name not in self._without_fields:
                for name, code in described.fields:
                    made.fields[name] = self._value(code)
            if described.flags & WRITE_METHOD:
                made.added += self._until_end()
        return made

    def _value(self, code: str) -> object:
        if code in "[L":
            return self._content()
        form = _PRIMITIVES[code]
        (value,) = struct.unpack(form, self._take(struct.calcsize(form)))
        return value

    def _array(self) -> object:
        described = self._class_or_none()
        if described is None:
            raise StreamInvalid("an array of no class")
        place = len(self._handles)
        self._remember(None)
        count, code = self._number(">i"), described.name[1:2]
        if code == "B":
            values: object = self._take(count)
        else:
            if not 0 <= count <= len(self._data):
                raise StreamInvalid("an array longer than the stream")
            values = [self._value(code) for _ in range(count)]
        self._handles[place] = values
        return values


# Bloom filters of a metadata store: a Java object stream around Spark's own form.

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
_SHORT_BLOCK_MOST = 255
_HEADER = struct.Struct(">iii")
_VERSION = 1


def read_bloom(data: bytes) -> bytes:
    """The filter in a stream of any version of the store, in Spark's own form."""
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


# Values of version 0: Java objects of the reference's metadata classes, with boxed values.

_INTEGRALS = {
    "java.lang.Byte": "tinyint",
    "java.lang.Short": "smallint",
    "java.lang.Integer": "int",
    "java.lang.Long": "bigint",
}
_OTHERS = {
    "java.lang.Boolean": "boolean",
    "java.lang.Float": "float",
    "java.lang.Double": "double",
}
DECIMAL = "decimal"
"""Type of every decimal here: precision and scale were not stored."""

_DECIMAL_CLASS = "java.math.BigDecimal"
_TIMESTAMP = "java.sql.Timestamp"
_MICROS = 1_000_000
_HASH_SET = "scala.collection.mutable.HashSet"
_MOST_DIGITS = 76
_MOST_BYTES = 32
"""Bytes of a decimal of so many digits."""

MOST_VALUES, LONGEST_SET = 1_000_000, 64 * 1024 * 1024
"""Values of a set, and bytes of all its texts: the reference keeps every value of a file, and a
set beyond this would be of no use to anybody."""

TypedValue = tuple[str, Value]
"""A Spark type (`decimal` for any decimal) and a value of it."""


def read_bounds(data: bytes) -> tuple[TypedValue | None, TypedValue | None]:
    """The least and the greatest value, None without any; `StreamInvalid` if unreadable."""
    stored = _metadata(data)
    if not {"min", "max"} <= stored.fields.keys():
        raise StreamInvalid(f"a {stored.class_name} holds no bounds")
    return _boxed(stored.fields["min"]), _boxed(stored.fields["max"])


def read_values(data: bytes) -> list[TypedValue]:
    """Every distinct value; `StreamInvalid` if unreadable."""
    values = _metadata(data).fields.get("values")
    if not isinstance(values, JavaObject) or values.class_name != _HASH_SET:
        raise StreamInvalid("there is no set of values")
    blocks = values.block_data()
    elements = [each for each in values.added if not isinstance(each, bytes)]
    # Load factor, number of elements, seed, and whether there is a size map.
    if len(blocks) < 8 or int.from_bytes(blocks[4:8], "big") != len(elements):
        raise StreamInvalid("the set of values is not whole")
    if len(elements) > MOST_VALUES:
        raise StreamInvalid("the set has too many values")
    typed: list[TypedValue] = []
    room = LONGEST_SET
    for each in map(_boxed, elements):
        if each is not None:
            typed.append(each)
            # One text may be there many times, by references of some bytes.
            room -= len(each[1]) if isinstance(each[1], bytes) else 0
        if room < 0:
            raise StreamInvalid("the values of the set are too long")
    return typed


def _metadata(data: bytes) -> JavaObject:
    stored = read_stream(data)
    if not isinstance(stored, JavaObject):
        raise StreamInvalid("the stream holds no metadata object")
    return stored


def _boxed(value: object) -> TypedValue | None:
    if value is None:
        return None
    if isinstance(value, str):
        return "string", value.encode()
    if isinstance(value, bytes):
        return "binary", value
    if not isinstance(value, JavaObject):
        raise StreamInvalid(f"a {type(value).__name__} is no value")
    name, inner = value.class_name, value.fields.get("value")
    if name in _INTEGRALS and isinstance(inner, int):
        return _INTEGRALS[name], inner
    if name in _OTHERS and isinstance(inner, bool | float):
        return _OTHERS[name], inner
    if name == _DECIMAL_CLASS:
        return DECIMAL, _decimal(value)
    if name == _TIMESTAMP:
        milliseconds, nanos = value.block_data(), value.fields.get("nanos")
        if len(milliseconds) != 8 or not isinstance(nanos, int):
            raise StreamInvalid("a timestamp is not whole")
        seconds = int.from_bytes(milliseconds, "big", signed=True) // 1000
        return "timestamp", seconds * _MICROS + nanos // 1000
    raise StreamInvalid(f"values of {name} are not read")


def _decimal(value: JavaObject) -> Decimal:
    scale, whole = value.fields.get("scale"), value.fields.get("intVal")
    magnitude = whole.fields.get("magnitude") if isinstance(whole, JavaObject) else None
    sign = whole.fields.get("signum") if isinstance(whole, JavaObject) else None
    if not isinstance(scale, int) or not isinstance(magnitude, bytes) or not isinstance(sign, int):
        raise StreamInvalid("a decimal is not whole")
    if len(magnitude) > _MOST_BYTES or abs(scale) > _MOST_DIGITS or abs(sign) > 1:
        raise StreamInvalid("a decimal has too many digits")
    number = Decimal(sign * int.from_bytes(magnitude, "big"))
    return number.scaleb(-scale, Context(prec=_MOST_DIGITS))
