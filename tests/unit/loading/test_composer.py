"""YAML with positions: values, merges, duplicates, and the bounds."""

import json
import math
import random
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue
from support.declared.declarations import document, files, model, output, parsed, simple, spoilt
from support.runner.proofscope import within_work

from snaploom.loading.composer import (
    MAX_DEPTH,
    ScalarValue,
    compose,
    join_path,
    plain,
    position_of,
    resolve_plain,
    split_path,
)
from snaploom.loading.documents import read_object, read_resource
from snaploom.loading.nearmisses import Guesses, did_you_mean, nearest
from snaploom.models.findings import Finding
from snaploom.models.kinds import TextDumper
from snaploom.validate.validator import validate


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
    assert composed.fault.code == "SL102"
    assert "aliases of this file expand" in composed.fault.message


def test_merges_cannot_expand_without_bound_either() -> None:
    lines = ["a0: &a0 {" + ", ".join(f"k{i}: 1" for i in range(100)) + "}"]
    lines += [f"b{i}: {{<<: *a0, x{i}: 1}}" for i in range(2000)]
    composed = compose("\n".join(lines))
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


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True), ("On", True), ("y", True), ("NO", False), ("off", False), ("n", False),
        ("yEs", "yEs"), ("", None), ("~", None), ("Null", None), ("nil", "nil"),
        ("0", 0), ("-7", -7), ("+7", 7), ("1_000", 1000), ("0x1F", 31), ("0b101", 5),
        ("0o17", 15), ("017", 15), ("08", 8.0), ("1.5", 1.5), (".5", 0.5), ("1e3", 1000.0),
        ("1e999", "1e999"), (".inf", ".inf"), (".nan", ".nan"), ("12:30:00", "12:30:00"),
        ("2020-01-31", "2020-01-31"), ("2020-01-31T00:00:00Z", "2020-01-31T00:00:00Z"),
        ("9223372036854775808", 9223372036854775808), ("36893488147419103232", 2.0**65),
        ("-", "-"), ("1.2.3", "1.2.3"), ("4Gi", "4Gi"), ("_1", "_1"),
    ],
)  # fmt: skip
def test_a_plain_scalar_is_read_as_kubectl_reads_it(text: str, value: ScalarValue) -> None:
    result = resolve_plain(text)
    assert result == value
    assert type(result) is type(value)


@given(st.text(alphabet="0123456789_.eExXobn+-tfyYa:~", max_size=600))
@settings(deadline=None)
def test_every_text_has_a_value_that_json_can_hold(text: str) -> None:
    value = resolve_plain(text)
    assert not isinstance(value, float) or math.isfinite(value)
    assert not isinstance(value, int) or abs(value) < 2**64


@given(
    st.from_regex(r"[yYnN]|[-+]?[0-9.][0-9a-fA-FxXobeE_.+-]{0,8}|[0-9_.eE+-]{1,6}", fullmatch=True)
)
def test_a_text_that_is_written_is_read_as_text(text: str) -> None:
    written: str = yaml.dump(text, Dumper=TextDumper)
    assert yaml.safe_load(written) == text
    assert plain(compose(written).documents[0].node) == text


FAULTY = [
    pytest.param(spoilt(output(), "spec.dataModel.maxDepth", "3"), id="text for a number"),
    pytest.param(spoilt(output(), "spec.outputFolder.folderUri", True), id="boolean for text"),
    pytest.param(spoilt(output(), "spec.dataModel.maxDepht", 3), id="misspelt"),
    pytest.param(spoilt(files("a"), "kind", "JDBCDataSource"), id="former kind"),
    pytest.param(spoilt(files("a"), "apiVersion", "snaploom.io/v9"), id="version"),
    pytest.param(simple("a", "SELECT 1", snapshotQuery="SELECT 2"), id="swapped"),
    pytest.param(
        document("DataSource", "a", {"jdbc": {"driver": ["SQLITE"], "database": "x"}}),
        id="list beside a path",
    ),
    pytest.param([1, 2], id="a list"),
    pytest.param("text", id="text"),
]


@pytest.mark.parametrize("raw", FAULTY)
def test_findings_are_those_of_the_same_document_in_a_file(raw: Any) -> None:
    in_file = compose(json.dumps(raw)).documents[0].node
    assert read_object(raw) == read_resource(in_file)
    assert read_object(raw).findings


@pytest.mark.parametrize("raw", model(), ids=lambda raw: str(raw["kind"]))
def test_a_sound_object_is_read(raw: Any) -> None:
    read = read_object(raw)
    assert read.resource is not None
    assert read.findings == ()


def test_what_an_api_server_adds_is_read() -> None:
    cluster = {"uid": "u", "generation": 2, "managedFields": [{"fieldsV1": {"f:spec": {}}}]}
    raw = files("a")
    raw["metadata"] |= cluster
    assert read_object(raw).resource is not None


def only(raw: dict[str, object]) -> Finding:
    (finding,) = read_object(raw).findings
    return finding


