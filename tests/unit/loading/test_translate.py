"""Pydantic's faults in the words of declarations, without jargon and without secrets."""

import re
import typing
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError
from pydantic_core import InitErrorDetails, core_schema
from support.declared.declarations import Raw, document, files, output, relationship, spoilt

import snaploom.models.base
from snaploom.loading.load import load
from snaploom.loading.pydanticerrors import PATTERNS, findings_of
from snaploom.models.allowances import ProjectFile
from snaploom.models.base import CONTRADICTION
from snaploom.models.datasource import DataSource
from snaploom.models.findings import Finding
from snaploom.models.kinds import KINDS


def load_raw(folder: Path, raw: Raw) -> tuple[Finding, ...]:
    (folder / "a.yaml").write_text(yaml.safe_dump(raw, sort_keys=False))
    return load([folder]).findings


JDBC = document(
    "DataSource",
    "db",
    {
        "jdbc": {
            "driver": "POSTGRESQL",
            "host": "db",
            "database": "shop",
            "credentials": {"fromEnvironment": {"userVariable": "U", "passwordVariable": "P"}},
            "tableReference": "t",
            "snapshot": {"fromReadTime": {}},
        }
    },
)
KEY = [{"fields": [{"fieldName": "a", "dataType": {"string": {}}}]}]


@pytest.mark.parametrize(
    ("raw", "code", "path", "words"),
    [
        pytest.param(
            spoilt(files("a"), "spec.hdfsLike.format", 5), "SL112", "spec.hdfsLike.format",
            ["expected text", "found 5", 'put it in quotes: "5"'], id="number-for-text",
        ),
        pytest.param(
            spoilt(output(), "spec.dataModel.maxDepth", "3"), "SL112", "spec.dataModel.maxDepth",
            ["a whole number", "'3'"], id="text-for-number",
        ),
        pytest.param(
            spoilt(output(), "spec.dataModel.maxDepth", 33), "SL113", "spec.dataModel.maxDepth",
            ["at most 32"], id="too-large",
        ),
        pytest.param(
            spoilt(output(), "spec.run", []), "SL112", "spec.run",
            ["a mapping", "an empty list"], id="list-for-mapping",
        ),
        pytest.param(
            spoilt(output(), "spec.dataModel.otherDataSources", {"a": 1}), "SL112",
            "spec.dataModel.otherDataSources", ["a list", "a mapping"], id="mapping-for-list",
        ),
        pytest.param(
            spoilt(output(), "spec.dataModel.otherDataSources.0.fieldName", "a b"), "SL113",
            "spec.dataModel.otherDataSources[0].fieldName", ["letters, digits"], id="pattern",
        ),
        pytest.param(
            spoilt(output(), "spec.dataModel.otherDataSources.0.pathMissingMode", "CONTINUE_WRN"),
            "SL113", "spec.dataModel.otherDataSources[0].pathMissingMode",
            ["ERROR, CONTINUE_IGNORE, CONTINUE_WARN", "did you mean `CONTINUE_WARN`?"], id="enum",
        ),
        pytest.param(
            spoilt(files("a"), "spec.hdfsLike.sourceUriGlobs", []), "SL113",
            "spec.hdfsLike.sourceUriGlobs", ["at least 1 member"], id="empty-list",
        ),
        pytest.param(
            spoilt(files("a"), "spec.hdfsLike.metadataApplicators", ["x", "z", "x"]), "SL115",
            "spec.hdfsLike.metadataApplicators[2]", ["members 0 and 2"], id="duplicate",
        ),
        pytest.param(
            spoilt(files("a"), "spec.jdbc", JDBC["spec"]["jdbc"]), "SL114", "spec",
            ["hdfsLike and jdbc"], id="two-variants",
        ),
        pytest.param(
            spoilt(JDBC, "spec.jdbc.url", "jdbc:x"), "SL116", "spec.jdbc",
            ["either url or host"], id="contradiction",
        ),
        pytest.param(
            spoilt(output(), "spec.outputFolder.folderUri", "/out"), "SL116", "spec.outputFolder",
            ["must end with '/'"], id="folder-without-slash",
        ),
        pytest.param(
            spoilt(output(), "spec.outputFolder.dataFormat", "AVRO")
            | {"x": 1}, "SL110", "x", ["no field `x`"], id="unknown-at-top",
        ),
        pytest.param(
            spoilt(files("a"), "spec.hdfsLike.schemaFields", [{"name": "x", "dataType": "str"}]),
            "SL113", "spec.hdfsLike.schemaFields[0].dataType", ["it is called `string`"],
            id="type-as-text",
        ),
        pytest.param(
            spoilt(output(), "spec.dataModel.otherDataSources.0.dataSource",
                   {"kind": "DataSource", "name": "address"}),
            "SL112", "spec.dataModel.otherDataSources[0].dataSource", ["write only `address`"],
            id="reference-as-mapping",
        ),
        pytest.param(
            spoilt(files("a"), "metadata.labels", {"a.b/c": 5}), "SL112",
            'metadata.labels["a.b/c"]', ["expected text"], id="label",
        ),
        pytest.param(
            spoilt(files("a"), "metadata.labels", {"k" * 600: "v"}), "SL113",
            f"metadata.labels.{'k' * 600}", ["at most 512 characters"], id="long-key",
        ),
        pytest.param(
            spoilt(files("a"), "metadata.name", "x" * 300), "SL113", "metadata.name",
            ["at most 253 characters"], id="long-name",
        ),
        pytest.param(
            spoilt(files("a"), "metadata.name", None), "SL112", "metadata.name",
            ["nothing (null)", "give `name` a value"], id="null",
        ),
    ],
)  # fmt: skip
def test_each_fault_is_reported_in_words_of_the_declaration(tmp_path, raw, code, path, words):
    (finding,) = load_raw(tmp_path, raw)
    text = f"{finding.message} expected {finding.expected} found {finding.found} {finding.hint}"
    assert (finding.code, finding.path) == (code, path)
    assert finding.line > 0
    assert [each for each in words if each not in text] == []
    assert "pydantic" not in text
    assert "Input" not in text


