"""Structs of Thrift's compact protocol, of which footers and pages of Parquet files consist.

They are walked before Arrow reads them, which takes as much memory as they claim. Anything that
Arrow might misread, such as a field that is there twice, is refused.
"""

from collections.abc import Callable, Iterator, Mapping

_MOST_DEPTH = 12
_FALSE, _BYTE, _INT16, INT32, INT64, _DOUBLE, TEXT, LIST, _SET, STRUCT = 2, *range(3, 11), 12
"""Kinds of fields and members; 1 is true."""
_SCHEMA = 2
"""Field of a footer: the schema, groups before their members."""
_NAME, _MEMBERS = 4, 5
"""Fields of an element of it."""
_KINDS = {_NAME: TEXT, _MEMBERS: INT32}

SHORT_FOOTER = 32 * 2**10
"""Bytes of a footer whose paths take little however they are chosen: 45 MB, of 2,700 columns in a
group whose name is half of it. Arrow takes three times that."""
LONGEST_PATHS = 64 * 2**20
"""Bytes of the paths of all columns of a file: 250,000 paths of 250."""


class StructInvalid(ValueError):
    """Bytes that are not a valid struct."""


class PathsTooLong(StructInvalid):
    """A schema whose paths would take more than `LONGEST_PATHS`."""


def refuse_long_paths(footer: bytes) -> None:
    """Refuse the footer of a Parquet file whose column paths take too much memory."""
    if len(footer) <= SHORT_FOOTER:
        return
    CompactStruct(footer, 0, len(footer), keeps=False).footer()


Visitor = Callable[[bytes, int, int], int]
"""Is given bytes, the place and the kind of a value, and returns the place behind it."""


def behind_struct(data: bytes, at: int, visitors: Mapping[int, Visitor]) -> int:
    """Walk a parsed struct three times as fast as `CompactStruct`; returns its end."""
    number = 0
    while head := data[at]:
        at += 1
        if head > 15:
            number += head >> 4
        else:
            last = number
            number, at = number_at(data, at)
            if number & 1 or number >> 1 <= last:
                raise StructInvalid("a struct whose fields are not in order")
            number >>= 1
        kind = head & 15
        if number in visitors:
            at = visitors[number](data, at, kind)
        elif kind == INT64:  # most fields: a call for each would take longer than the field
            while data[at] > 0x7F:
                at += 1
            at += 1
        else:
            at = behind_value(data, at, kind)
    if number >= 1 << 15:  # readers may take 65,538 for 2
        raise StructInvalid("a field without a number")
    return at + 1


def behind_value(data: bytes, at: int, kind: int) -> int:
    """The place behind a value of a kind; raises as `behind_struct` does."""
    if _INT16 <= kind <= INT64:
        while data[at] > 0x7F:
            at += 1
        return at + 1
    if kind == TEXT:
        length, at = number_at(data, at)
        return at + length
    if kind == STRUCT:
        while head := data[at]:
            at += 1
            if head < 16:
                _, at = number_at(data, at)
            kind = head & 15
            if kind in (INT32, INT64):
                while data[at] > 0x7F:
                    at += 1
                at += 1
            elif kind > _FALSE:
                at = behind_value(data, at, kind)
        return at + 1
    if kind in (LIST, _SET):
        of, count, at = list_at(data, at)
        if count and not of:
            raise StructInvalid("a list of nothing")
        if of <= _BYTE:  # a truth value takes a byte in a list
            return at + count
        if of in (INT32, INT64):  # histograms: a call for each number takes half as long again
            for _ in range(count):
                while data[at] > 0x7F:
                    at += 1
                at += 1
            return at
        for _ in range(count):
            at = behind_value(data, at, of)
        return at
    if kind <= _BYTE:
        return at + (kind == _BYTE)
    if kind == _DOUBLE:
        return at + 8
    raise StructInvalid("a struct with a field of another kind")


def number_at(data: bytes, at: int) -> tuple[int, int]:
    """A number that is not negative, and the place behind it."""
    found = data[at]
    at += 1
    if found > 0x7F:
        found &= 0x7F
        shift = 7
        while (byte := data[at]) > 0x7F:
            found |= (byte & 0x7F) << shift
            shift += 7
            at += 1
        return found | byte << shift, at + 1
    return found, at


def list_at(data: bytes, at: int) -> tuple[int, int, int]:
    """Kind and number of members of a list, and where the first begins."""
    head = data[at]
    if head >> 4 < 15:
        return head & 15, head >> 4, at + 1
    count, at = number_at(data, at + 1)
    return head & 15, count, at


class Int32(int):
    """A 32-bit number, distinct from 64-bit ones: readers ignore a field of a wrong kind."""


