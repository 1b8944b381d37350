"""YAML with positions: values, merges, duplicates, and the bounds."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from snaploom.loading.composer import MAX_DEPTH, compose, join_path, plain, position_of, split_path


def value_of(text: str) -> JsonValue:
    composed = compose(text)
    assert composed.fault is None
    (document,) = composed.documents
    assert document.faults == ()
    return plain(document.node)


def test_anchors_and_merge_keys_are_resolved_and_own_keys_win() -> None:
    text = "base: &b {x: 1, y_: 2}\nmore: &m {y_: 3, z: 4}\nme: {<<: [*b, *m], x: 9}\n"
    assert value_of(text)["me"] == {"x": 9, "y_": 2, "z": 4}  # type: ignore[call-overload,index]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("a: 'yes'", {"a": "yes"}, id="quoted"),
        pytest.param("a: !!str 5", {"a": "5"}, id="str-tag"),
        pytest.param("a: 2020-01-31", {"a": "2020-01-31"}, id="date"),
        pytest.param("a: |\n  x\n  y\n", {"a": "x\ny\n"}, id="block"),
        pytest.param("{'a': [1, 2.5, null]}", {"a": [1, 2.5, None]}, id="flow"),
        pytest.param('{\n\t"a": "\\/"\n}', {"a": "/"}, id="json-with-tabs"),
        pytest.param("ключ: значение", {"ключ": "значение"}, id="unicode"),
        pytest.param("7: x", {"7": "x"}, id="number-as-key"),
    ],
)
def test_values_are_plain_data(text: str, value: JsonValue) -> None:
    assert value_of(text) == value


@pytest.mark.parametrize(
    ("path", "line", "column"),
    [
        ("spec", 2, 1),
        ("spec.list", 3, 3),
        ("spec.list[1]", 5, 7),
        ("spec.list[1].name", 5, 13),
        ('spec.list[1]["a.b"]', 6, 12),
        ("spec.empty", 7, 3),
        ("spec.absent.deeper", 2, 1),
    ],
)
def test_every_place_is_known(path: str, line: int, column: int) -> None:
    text = "# comment\nspec:\n  list:\n    - 1\n    - name: x\n      a.b: y\n  empty:\n"
    document = compose(text).documents[0]
    assert position_of(document.node, document.at, split_path(path)) == (line, column)


def test_an_alias_stands_where_it_is_used() -> None:
    document = compose("a: &a 5\nb:\n  c: *a\n").documents[0]
    assert position_of(document.node, document.at, ("b", "c")) == (3, 6)


@pytest.mark.parametrize(
    ("text", "code", "line", "message"),
    [
        pytest.param("a: 1\n\tb: 2\n", "SL104", 2, "not YAML", id="tab"),
        pytest.param("a: [1, 2\nb: 3\n", "SL104", 2, "not YAML", id="open-list"),
        pytest.param("a: 'x\n", "SL104", 2, "not YAML", id="open-quote"),
        pytest.param("a: \x00", "SL104", 1, "character", id="nul"),
        pytest.param("a: *b\n", "SL104", 1, "no anchor", id="unknown-alias"),
        pytest.param("a: &a [*a]\n", "SL104", 1, "contains itself", id="recursive-alias"),
        pytest.param("? [1]\n: 2\n", "SL104", 1, "a key must be text", id="list-as-key"),
        pytest.param("a: !!python/object:x {}\n", "SL104", 1, "tag", id="tag"),
        pytest.param("a: !env X\n", "SL104", 1, "tag", id="scalar-tag"),
        pytest.param("<<: 5\n", "SL104", 1, "merge key", id="merge-of-scalar"),
        pytest.param("a: " + "[" * 100 + "]" * 100, "SL102", 1, "nested too deeply", id="deep"),
        pytest.param("[" * 200_000, "SL102", 1, "nested too deeply", id="very-deep"),
    ],
)
def test_what_is_no_yaml_is_reported_once(text: str, code: str, line: int, message: str) -> None:
    composed = compose(text)
    assert composed.fault is not None
    assert (composed.fault.code, composed.fault.at.line) == (code, line)
    assert message in composed.fault.message


def test_documents_before_a_fault_are_kept() -> None:
    composed = compose("a: 1\n---\nb: 2\n---\nc: [\n")
    assert [plain(d.node) for d in composed.documents] == [{"a": 1}, {"b": 2}]
    assert composed.fault is not None


def test_duplicate_keys_are_reported_with_both_lines_and_hide_nothing() -> None:
    composed = compose("a:\n  b: 1\n  c: 2\n  b: 3\n  b: 4\n")
    (document,) = composed.documents
    assert [(f.code, f.path, f.at.line) for f in document.faults] == [
        ("SL105", "a.b", 4),
        ("SL105", "a.b", 5),
    ]
    assert "line 2" in document.faults[0].found


@pytest.mark.parametrize("word", ["on", "y", "null", "~"])
def test_keys_that_yaml_reads_as_another_type_must_be_quoted(word: str) -> None:
    (fault,) = compose(f"a: {{{word}: 1}}").documents[0].faults
    assert (fault.code, fault.path) == ("SL112", f"a.{word}")
    assert f'"{word}"' in fault.hint


def test_a_billion_laughs_is_refused_at_once() -> None:
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    composed = compose("\n".join(lines))
    assert composed.fault is not None
    assert composed.fault.code == "SL102"
    assert "aliases of this file expand" in composed.fault.message


def test_merges_cannot_expand_without_bound_either() -> None:
    lines = ["a0: &a0 {" + ", ".join(f"k{i}: 1" for i in range(100)) + "}"]
    lines += [f"b{i}: {{<<: *a0, x{i}: 1}}" for i in range(2000)]
    composed = compose("\n".join(lines))
    assert composed.fault is not None
    assert composed.fault.code == "SL102"


def test_the_deepest_that_is_allowed_is_read() -> None:
    assert compose("[" * MAX_DEPTH + "]" * MAX_DEPTH).fault is None


letters = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]), max_size=20)
json_values: st.SearchStrategy[JsonValue] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | letters
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(letters, inner, max_size=4),
    max_leaves=20,
)


@given(json_values)
@settings(deadline=None)
def test_json_is_read_as_json(value: JsonValue) -> None:
    assert value_of(json.dumps({"v": value})) == {"v": value}


segments = st.lists(st.text(min_size=1, max_size=6) | st.integers(0, 99), max_size=5)


@given(segments)
@settings(deadline=None)
def test_a_path_is_split_as_it_was_joined(path: list[str | int]) -> None:
    assert split_path(join_path(path)) == tuple(path)