@pytest.mark.parametrize(
    ("raw", "path", "hint"),
    [
        (spoilt(files("a"), "spec.hdfsLike.sourceUris", []), "spec.hdfsLike.sourceUris",
         "it is called `sourceUriGlobs`"),
        (spoilt(files("a"), "spec.hdfsLike.sourceUriGlob", []), "spec.hdfsLike.sourceUriGlob",
         "did you mean `sourceUriGlobs`?"),
        (spoilt(files("a"), "spec.hdfsLike.snapshotConfig", {}), "spec.hdfsLike.snapshotConfig",
         "it is called `snapshot`"),
        (spoilt(output(), "spec.output", {}), "spec.output", "it is called `outputFolder`"),
        (spoilt(output(), "spec.outputFolder.format", "X"), "spec.outputFolder.format",
         "it is called `dataFormat`"),
        (spoilt(output(), "spec.outputFolder.catchupOrder", "X"), "spec.outputFolder.catchupOrder",
         "it is called `snapshotCatchupMode`"),
        (spoilt(output(), "spec.dataModel.otherDataSources.0.snapshot", {"missingMode": "X"}),
         "spec.dataModel.otherDataSources[0].snapshot.missingMode",
         "it is called `snapshotMissingMode`"),
        (spoilt(output(), "spec.dataModel.otherDataSources.0.transformation", {}),
         "spec.dataModel.otherDataSources[0].transformation", "it is called `transformations`"),
        (spoilt(relationship("r", (["a"], KEY)), "spec.equivalentFields", []),
         "spec.equivalentFields", "it is called `representations`"),
        (spoilt(relationship("r", (["a"], KEY)), "spec.representations.0.fields", []),
         "spec.representations[0].fields", "it is called `joinKey`"),
        (spoilt(relationship("r", (["a"], KEY)), "spec.representations.0.joinKey.0.castType", {}),
         "spec.representations[0].joinKey[0].castType", "it is called `castDataType`"),
        (spoilt(JDBC, "spec.jdbc.connection", "secret"), "spec.jdbc.connection",
         "it is called `url`"),
        (spoilt(output(), "spec.zzzzzz", 1), "spec.zzzzzz", "remove it"),
    ],
)  # fmt: skip
def test_unknown_fields_are_answered_with_the_name_of_today(tmp_path, raw, path, hint):
    (finding,) = load_raw(tmp_path, raw)
    assert (finding.code, finding.path) == ("SL110", path)
    assert hint in finding.hint