class CompactStruct:
    """A struct of the compact protocol; deeper nesting than Parquet has is refused."""

    def __init__(self, data: bytes, at: int, end: int, *, keeps: bool = True) -> None:
        """A struct between two places; members of lists are kept if `keeps`."""
        self._data = data
        self._keeps = keeps
        self._at = at
        self._end = min(end, len(data))

    def read(self) -> tuple[dict[int, object], int]:
        """Fields by number, texts left out, and where the struct ends."""
        return self._struct(0), self._at

    def footer(self) -> dict[int, object]:
        """Fields of a Parquet file's footer by number, the schema left out.

        Arrow keeps each column's path as one text, in which the names of all groups around it are
        counted again: few bytes of a schema can take any number of them.
        """
        fields: dict[int, object] = {}
        paths = 0
        for number, kind in self._heads():
            if number in fields:
                raise StructInvalid("a footer with a field that is there twice")
            if number != _SCHEMA:
                fields[number] = self._value(kind, 0)
                continue
            if kind != LIST:
                raise StructInvalid("a schema that is no list")
            fields[number] = None
            paths = self._schema()
        if paths > LONGEST_PATHS:
            raise PathsTooLong(
                f"columns whose paths take {paths:,} bytes; at most {LONGEST_PATHS:,}"
            )
        return fields

    def field_ends(self) -> Iterator[tuple[int, int]]:
        """Number and end of each field, in order; `StructInvalid` for an invalid struct."""
        for number, kind in self._heads():
            self._value(kind, 0)
            yield number, self._at

    def _schema(self) -> int:
        kind, count = self._list()
        if kind != STRUCT:
            raise StructInvalid("a schema of something else than structs")
        total = 0
        around: list[tuple[int, int]] = []  # members still to come, and bytes of the path
        for number in range(count):
            name, members = self._element()
            path = (around[-1][1] if around else 0) + (name + 1 if number else 0)
            if around:
                left, before = around.pop()
                if left > 1:
                    around.append((left - 1, before))
            if members > 0:
                around.append((members, path))
            else:
                total += path
        return total

    def _element(self) -> tuple[int, int]:
        name = members = 0
        seen: set[int] = set()
        for number, kind in self._heads():
            if number in seen or _KINDS.get(number, kind) != kind:
                raise StructInvalid("an element with a field twice, or of another kind")
            seen.add(number)
            if number == _NAME:
                name = self._varint()
                self._skip(name)
                continue
            found = self._value(kind, 0)
            if number == _MEMBERS and isinstance(found, int):
                members = found
        return name, members

    def _struct(self, depth: int) -> dict[int, object]:
        if depth > _MOST_DEPTH:
            raise StructInvalid("a struct that is nested too deeply")
        fields: dict[int, object] = {}
        number = 0
        while head := self._byte():
            number = self._field(number, head)
            if number in fields:
                raise StructInvalid("a struct with a field that is there twice")
            fields[number] = self._value(head & 0x0F, depth)
        return fields

    def _heads(self) -> Iterator[tuple[int, int]]:
        number = 0
        while head := self._byte():
            number = self._field(number, head)
            yield number, head & 0x0F

    def _field(self, number: int, head: int) -> int:
        found = number + (head >> 4) if head >> 4 else self._number()
        if not 0 < found < 1 << 15:  # readers may take 65,538 for 2
            raise StructInvalid("a field without a number")
        return found

    def _value(self, kind: int, depth: int) -> object:
        match kind:
            case 1 | 2:
                return kind == 1
            case 3:
                return self._byte()
            case 4 | 5:
                found = self._number()
                if not -(1 << 31) <= found < 1 << 31:
                    raise StructInvalid("a number that is too long")
                return Int32(found)
            case 6:
                return self._number()
            case 7:
                self._skip(8)
                return None
            case 8:
                self._skip(self._varint())
                return None
            case 9 | 10:
                return self._members(depth + 1)
            case 12:
                return self._struct(depth + 1)
        raise StructInvalid("a struct with a field of another kind")

    def _members(self, depth: int) -> list[object]:
        if depth > _MOST_DEPTH:
            raise StructInvalid("a list that is nested too deeply")
        kind, count = self._list()
        if not self._keeps:
            for _ in range(count):
                self._member(kind, depth)
            return []
        return [self._member(kind, depth) for _ in range(count)]

    def _member(self, kind: int, depth: int) -> object:
        # A truth value takes a byte in a list, where it is the kind of a field elsewhere.
        return self._byte() if kind < 3 else self._value(kind, depth)

    def _list(self) -> tuple[int, int]:
        head = self._byte()
        count = self._varint() if head >> 4 == 15 else head >> 4
        if count > self._end - self._at:  # each takes a byte at least
            raise StructInvalid("a list longer than what holds it")
        return head & 0x0F, count

    def _byte(self) -> int:
        if self._at >= self._end:
            raise StructInvalid("a struct that is cut")
        found = self._data[self._at]
        self._at += 1
        return found

    def _varint(self) -> int:
        found = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            found |= (byte & 0x7F) << shift
            if byte < 0x80 and found < 1 << 64:
                return found
        raise StructInvalid("a number that is too long")

    def _number(self) -> int:
        found = self._varint()
        return (found >> 1) ^ -(found & 1)

    def _skip(self, count: int) -> None:
        if count > self._end - self._at:
            raise StructInvalid("a struct that is cut")
        self._at += count
