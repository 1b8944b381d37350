"""Java's object serialisation stream, read without Java.

Only what metadata stores hold is understood: objects of plain classes, strings, arrays of
primitives, block data and references. Serial version UIDs are ignored, and block data may be cut
anywhere. The grammar is in the Java Object Serialization Specification, section 6.4.

Whether a class with a `writeObject` of its own wrote its fields first is not in the stream. Most
do; the exceptions are named by the caller.
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from dataclasses import dataclass, field

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
    """First value of a stream; `without_fields` are classes that write no default fields.

    Raises:
        StreamInvalid: it ends early, or has something in it that is not understood.
    """
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