SECRET = 47114711
OWN_RULE = re.compile(r'PydanticCustomError\(\s*"([a-z_]+)"')


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.jdbc.credentials", {"fromPlaintext": {"user": "u", "password": SECRET}}),
        ("spec.jdbc.credentials", {"fromPlaintext": {"user": "u", "passwort": SECRET}}),
        ("spec.jdbc.credentials", {"fromPlainText": {"user": "u", "password": SECRET}}),
        ("spec.jdbc.credentials", f"u:{SECRET}"),
        ("spec.jdbc.options", {"password": SECRET}),
        ("spec.jdbc.options", {"sslkeypassword": SECRET}),
        ("spec.jdbc.url", SECRET),
        ("spec.jdbc.connection", SECRET),
        ("spec.password", SECRET),
    ],
)
def test_secrets_are_never_shown(tmp_path: Path, path: str, value: Any) -> None:
    findings = load_raw(tmp_path, spoilt(JDBC, path, value))
    assert findings
    assert str(SECRET) not in str([finding.dump() for finding in findings])


def test_syntax_errors_do_not_show_values(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(f"spec:\n  password: 'a{SECRET}\n  b: @{SECRET}\n")
    findings = load([tmp_path]).findings
    assert findings
    assert str(SECRET) not in str([finding.dump() for finding in findings])


CONTEXT: dict[str, Any] = {
    "gt": 1, "ge": 1, "lt": 1, "le": 1, "multiple_of": 2, "min_length": 1, "max_length": 1,
    "actual_length": 2, "field_type": "List", "pattern": "x", "expected": "'a' or 'b'",
    "class_name": "X", "error": "why", "attribute": "x", "method_name": "x",
    "discriminator": "x", "tag": "x", "expected_tags": "x", "encoding": "x",
    "encoding_error": "x", "tz_expected": 1, "tz_actual": 1, "class": "X",
    "expected_schemes": "x", "expected_version": 1, "max_digits": 1, "decimal_places": 1,
    "whole_digits": 1,
}  # fmt: skip


@pytest.mark.parametrize("kind", typing.get_args(core_schema.ErrorType))
def test_every_error_type_gives_a_readable_finding(kind: str) -> None:
    loc = ("spec", "hdfsLike", "format")
    detail = InitErrorDetails(type=kind, loc=loc, input=7, ctx=CONTEXT)
    error = ValidationError.from_exception_data("DataSource", [detail])
    (finding,) = findings_of(error, DataSource, None, "DataSource/a")
    assert finding.path == "spec.hdfsLike.format"
    text = str(finding.dump())
    assert finding.message
    assert not any(word in text for word in ("pydantic", "Input", "http", "Tuple", "instance"))


def test_every_pattern_of_the_models_has_words() -> None:
    models = [ProjectFile, *(kind.model for kind in KINDS)]
    schemas = str([model.model_json_schema() for model in models])
    used = {p for p in PATTERNS if repr(p)[1:-1] in schemas or p in schemas}
    assert used == set(PATTERNS)


def test_the_models_have_no_error_types_without_words() -> None:
    folder = Path(snaploom.models.base.__file__).parent
    texts = [path.read_text() for path in folder.glob("*.py")]
    raised = {kind for text in texts for kind in OWN_RULE.findall(text)}
    assert raised <= {"one_of", "duplicate_member", CONTRADICTION}