ROOT = "dataModel.rootDataSource.snapshotFilter.fromInterval"


@pytest.mark.parametrize("length", ["5m", "5M"])
def test_a_length_that_may_mean_two_things_is_not_guessed(length: str) -> None:
    finding = only(spoilt(output(), f"spec.{ROOT}.intervalLength", length))
    assert (finding.code, finding.found) == ("SL113", f"'{length}'")
    assert finding.hint == "write `5min` for minutes, or `5mo` for months"


@pytest.mark.parametrize(
    ("raw", "hint"),
    [
        (spoilt(output(), "spec.outputFolder.snapshotFormat", "hivePartitioned"),
         "write `snapshotFormat: {hivePartitioned: {}}`"),
        (spoilt(output(), "spec.run.schedule", "daily"), "write `schedule: {cron: ...}`"),
        (spoilt(output(), f"spec.{ROOT}.timeBefore", {"day": 7}),
         "there is one at spec.dataModel.otherDataSources[].snapshot.timeBefore; "
         "move it there, or remove it"),
        (spoilt(files("a"), "spec.hdfsLike.schemaFields",
                [{"name": "n", "dataType": {"bigint": {}}}]), "it is called `long`"),
        (spoilt(files("a"), "spec.hdfsLike.schemaFields",
                [{"name": "n", "dataType": {"type": "bigint"}}]), "write only `bigint`"),
        (spoilt(files("a"), "spec.hdfsLike.schemaFields",
                [{"name": "n", "dataType": {"long": None}}]),
         "give `long` a value, `{}` for none"),
        (spoilt(output(), f"spec.{ROOT}.intervalLength", 7),
         "write the unit too, such as `intervalLength: 7d`"),
        (spoilt(output(), f"spec.{ROOT}.intervalLength", {"day": "7"}),
         "write it without quotes: `day: 7`"),
        (spoilt(output(), f"spec.{ROOT}.intervalLength", None),
         "give `intervalLength` a value"),
        (spoilt(output(), "spec.outputFolder.clusterBy", None),
         "give a value, or leave `clusterBy` out"),
        (spoilt(output(), "spec.outputFolder.table", {"catalog": "lake", "name": "orders"}),
         "write a namespace and a name, such as shop.orders"),
        (spoilt(spoilt(output(), "spec.outputFolder.dataFormat", "DELTA"),
                "spec.outputFolder.table", {"catalog": "lake", "name": "shop.orders"}),
         "set dataFormat to ICEBERG, or leave table out; PARQUET has registerTable"),
        (spoilt(files("a"), "spec.hdfsLike.sourceUriGlobs", "file:///x/*.csv"),
         'write a list: `sourceUriGlobs: ["file:///x/*.csv"]`'),
        (spoilt(files("a"), "spec.hdfsLike.sourceUriGlobs", 'a"b'),
         "write a list: `sourceUriGlobs: [...]`"),
    ],
)  # fmt: skip
def test_what_was_meant_is_named(raw: dict[str, object], hint: str) -> None:
    assert only(raw).hint == hint


def test_a_missing_field_names_what_belongs_there() -> None:
    raw = files("a")
    del raw["spec"]["hdfsLike"]["snapshot"]
    finding = only(raw)
    assert finding.expected == "a mapping with one of fromFieldValue, fromReadTime"


def test_a_near_name_is_found_among_many() -> None:
    known = [f"orders-{number}" for number in range(5_000)] + ["customer"]
    assert did_you_mean("custmer", known) == "did you mean `customer`?"
    assert nearest("zzz", known) is None


def test_names_that_take_too_much_work_are_not_guessed() -> None:
    letters, chance = list("ab" * 95), random.Random(1)
    known = ["".join(chance.sample(letters, 190)) + str(number) for number in range(2_000)]
    with within_work(seconds=1):
        assert nearest(known[0][::-1], known) is None


@pytest.mark.slow
def test_guesses_end_when_they_took_enough_work() -> None:
    guesses, known = Guesses(), ["customer", "address"]
    assert guesses.did_you_mean("custmer", known) == "did you mean `customer`?"
    with within_work(seconds=2):
        for _ in range(100_000):
            last = guesses.did_you_mean("custmer", known)
    assert last == ""


def test_many_names_that_are_not_there_are_judged_in_bounded_time() -> None:
    key = [{"fields": [{"fieldName": "a", "dataType": {"string": {}}}]}]
    sources = [f"source-number-{number:05d}" for number in range(2_000)]
    spec = {"representations": [{"dataSources": sources, "joinKey": key}]}
    (*others, output) = model()
    names = [f"sorce-nmber-{number:05d}" for number in range(2_000)]
    used = {"name": "big", "exclusions": [{"dataSourceSet": names}]}
    output["spec"]["dataModel"]["dataRelationships"].append(used)
    with within_work(seconds=5):
        found = validate(parsed([*others, output, document("DataRelationship", "big", spec)]))
    assert sum(finding.code == "SL175" for finding in found) == 2_000
