import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from strategies import resources
from support.runner.quick import examples

from snaploom.models.kinds import KINDS
from snaploom.models.schemas import check_schemas, editor_schema, write_schemas

VALIDATOR = Draft202012Validator(editor_schema())
few = settings(
    max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
APPLICATOR = {
    "apiVersion": "snaploom.io/v1alpha1",
    "kind": "MetadataApplicator",
    "metadata": {"name": "a"},
    "spec": {"fieldSelectors": [{"coordinateIncludeRegex": "a"}], "metadata": {"k": "v"}},
}
SOURCE = APPLICATOR | {
    "kind": "DataSource",
    "spec": {"simpleVirtual": {"dataSource": "a", "alias": "a", "dataQuery": "SELECT 1"}},
}


def test_schema_is_a_schema():
    Draft202012Validator.check_schema(editor_schema())


@pytest.mark.slow
@few
@given(st.data(), st.sampled_from(KINDS))
def test_what_the_parser_accepts_is_not_marked(data, kind):
    raw = data.draw(resources(kind.model)) | {"apiVersion": "snaploom.io/v1alpha1"}
    VALIDATOR.validate(raw)
    VALIDATOR.validate(kind.model.parse(raw).dump())


@pytest.mark.parametrize(
    "wrong",
    [
        APPLICATOR | {"kind": "MetadataAplicator"},
        APPLICATOR | {"apiVersion": "v1"},
        {key: value for key, value in APPLICATOR.items() if key != "metadata"},
        APPLICATOR | {"spec": APPLICATOR["spec"] | {"behavior": "MERGE"}},
        APPLICATOR | {"spec": APPLICATOR["spec"] | {"behaviour": "merge"}},
        APPLICATOR | {"spec": APPLICATOR["spec"] | {"metadata": None}},
        SOURCE | {"spec": SOURCE["spec"] | {"jdbc": {}}},
        SOURCE | {"spec": {}},
    ],
)
def test_what_is_wrong_is_marked(wrong):
    assert VALIDATOR.is_valid(APPLICATOR)
    assert VALIDATOR.is_valid(SOURCE)
    assert not VALIDATOR.is_valid(wrong)


def test_written_schema_is_checked_for_drift(tmp_path):
    assert check_schemas(tmp_path) == ["snaploom.schema.json is missing"]
    write_schemas(tmp_path)
    assert check_schemas(tmp_path) == []
    (tmp_path / "snaploom.schema.json").write_text("{}")
    assert check_schemas(tmp_path) == ["snaploom.schema.json differs from the models"]
