"""Regular expressions of users: the syntax of Python's `re` that a linear engine supports.

They are searched for in names that a source brings along, in the operator's webhook and in jobs.
RE2 takes time in proportion to the text for every pattern, and a bounded amount of memory
(decision 0031). Its syntax differs from Python's in details, some of which would change a meaning
silently, so that patterns are rewritten first: what both know is spelled out as RE2 writes it, and
what RE2 lacks is refused by name. `tests/hostile/test_regexes.py` compares both engines.
"""

import re
import string
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import re2

MAX_PROGRAM = 8 << 20
r"""Bytes that RE2 may take for one pattern, its own default: 350,000 instructions, as many as
`\w{1,255}` needs. Reaching the limit takes a quarter of a second at most (measured)."""
MAX_REPEAT = 1000
"""Largest count of a repetition in RE2, nested ones multiplied."""
MAX_NAME = 4096
"""Characters of a name that a rename may read or give. Replacing everywhere may look at the rest of
the name once for each character: 4096 of them take 10 ms at worst (measured)."""

_WORK_OF_A_CHARACTER, _WORK_OF_A_KIND, _WORK_OF_WORDS, _WORK_OF_RANGES = 2, 20, 250, 400
r"""Cost of reading a pattern, in the instructions that take as long to compile (measured): each
character, `\d` and the like, `\w`, and `\W` in a class."""
_LONGEST_SHOWN = 200
"""Characters of a message of RE2 that are shown."""

_GROUP = re.compile(r"\$([0-9]{1,4})")
_WORD, _NOT_WORD = r"\p{L}\p{N}_", r"[^\p{L}\p{N}_]"
_SPACES = (
    (0x09, 0x0D), (0x1C, 0x20), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A),
    (0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000),
)  # fmt: skip
"""Characters for which `str.isspace` is true."""
_CONTROLS = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 0x5C}
_CODES = {"x": 2, "u": 4, "U": 8}
_LAST = 0x10FFFF
_REPEAT = re.compile(r"\{([0-9]*)(?:(,)([0-9]*))?\}")
_FLAGS = re.compile(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]+))?([:)])")
_WRITE_OUT = "write out what it stands for"
_TWO_SELECTORS = (
    "use coordinateExcludeRegex, a second selector, or a group that the replacement repeats"
)


class RegexError(ValueError):
    """A pattern, or a pattern and a name, that cannot be judged; the message has the remedy."""


class RegexInvalid(RegexError):
    """The pattern is not valid, or needs a feature that no linear engine has."""

    instructions = 0
    """Cost of finding out, in the instructions that take as long to compile."""

    def __init__(self, fault: str, instead: str = "") -> None:
        self.fault, self.instead = fault, instead
        super().__init__(f"{fault}: {instead}" if instead else fault)


class RegexTooLarge(RegexInvalid):
    """Its program takes more than `MAX_PROGRAM`."""

    instructions = 350_000


class RegexNotApplicable(RegexError):
    """A valid pattern whose meaning for this very name cannot be decided."""


@dataclass(frozen=True)
class Regex:
    """A pattern that is searched for in linear time."""

    _searching: re2._Regexp
    _capturing: re2._Regexp
    _has_edges: bool
    """Whether it asks for edges of words, which RE2 knows in ASCII only."""

    def is_found_in(self, text: str) -> bool:
        """Whether the pattern matches anywhere in a text.

        Raises:
            RegexNotApplicable: it asks for edges of words that are not ASCII.
        """
        self._refuse_edges(text)
        return self._searching.search(_encodable(text)) is not None

    def replaced(self, text: str, replacement: str) -> str:
        """A name with every match replaced; `$1` stands for the first group.

        Raises:
            RegexNotApplicable: the name is too long, becomes too long, or as in `is_found_in`.
        """
        self._refuse_edges(text)
        if len(text) > MAX_NAME:
            raise RegexNotApplicable(
                f"the name has {len(text)} characters; a rename reads at most {MAX_NAME}"
            )
        length, pieces = 0, list[str]()
        for piece in self._pieces(text, replacement):
            length += len(piece)
            if length > MAX_NAME:
                raise RegexNotApplicable(f"the new name has more than {MAX_NAME} characters")
            pieces.append(piece)
        return "".join(pieces)

    def _pieces(self, text: str, replacement: str) -> Iterator[str]:
        parts = _GROUP.split(replacement)  # text and number of a group, alternating
        end = 0
        for match in self._matches(_encodable(text)):
            yield text[end : match.start()]
            for index, part in enumerate(parts):
                yield part if index % 2 == 0 else _group_of(match, int(part), text)
            end = match.end()
        yield text[end:]

    def _matches(self, text: str) -> Iterator[re2._Match]:
        """The matches one after the other, none twice; an empty one may follow on another.

        RE2's own iterator gives an empty match at the end twice.
        """
        at, empty_at = 0, -1
        while at <= len(text):
            match = self._capturing.search(text, at)
            if match is None:
                return
            if match.end() == match.start() == empty_at:
                at += 1
                continue
            yield match
            at = match.end()
            empty_at = at if match.start() == at else -1

    def _refuse_edges(self, text: str) -> None:
        if not self._has_edges or text.isascii():
            return
        odd = next((c for c in text if not c.isascii() and c.isalnum()), None)
        if odd is not None:
            raise RegexNotApplicable(
                f"\\b and \\B know ASCII letters only, and the name '{text[:80]}' has '{odd}'; "
                r"write (?:^|\W) and (?:\W|$) for the edges of a word"
            )


