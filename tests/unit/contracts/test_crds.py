"""What users and charts may rely on in the generated CRDs."""

import enum
import importlib
import pkgutil
import re
from functools import cache
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

import snaploom.models
from snaploom.models.base import member_docs
from snaploom.models.kinds import KINDS
from snaploom.models.schemas import check_crds, crd, crd_name, write_crds

CRDS = Path(__file__).parents[3] / "crds"
SIZE_LIMIT = 200_000  # client-side apply keeps a copy in an annotation of at most 262,144 bytes
RULE_LIMIT = 10_000_000  # the API server's estimate for one rule ("estimated rule cost exceeds")
CRD_LIMIT = 100_000_000  # and for all rules of a CRD

every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


@cache
def spec_and_status(kind):
    (version,) = crd(kind)["spec"]["versions"]
    properties = version["schema"]["openAPIV3Schema"]["properties"]
    return {name: properties[name] for name in ("spec", "status")}


def walk(schema, path, times=1):
    """Every schema below, its path, and how often an object may hold it at most."""
    yield schema, path, times
    for name, child in schema.get("properties", {}).items():
        yield from walk(child, f"{path}.{name}", times)
    if "items" in schema:
        yield from walk(schema["items"], f"{path}[]", times * schema["maxItems"])
    if "additionalProperties" in schema:
        members = times * schema["maxProperties"]
        yield from walk(schema["additionalProperties"], f"{path}{{}}", members)


@cache
def all_schemas(kind):
    found = spec_and_status(kind).items()
    return [each for name, schema in found for each in walk(schema, name)]


def test_crds_in_the_repository_are_those_of_the_models():
    assert check_crds(CRDS) == []


@pytest.mark.slow
def test_drift_is_reported_for_each_file(tmp_path):
    write_crds(tmp_path)
    (tmp_path / "datasources.snaploom.io.yaml").unlink()
    (tmp_path / "outputdatasets.snaploom.io.yaml").write_text("changed")
    (tmp_path / "other.yaml").write_text("strange")
    assert check_crds(tmp_path) == [
        "datasources.snaploom.io.yaml is missing",
        "outputdatasets.snaploom.io.yaml differs from the models",
        "other.yaml belongs to no kind",
    ]


@every_kind
def test_file_is_small_enough_for_client_side_apply(kind):
    assert (CRDS / f"{crd_name(kind)}.yaml").stat().st_size < SIZE_LIMIT


@every_kind
def test_document_reads_back_as_generated(kind):
    text = (CRDS / f"{crd_name(kind)}.yaml").read_text()
    assert yaml.safe_load(text) == crd(kind)
    assert not re.search(r"[&*]id\d", text)


@every_kind
@pytest.mark.parametrize("version", ["1.30", "1.34"])
def test_document_is_a_custom_resource_definition(kind, version):
    kubernetes_validate.validate(crd(kind), version, strict=True)


@every_kind
def test_every_field_is_described_on_one_line(kind):
    for schema, path, _ in all_schemas(kind):
        for name, field in schema.get("properties", {}).items():
            assert field.get("description"), f"{path}.{name}"
            assert "\n" not in field["description"]
            assert field["description"].endswith((".", "`", ")")), f"{path}.{name}"


@every_kind
def test_every_text_list_and_map_is_bounded_and_every_list_has_a_type(kind):
    for schema, path, _ in all_schemas(kind):
        match schema.get("type"):
            case None:  # a text may stand instead of the object
                assert schema["maxLength"] > 0, path
                assert schema["x-kubernetes-preserve-unknown-fields"] is True, path
            case "string":
                assert {"maxLength", "enum"} & schema.keys(), path
            case "array":
                assert schema["maxItems"] > 0, path
                assert schema["x-kubernetes-list-type"] in ("map", "set", "atomic"), path
            case "object" if "properties" not in schema and "description" not in schema:
                assert "maxProperties" in schema, path


@every_kind
def test_keys_of_lists_as_maps_are_required_scalars(kind):
    for schema, path, _ in all_schemas(kind):
        for key in schema.get("x-kubernetes-list-map-keys", ()):
            assert key in schema["items"]["required"], path
            assert schema["items"]["properties"][key]["type"] in ("string", "integer"), path


@every_kind
def test_there_are_no_defaults_and_no_keywords_outside_the_structural_form(kind):
    allowed = {
        "type", "description", "format", "enum", "pattern", "required", "properties", "items",
        "additionalProperties", "minimum", "maximum", "minLength", "maxLength", "minItems",
        "maxItems", "minProperties", "maxProperties", "x-kubernetes-validations",
        "x-kubernetes-list-type", "x-kubernetes-list-map-keys",
        "x-kubernetes-preserve-unknown-fields",
    }  # fmt: skip
    for schema, path, _ in all_schemas(kind):
        more = set() if "type" in schema else {"anyOf", "allOf"}
        assert schema.keys() <= allowed | more, path
        assert not {"properties", "additionalProperties"} <= schema.keys(), path


@every_kind
def test_patterns_are_within_re2(kind):
    for schema, path, _ in all_schemas(kind):
        assert not re.search(r"\(\?[=!<]|\\[1-9]", schema.get("pattern", "")), path


def rule_costs(kind):
    """A rough estimate from above: two units a word or sign, as often as the lists may repeat."""
    for schema, path, times in all_schemas(kind):
        for rule in schema.get("x-kubernetes-validations", ()):
            words = re.findall(r"\w+|[=!<>&|]+|[-+*%?:.(\[]", rule["rule"])
            yield path, 2 * len(words) * times


@every_kind
def test_rules_cost_less_than_the_api_server_allows(kind):
    costs = list(rule_costs(kind))
    assert [entry for entry in costs if entry[1] > RULE_LIMIT] == []
    assert sum(cost for _, cost in costs) < CRD_LIMIT


@every_kind
def test_kind_is_listed_under_its_names_with_ready_and_reason_first(kind):
    document = crd(kind)["spec"]
    (version,) = document["versions"]
    columns = [column["name"] for column in version["additionalPrinterColumns"]]
    assert document["group"] == "snaploom.io"
    assert document["scope"] == "Namespaced"
    assert document["names"]["shortNames"] == [kind.short_name]
    assert document["names"]["categories"] == ["snaploom"]
    assert version["subresources"] == {"status": {}}
    assert columns[:2] == ["Ready", "Reason"]
    assert {"Age", "Message"} <= set(columns)


@every_kind
def test_printer_columns_point_at_fields_that_exist(kind):
    fields = spec_and_status(kind)
    for column in kind.columns:
        head, *names = re.sub(r"\[.*?\]", "", column.json_path).strip(".").split(".")
        if head == "metadata":
            continue
        schema = fields[head]
        for name in names:
            schema = schema.get("items", schema)["properties"][name]
        expected = "string" if column.type == "date" else column.type
        assert schema["type"] == expected, column.name


def model_enums():
    for info in pkgutil.iter_modules(snaploom.models.__path__):
        module = importlib.import_module(f"snaploom.models.{info.name}")
        for value in vars(module).values():
            is_enum = isinstance(value, type) and issubclass(value, enum.Enum)
            if is_enum and value.__module__ == module.__name__:
                yield value


@pytest.mark.parametrize("members", list(model_enums()), ids=lambda members: members.__name__)
def test_every_enum_value_has_a_meaning(members):
    assert member_docs(members).keys() == {str(member.value) for member in members}
