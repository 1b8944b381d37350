"""Our CRDs on a real API server: accepted, served, explained, and the same when applied again."""

import json
import re
from collections.abc import Iterator

import pytest
from support.cluster.cluster import CRDS, running_control_plane
from support.cluster.clusterkubectl import Raw

from snaploom.models.kinds import KINDS
from snaploom.models.schemas import crd, crd_name

every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
NAMES = [f"crd/{crd_name(kind)}" for kind in KINDS]
SPECIFICATION = "/openapi/v3/apis/snaploom.io/v1alpha1"


def versions(kubectl):
    objects = json.loads(kubectl("get", *NAMES, "--output", "json"))["items"]
    return {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in objects}


@every_kind
def test_crd_is_served_without_a_complaint(kubectl, kind):
    status = kubectl.get("crd", crd_name(kind))["status"]
    conditions = {condition["type"]: condition["status"] for condition in status["conditions"]}
    assert conditions["Established"] == conditions["NamesAccepted"] == "True"
    assert "NonStructuralSchema" not in conditions
    assert status["acceptedNames"]["shortNames"] == [kind.short_name]
    assert status["acceptedNames"]["categories"] == ["snaploom"]


@every_kind
def test_crd_comes_back_as_it_was_written(kubectl, kind):
    assert kubectl.get("crd", crd_name(kind))["spec"] == crd(kind)["spec"]


def test_applying_again_on_the_server_changes_nothing(kubectl):
    before = versions(kubectl)
    kubectl("apply", "--server-side", "--force-conflicts", "--warnings-as-errors", "-f", str(CRDS))
    assert versions(kubectl) == before
    assert kubectl("diff", "--server-side", "-f", str(CRDS)) == ""


def test_another_manager_applies_the_same_without_a_conflict(kubectl):
    kubectl("apply", "--server-side", "--field-manager=argocd", "-f", str(CRDS))
    assert kubectl("diff", "--server-side", "--field-manager=argocd", "-f", str(CRDS)) == ""


def test_applying_on_the_client_twice_changes_nothing(tmp_path):
    with running_control_plane(tmp_path) as plane:
        first = plane.kubectl("apply", "--warnings-as-errors", "-f", str(CRDS))
        assert first.count(" created\n") == len(KINDS)
        plane.await_crds(*map(crd_name, KINDS))
        before = versions(plane.kubectl)
        second = plane.kubectl("apply", "-f", str(CRDS))
        assert second.count(" unchanged\n") == len(KINDS)
        assert plane.kubectl("diff", "-f", str(CRDS)) == ""
        assert versions(plane.kubectl) == before


def fields(schema: Raw, path: str) -> Iterator[tuple[str, Raw]]:
    """Every field of a schema, with its path; Kubernetes' own fields are left to it."""
    for name, child in schema.get("properties", {}).items():
        yield f"{path}.{name}", child
        yield from fields(child, f"{path}.{name}")
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            yield from fields(schema[inner], path)


def published_schema(kubectl, kind):
    schemas = json.loads(kubectl("get", "--raw", SPECIFICATION))["components"]["schemas"]
    return schemas[f"io.snaploom.v1alpha1.{kind.name}"]


@every_kind
def test_every_field_that_is_published_is_described(kubectl, kind):
    schema = published_schema(kubectl, kind)
    silent = [path for path, field in fields(schema, kind.name) if not field.get("description")]
    assert schema["description"]
    assert [path for path in silent if not path.endswith(".metadata")] == []


@every_kind
def test_explaining_a_kind_names_every_field(kubectl, kind):
    output = kubectl("explain", kind.plural, "--recursive")
    named = re.findall(r"^ +(\S+)\t<", output, re.MULTILINE)
    expected = [path.rpartition(".")[2] for path, _ in fields(published_schema(kubectl, kind), "")]
    assert set(expected) <= set(named)
    assert len(named) >= len(expected)


@every_kind
@pytest.mark.parametrize("part", ["spec", "status"])
def test_explaining_a_part_describes_each_field(kubectl, kind, part):
    output = kubectl("explain", f"{kind.plural}.{part}")
    paragraphs = output.partition("\nFIELDS:\n")[2].strip().split("\n\n")
    assert paragraphs != [""]
    for paragraph in paragraphs:
        title, *words = paragraph.strip().splitlines()
        assert " ".join(words).strip() not in ("", "<no description>"), title
