"""Changes that break users of a release are refused; those that add are not."""

import copy
import json
from pathlib import Path

import pytest
from support.compatibility.interfaces import changes, interfaces
from support.compatibility.releases import KeptRelease, breaking, kept_releases
from support.compatibility.schemachanges import Use, schema_changes

from snaploom.models.report import Report
from snaploom.run.declarations import read_bundle_file

TODAY = interfaces()
SPEC = "kinds/datasources.json", "versions", "v1alpha1", "spec"
STATUS = "kinds/outputdatasets.json", "versions", "v1alpha1", "status"
FILES = (*SPEC, "properties", "hdfsLike")
FORMAT = (*FILES, "properties", "format")


def planted(*change):
    """Today's interfaces with a value set at a path, or taken away where it is `...`."""
    *path, last, value = change
    found = copy.deepcopy(TODAY)
    place = found
    for step in path:
        place = place[step]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return found


def named(options, name):
    return next(i for i, each in enumerate(options) if name in each["names"])


LIMIT = named(TODAY["commands.json"]["run"]["options"], "--limit")
BREAKING = {
    "a kind is removed": (("kinds/datasources.json", ...), "kinds/datasources.json: removed"),
    "a short name is removed": (
        ("kinds/datasources.json", "names", "shortNames", []),
        "datasources: shortNames dsrc removed",
    ),
    "a version is not served": (
        ("kinds/datasources.json", "versions", "v1alpha1", "served", False),
        "datasources: version v1alpha1 is not served any more",
    ),
    "a field is removed": (
        (*SPEC, "properties", "jdbc", ...),
        "datasources.spec.jdbc: removed",
    ),
    "a field is required": (
        (
            *FILES,
            "required",
            [
                *TODAY[SPEC[0]]["versions"]["v1alpha1"]["spec"]["properties"]["hdfsLike"].get(
                    "required", []
                ),
                "formatOptions",
            ],
        ),
        "datasources.spec.hdfsLike.formatOptions: required now",
    ),
    "a type is narrowed": (
        (*FORMAT, "type", "integer"),
        "datasources.spec.hdfsLike.format: type narrowed from string to integer",
    ),
    "a length is narrowed": (
        (*FORMAT, "maxLength", 1),
        "datasources.spec.hdfsLike.format: maxLength narrowed from",
    ),
    "a rule is added": (
        (*FORMAT, "x-kubernetes-validations", [{"rule": "self != 'csv'"}]),
        "datasources.spec.hdfsLike.format: rule added: self != 'csv'",
    ),
    "a status field is removed": (
        (*STATUS, "properties", "conditions", ...),
        "outputdatasets.status.conditions: removed",
    ),
    "a key of the plan is removed": (("names.json", "plan", []), "plan: hash removed"),
    "a field of the Report is removed": (
        ("report.json", "properties", "toolVersion", ...),
        "report.toolVersion: removed",
    ),
    "a value of the chart is removed": (
        ("chart-values.json", "properties", "admission", ...),
        "chart-values.admission: removed",
    ),
    "a command is removed": (("commands.json", "plan", ...), "plan: removed"),
    "an option is removed": (
        ("commands.json", "run", "options", LIMIT, ...),
        "run: --limit removed",
    ),
    "an option is required": (
        ("commands.json", "run", "options", LIMIT, "is_required", True),
        "run: --limit is required now",
    ),
    "an option has another type": (
        ("commands.json", "run", "options", LIMIT, "kind", "duration"),
        "run: --limit: type changed from number to duration",
    ),
    "an exit code is removed": (
        ("commands.json", "validate", "exit_codes", "0, 2"),
        "validate: exit code 3 removed",
    ),
    "a function is removed": (("library.json", "load", ...), "load: removed"),
}


@pytest.mark.parametrize(("change", "expected"), BREAKING.values(), ids=BREAKING)
def test_planted_change_that_breaks_is_found(change, expected):
    found = list(changes(TODAY, planted(*change)))
    assert any(each.startswith(expected) for each in found), found


ADDED = {
    "a field": (*SPEC, "properties", "newest", {"type": "string"}),
    "a longer text": (*FORMAT, "maxLength", 10_000),
    "a status field": (*STATUS, "properties", "newest", {"type": "string"}),
    "a field of the Report": ("report.json", "properties", "newest", {"type": "string"}),
    "a command": ("commands.json", "newest", {"options": []}),
    "a kind": ("kinds/newest.json", {}),
    "a function": ("library.json", "newest", {}),
    "a value that was not declared": (*FORMAT, "default", "parquet"),
}


@pytest.mark.parametrize("change", ADDED.values(), ids=ADDED)
def test_what_is_added_breaks_nothing(change):
    assert list(changes(TODAY, planted(*change))) == []