@dataclass(frozen=True)
class Size:
    """The cost of a pattern that validation bounds."""

    groups: int
    instructions: int
    """Size of its program, or the work of reading the pattern in the same unit, whichever is more:
    alternatives of equal classes make a small program of much to read."""


def size_of(pattern: str) -> Size:
    """Judge a pattern, and keep nothing of it: the operator judges those of everybody.

    Raises:
        RegexInvalid: with the reason, what to write instead, and the work that it took.
    """
    rewriting = _Rewriting(pattern)
    try:
        compiled = _compiled(rewriting.text(), capture=True)
    except RegexInvalid as error:
        error.instructions = max(error.instructions, rewriting.work)
        raise
    return Size(compiled.groups, max(compiled.programsize, rewriting.work))


def regex(pattern: str) -> Regex:
    """The pattern, ready to be searched for."""
    rewriting = _Rewriting(pattern)
    text = rewriting.text()
    searching, capturing = (_compiled(text, capture=capture) for capture in (False, True))
    return Regex(searching, capturing, rewriting.has_edges)


@dataclass(frozen=True)
class LinearPattern:
    """A pattern of Snaploom's, in the syntax that both engines share, with a user's text in it."""

    _compiled: re2._Regexp

    def match(self, text: str) -> Mapping[str, str] | None:
        """The named groups of a match at the beginning of a text; None without one."""
        found = self._compiled.match(_encodable(text))
        if found is None:
            return None
        return {name: _group_of(found, at, text) for name, at in self._compiled.groupindex.items()}


def linear_pattern(text: str) -> LinearPattern:
    """A pattern in the syntax of both engines."""
    return LinearPattern(_compiled(text, capture=True))


def _compiled(text: str, *, capture: bool) -> re2._Regexp:
    options = re2.Options()
    options.max_mem = MAX_PROGRAM
    options.never_capture = not capture
    options.log_errors = False
    try:
        return re2.compile(text, options)
    except re2.error as error:
        raise _refusal(error) from None
    finally:
        re2.purge()  # its cache would hold 128 programs of any size


def _refusal(error: re2.error) -> RegexInvalid:
    """The message of RE2, in words that do not need its sources."""
    [message] = error.args
    text = message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)
    if text.startswith("pattern too large"):
        return RegexTooLarge(
            "the pattern is too large",
            "give smaller counts in { }, or fewer classes such as \\w",
        )
    if text.startswith("invalid repetition size"):
        return RegexInvalid(
            f"a repetition, nested ones multiplied, counts to {MAX_REPEAT} at most ({text})"
        )
    # Behind the reason stands a part of what was rewritten, which can be megabytes.
    return RegexInvalid(text if len(text) <= _LONGEST_SHOWN else text.partition(": ")[0])


def _group_of(match: re2._Match, group: int, text: str) -> str:
    start, end = match.span(group)
    return text[start:end] if start >= 0 else ""


def _encodable(text: str) -> str:
    """The text with halves of characters, which UTF-8 cannot hold, as the sign for none."""
    if text.isascii():
        return text
    return "".join("�" if "\ud800" <= c <= "\udfff" else c for c in text)


