"""Our own regular expressions, over texts of tenants, folders and servers, are linear too."""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from re import _constants as ops
from re import _parser
from types import ModuleType
from typing import Any

import pytest
from support.runner.proofscope import within_work

import snaploom
import snaploom_operator


def modules() -> Iterator[ModuleType]:
    """All modules of the library and of the operator that can be imported here."""
    for package in (snaploom, snaploom_operator):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            # Packages of orchestrators have an environment of their own (.ci/orchestrators).
            if not found.name.startswith("snaploom.plugins.orchestrators."):
                yield importlib.import_module(found.name)


def patterns_in_use() -> dict[re.Pattern[str], set[str]]:
    """Patterns in modules, in their tables, and in objects of tables; with the methods called.

    A pattern in an object of a table is called by its field's name. One whose name calls no method
    counts as searched for.
    """
    uses: dict[str, set[str]] = {}
    loaded = tuple(modules())
    for module in loaded:
        for name, method in _USE.findall(inspect.getsource(module)):
            uses.setdefault(name, set()).add(method)
    found: dict[re.Pattern[str], set[str]] = {}
    for module in loaded:
        for name, value in vars(module).items():
            for pattern, named in _patterns(value, 4, name):
                found.setdefault(pattern, set()).update(uses.get(named, {"search"}))
    return found


_USE = re.compile(
    r"\b([A-Za-z_]+)(?:\[[a-z.]+\])?\.(search|match|fullmatch|sub|split|findall|finditer)\b"
)


def _patterns(value: object, depth: int, name: str) -> Iterator[tuple[re.Pattern[str], str]]:
    """Patterns in a value, each with the name of the variable or field that holds it."""
    if isinstance(value, re.Pattern):
        if isinstance(value.pattern, str):
            yield value, name
    elif depth and isinstance(value, dict):
        for member in value.values():
            yield from _patterns(member, depth - 1, "")
    elif depth and isinstance(value, list | tuple | set | frozenset):
        for member in value:
            yield from _patterns(member, depth - 1, "")
    elif depth and type(value).__module__.startswith("snaploom") and not isinstance(value, type):
        for field in getattr(type(value), "__slots__", ()) or getattr(value, "__dict__", {}):
            yield from _patterns(getattr(value, field, None), depth - 1, field)


def adversarial_texts(pattern: str, flags: int, length: int) -> Iterator[str]:
    """Texts that begin as the pattern wants, go on with what a repetition takes, and end wrong."""
    tree = _parser.parse(pattern, flags)
    for prefix, pump in {*_pumps(list(tree), "")}:
        many = pump * (length // len(pump))
        yield from (prefix + many, prefix + many + "\x00", prefix + many + "\n", many + "\x00")
        yield (prefix + pump) * (length // len(prefix + pump)) + "\x00"
    for character in "a0/ -_.:{[(\"'`\\\n%=?$@é":
        yield character * length + "\x00"


def _pumps(items: list[Any], prefix: str) -> Iterator[tuple[str, str]]:
    """What comes before each repetition, and what it takes once."""
    for op, value in items:
        if op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
            _, most, inner = value
            sample = _sample(list(inner))
            if most is ops.MAXREPEAT and sample:
                yield prefix, sample
            yield from _pumps(list(inner), prefix)
        elif op is ops.SUBPATTERN:
            yield from _pumps(list(value[3]), prefix)
        elif op is ops.BRANCH:
            for branch in value[1]:
                yield from _pumps(list(branch), prefix)
        prefix += _sample([(op, value)])


def _sample(items: list[Any]) -> str:
    """Some text that items match, or nearly so."""
    text = ""
    for op, value in items:
        if op is ops.LITERAL:
            text += chr(value)
        elif op is ops.NOT_LITERAL:
            text += "a" if value != ord("a") else "b"
        elif op is ops.ANY:
            text += "a"
        elif op is ops.IN:
            text += _member(value)
        elif op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
            text += _sample(list(value[2])) * max(1, min(value[0], 64))
        elif op is ops.SUBPATTERN:
            text += _sample(list(value[3]))
        elif op is ops.BRANCH:
            text += _sample(list(value[1][0]))
        elif op is ops.ATOMIC_GROUP:
            text += _sample(list(value))
    return text


def _member(members: list[Any]) -> str:
    """A character of a class."""
    negated = members[0][0] is ops.NEGATE
    accepts = re.compile(_class_text(members))
    for character in "a0 /-_.:Z\t\n\"'`é":
        if accepts.fullmatch(character):
            return character
    for op, value in members:
        if op is ops.LITERAL and not negated:
            return chr(value)
        if op is ops.RANGE and not negated:
            return chr(value[0])
    return "~"


def _class_text(members: list[Any]) -> str:
    kinds = {
        ops.CATEGORY_DIGIT: r"\d", ops.CATEGORY_NOT_DIGIT: r"\D", ops.CATEGORY_SPACE: r"\s",
        ops.CATEGORY_NOT_SPACE: r"\S", ops.CATEGORY_WORD: r"\w", ops.CATEGORY_NOT_WORD: r"\W",
    }  # fmt: skip
    text = ""
    for op, value in members:
        if op is ops.NEGATE:
            text += "^"
        elif op is ops.LITERAL:
            text += f"\\x{value:02x}" if value < 256 else chr(value)
        elif op is ops.RANGE:
            text += "-".join(f"\\U{code:08x}" for code in value)
        elif op is ops.CATEGORY:
            text += kinds[value]
    return f"[{text}]"


LENGTH = 40_000
"""A quadratic pattern takes two seconds and more over so many characters, a linear one a tenth
of one at most."""
OURS = sorted(patterns_in_use().items(), key=lambda use: (use[0].pattern, use[0].flags))


def test_patterns_are_found():
    assert len(OURS) > 100


def use(pattern, method, text):
    if method == "sub":
        pattern.sub("", text)
    elif method == "finditer":
        list(pattern.finditer(text))
    else:
        getattr(pattern, method)(text)


@pytest.mark.parametrize(
    ("pattern", "methods"), [pytest.param(*each, id=each[0].pattern[:60]) for each in OURS]
)
def test_own_pattern_is_linear(pattern, methods):
    for text in adversarial_texts(pattern.pattern, pattern.flags, LENGTH):
        for method in methods:
            with within_work(seconds=1.0):
                use(pattern, method, text)


@pytest.mark.parametrize("pattern", ["(a+)+$", r"\s*x", "(?:a*)*b"])
def test_slow_pattern_is_found_out(pattern):
    with pytest.raises(AssertionError):
        test_own_pattern_is_linear(re.compile(pattern), {"search"})