NUMBER = {"type": "number"}
SCHEMAS = [
    pytest.param({"type": "integer"}, NUMBER, Use.WRITTEN, 0, id="wider for writers"),
    pytest.param({"type": "integer"}, NUMBER, Use.READ, 1, id="wider for readers"),
    pytest.param(NUMBER, {"type": "integer"}, Use.READ, 0, id="narrower for readers"),
    pytest.param(NUMBER, {"type": "integer"}, Use.WRITTEN, 1, id="narrower for writers"),
    pytest.param(NUMBER, {}, Use.WRITTEN, 0, id="anything for writers"),
    pytest.param(NUMBER, {}, Use.READ, 1, id="anything for readers"),
    pytest.param({"enum": [1, 2]}, {"enum": [2, 3]}, Use.WRITTEN, 1, id="a value is gone"),
    pytest.param({"enum": [1]}, {"enum": [1, 2]}, Use.STORED, 0, id="a value more"),
    pytest.param({}, {"enum": [1]}, Use.WRITTEN, 1, id="only some values"),
    pytest.param({}, {"pattern": "a"}, Use.WRITTEN, 1, id="a pattern"),
    pytest.param({"pattern": "a"}, {}, Use.WRITTEN, 0, id="no pattern any more"),
    pytest.param({}, {"minItems": 1}, Use.WRITTEN, 1, id="a least number"),
    pytest.param({"maximum": 3}, {"maximum": 2}, Use.WRITTEN, 1, id="a lower bound"),
    pytest.param({"minimum": 3}, {"minimum": 2}, Use.WRITTEN, 0, id="a bound that lets more in"),
    pytest.param({"default": 1}, {"default": 2}, Use.WRITTEN, 1, id="another default"),
    pytest.param({"anyOf": [NUMBER, {"type": "null"}]}, {"anyOf": [NUMBER]}, Use.WRITTEN, 1,
                 id="an alternative is gone"),
    pytest.param({"anyOf": [NUMBER]}, {"anyOf": [NUMBER, {"type": "null"}]}, Use.READ, 1,
                 id="an alternative more for readers"),
    pytest.param({"anyOf": [NUMBER]}, {"anyOf": [NUMBER, {"type": "null"}]}, Use.WRITTEN, 0,
                 id="an alternative more for writers"),
    pytest.param({"items": {"maxLength": 3}}, {"items": {"maxLength": 2}}, Use.WRITTEN, 1,
                 id="inside a list"),
    pytest.param({}, {"additionalProperties": False}, Use.WRITTEN, 1, id="unknown fields refused"),
    pytest.param({"required": ["a"], "properties": {"a": {}}}, {"properties": {"a": {}}}, Use.READ,
                 1, id="absent for readers"),
    pytest.param({"properties": {"a": {}}},
                 {"required": ["a"], "properties": {"a": {"default": 1}}},
                 Use.WRITTEN, 0, id="required with a default"),
    pytest.param({"x-kubernetes-list-type": "map"}, {"x-kubernetes-list-type": "atomic"},
                 Use.WRITTEN, 1, id="lists merge otherwise"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "use", "count"), SCHEMAS)
def test_changes_of_a_schema_by_how_it_is_used(before, after, use, count):
    assert len(list(schema_changes(before, after, use, "x"))) == count


def test_changes_behind_a_reference_are_found_and_recursion_ends():
    def tree(bound):
        node = {"maxProperties": bound, "properties": {"child": {"$ref": "#/$defs/Node"}}}
        return {"$ref": "#/$defs/Node", "$defs": {"Node": node}}

    assert list(schema_changes(tree(2), tree(2), Use.WRITTEN)) == []
    assert list(schema_changes(tree(2), tree(1), Use.WRITTEN, "x")) == [
        "x: maxProperties narrowed from 2 to 1"
    ]


def test_what_is_accepted_is_named_once_and_only_where_it_happened(tmp_path: Path):
    release = KeptRelease(tmp_path / "0.1.0")
    release.freeze(TODAY)
    after = planted("library.json", "load", ...)
    assert list(breaking(release, after)) == ["load: removed"]
    (release.folder / "accepted.yaml").write_text(json.dumps({"load: removed": "a reason"}))
    assert list(breaking(release, after)) == []
    (stale,) = breaking(release, TODAY)
    assert stale.startswith("load: removed: accepted in accepted.yaml, but nothing")


def test_releases_are_in_order_of_their_numbers(tmp_path: Path):
    for version in ("0.10.0", "0.9.0", "0.1.0"):
        KeptRelease(tmp_path / version).freeze({"names.json": {}})
    assert [each.version for each in kept_releases(tmp_path)] == ["0.1.0", "0.9.0", "0.10.0"]


def test_what_is_kept_reads_back_as_it_was_described(tmp_path: Path):
    release = KeptRelease(tmp_path / "0.1.0")
    release.freeze(TODAY)
    assert release.drift(TODAY) == []
    assert release.drift(planted("library.json", "load", ...)) == ["library.json"]


@pytest.mark.parametrize("release", kept_releases(), ids=lambda release: release.version)
def test_bundle_and_report_of_a_release_are_read(release: KeptRelease):
    bundle = read_bundle_file(release.document("bundle.json")).parse("")
    assert bundle.runnable.name == "flights-wide"
    report = Report.parse(json.loads(release.document("report.json").read_text("utf-8")))
    assert report.published