class _Rewriting:
    """One pass over a pattern of Python's, which writes it as RE2 reads it."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self.has_edges = False
        self.work = _WORK_OF_A_CHARACTER * len(pattern)
        """Instructions that take as long to compile as it takes to read what was rewritten."""

    def text(self) -> str:
        """The pattern for RE2."""
        written: list[str] = []
        while self._at < len(self._pattern):
            written.append(self._next())
        return "".join(written)

    def _next(self) -> str:
        character = self._pattern[self._at]
        if character == "\\":
            return self._escape()
        if character == "[":
            return self._class()
        if character == "(":
            return self._group()
        if character == "{":
            return self._braces()
        self._at += 1
        if character in "*+?":
            return character + self._after_repetition()
        return character if character in ".^$|)" else _literal(self._checked(character))

    def _refuse(self, what: str, instead: str) -> RegexInvalid:
        return RegexInvalid(f"{what} at character {self._at + 1}", instead)

    def _checked(self, character: str) -> int:
        if "\ud800" <= character <= "\udfff":
            raise self._refuse("half a character (a surrogate)", "write the whole character")
        return ord(character)

    def _after_repetition(self) -> str:
        following = self._pattern[self._at : self._at + 1]
        if following == "+":
            raise self._refuse("a possessive repetition", "leave out the second +")
        self._at += following == "?"
        return "?" if following == "?" else ""

    def _braces(self) -> str:
        found = _REPEAT.match(self._pattern, self._at)
        if found is None or found[0] == "{}":
            self._at += 1
            return r"\{"
        least = int(found[1] or 0)
        most = least if found[2] is None else int(found[3]) if found[3] else None
        if max(least, most or 0) > MAX_REPEAT:
            raise self._refuse(f"the repetition {found[0]}", f"count to {MAX_REPEAT} at most")
        self._at = found.end()
        end = "" if most == least else f",{'' if most is None else most}"
        return f"{{{least}{end}}}" + self._after_repetition()

    def _group(self) -> str:
        rest = self._pattern[self._at : self._at + 4]
        for start, what, instead in (
            ("(?=", "a lookahead", _TWO_SELECTORS),
            ("(?!", "a negative lookahead", _TWO_SELECTORS),
            ("(?<=", "a lookbehind", _TWO_SELECTORS),
            ("(?<!", "a negative lookbehind", _TWO_SELECTORS),
            ("(?>", "an atomic group", "write (?:"),
            ("(?P=", "a backreference", _WRITE_OUT),
            ("(?(", "a condition", "write both cases as alternatives"),
        ):
            if rest.startswith(start):
                raise self._refuse(f"{what}, which a linear engine cannot do,", instead)
        if rest.startswith("(?#"):
            end = self._pattern.find(")", self._at)
            if end < 0:
                raise self._refuse("a comment without an end", "close it by )")
            self._at = end + 1
            return ""
        if rest.startswith(("(?P<", "(?<")):
            end = self._pattern.find(">", self._at)
            if end < 0:
                raise self._refuse("the name of a group without an end", "close it by >")
            opening = self._pattern[self._at : end + 1]
            self._at = end + 1
            return opening
        flags = _FLAGS.match(self._pattern, self._at)
        if flags is None:
            self._at += 1
            return "("
        return self._flags(flags[0], flags[1], flags[2] or "", flags[3], flags.end())

    def _flags(self, group: str, on: str, off: str, end: str, stop: int) -> str:
        for flag, what, instead in (
            ("a", "the flag a", "write [0-9A-Za-z_] for \\w and [0-9] for \\d"),
            ("L", "the flag L", "leave it out"),
            ("x", "the flag x", "write the pattern without blanks and comments"),
        ):
            if flag in on + off:
                raise self._refuse(what, instead)
        if set(on + off) - set("imsu") or "u" in off or (group.startswith("(?)")):
            raise self._refuse(f"'{group}'", "use the flags i, m and s only")
        self._at = stop
        on = "".join(sorted(set(on) - {"u"}))
        if not on and not off:
            return "(?:" if end == ":" else ""
        return f"(?{on}{'-' + off if off else ''}{end}"

    def _escape(self) -> str:
        name = self._pattern[self._at + 1 : self._at + 2]
        if name in ("b", "B", "A"):
            self.has_edges |= name != "A"
            self._at += 2
            return f"\\{name}"
        if name in ("Z", "z"):
            self._at += 2
            return r"\z"
        if name == "W":
            self._at += 2
            self.work += _WORK_OF_WORDS
            return _NOT_WORD
        if name in _KINDS:
            self._at += 2
            self.work += _WORK_OF_WORDS if name == "w" else _WORK_OF_A_KIND
            return f"[{_KINDS[name]}]"
        octal = self._pattern[self._at + 1 : self._at + 4]
        if name in tuple("123456789") and not (
            len(octal) == 3 and all(digit in string.octdigits for digit in octal)
        ):
            raise self._refuse("a backreference, which a linear engine cannot do,", _WRITE_OUT)
        return _literal(self._code())

    def _code(self) -> int:
        name = self._pattern[self._at + 1 : self._at + 2]
        if not name:
            raise self._refuse("a \\ without a character after it", "write \\\\ for \\ itself")
        start = self._at + 2
        if name in _CONTROLS:
            self._at = start
            return _CONTROLS[name]
        if name in _CODES:
            number = self._pattern[start : start + _CODES[name]]
            if len(number) < _CODES[name] or set(number) - set(string.hexdigits):
                raise self._refuse(f"'\\{name}'", f"give it {_CODES[name]} hexadecimal digits")
            code = int(number, 16)
            if code > _LAST or 0xD800 <= code <= 0xDFFF:
                raise self._refuse(
                    f"'\\{name}{number}'",
                    "write the code of a character: there is none of this one",
                )
            self._at = start + len(number)
            return code
        if name == "N":
            return self._named()
        if name in string.octdigits:
            digits = re.match("[0-7]{1,3}", self._pattern[self._at + 1 :])
            assert digits is not None  # the first is one
            code = int(digits[0], 8)
            if code > 0o377:
                raise self._refuse(f"'\\{digits[0]}'", "write an octal escape up to \\377")
            self._at += 1 + len(digits[0])
            return code
        if name in string.ascii_letters or name in string.digits:
            raise self._refuse(f"'\\{name}'", "leave out the backslash: there is no such escape")
        self._at = start
        return self._checked(name)

    def _named(self) -> int:
        end = self._pattern.find("}", self._at)
        name = self._pattern[self._at + 3 : end] if end > 0 else ""
        try:
            character = unicodedata.lookup(name)
        except KeyError:
            character = ""
        if self._pattern[self._at + 2 : self._at + 3] != "{" or len(character) != 1:
            raise self._refuse("'\\N'", "put the name of a character in { } behind it")
        self._at = end + 1
        return ord(character)

    def _class(self) -> str:
        start = self._at
        self._at += 1
        negated = self._pattern.startswith("^", self._at)
        self._at += negated
        first, inside = self._at, dict[str, None]()  # in order, each once
        while self._at == first or not self._pattern.startswith("]", self._at):
            if self._at >= len(self._pattern):
                self._at = start
                raise self._refuse("a class without an end", "close it by ]")
            low = self._member()
            if not self._is_range():
                inside[low if isinstance(low, str) else _literal(low)] = None
                continue
            self._at += 1
            high = self._member()
            if isinstance(low, str) or isinstance(high, str) or low > high:
                raise self._refuse("a range", "write the earlier character first")
            inside[f"{_literal(low)}-{_literal(high)}"] = None
        self._at += 1
        members = (_ranges_without_words() if m == _NOT_WORD else m for m in inside)
        return f"[{'^' if negated else ''}{''.join(members)}]"

    def _is_range(self) -> bool:
        following = self._pattern[self._at : self._at + 2]
        return len(following) == 2 and following[0] == "-" and following[1] != "]"

    def _member(self) -> str | int:
        character = self._pattern[self._at]
        if character != "\\":
            self._at += 1
            return self._checked(character)
        name = self._pattern[self._at + 1 : self._at + 2]
        if name == "b":
            self._at += 2
            return 8
        if name == "W":
            self._at += 2
            self.work += _WORK_OF_RANGES
            return _NOT_WORD
        if name in _KINDS:
            self._at += 2
            self.work += _WORK_OF_WORDS if name == "w" else _WORK_OF_A_KIND
            return _KINDS[name]
        return self._code()


def _literal(code: int) -> str:
    """A character that stands for itself, in a class and outside."""
    character = chr(code)
    return character if character.isascii() and character.isalnum() else f"\\x{{{code:x}}}"


def _ranges(ranges: tuple[tuple[int, int], ...]) -> str:
    return "".join(f"\\x{{{first:x}}}-\\x{{{last:x}}}" for first, last in ranges)


def _others(ranges: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """All characters that none of the ranges has, which are sorted and apart."""
    starts = [0, *(last + 1 for _, last in ranges)]
    ends = [*(first - 1 for first, _ in ranges), _LAST]
    return tuple(zip(starts, ends, strict=True))


_KINDS = {
    "d": r"\p{Nd}",
    "D": r"\P{Nd}",
    "w": _WORD,
    "s": _ranges(_SPACES),
    "S": _ranges(_others(_SPACES)),
}
"""Python's classes without `\\W`, which has no short form inside of brackets."""


@lru_cache(maxsize=1)
def _ranges_without_words() -> str:
    r"""The ranges of `\W` inside of brackets: RE2 has no class within a class."""
    words: list[tuple[int, int]] = []
    for code in range(_LAST + 1):
        character = chr(code)
        if character.isalnum() or character == "_":
            if words and words[-1][1] == code - 1:
                words[-1] = (words[-1][0], code)
            else:
                words.append((code, code))
    return _ranges(_others(tuple(words)))
