"""What the API server does with objects: drawn ones, hostile ones, large ones."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import resources
from support.declared.modelrules import CRON, FOLDER, INDEX, LONG, PLACES, RULES

from snaploom.models.kinds import KINDS

LARGE = "x" * 1_000_000
A_FILE = {"format": "parquet", "sourceUriGlobs": ["/a"], "snapshot": {"fromReadTime": {}}}


def files(**parts):
    return "DataSource", {"hdfsLike": A_FILE | parts}


def output(**parts):
    root = {"dataSource": "a", "snapshotFilter": {"fromCron": CRON}}
    return "OutputDataset", {"dataModel": {"rootDataSource": root} | parts, "outputFolder": FOLDER}


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(st.data(), st.sampled_from(KINDS))
def test_what_the_parser_accepts_is_stored(judge, data, kind):
    raw = data.draw(resources(kind.model, with_status=False))
    dumped = kind.model.parse(raw).dump()
    assert judge.complaint(kind.name, raw["spec"]) == ""
    assert judge.complaint(kind.name, dumped["spec"]) == ""


HOSTILE = {
    "newline in a reference": output(rootDataSource={"dataSource": "a\nb"}),
    "newline at the end of a reference": output(otherDataSources=[{"dataSource": "a\n"}]),
    "path in a reference": output(rootDataSource={"dataSource": "../a"}),
    "other namespace in a reference": output(rootDataSource={"dataSource": "other/a"}),
    "newline in a field": output(otherDataSources=[{"dataSource": "a", "fieldName": "a\nb"}]),
    "large reference": output(rootDataSource={"dataSource": LARGE}),
    "large URI": files(sourceUriGlobs=[LARGE]),
    "large option": files(formatOptions={"a": LARGE}),
    "many options": files(formatOptions={str(number): "" for number in range(257)}),
    "many globs": files(sourceUriGlobs=["/a"] * 257),
    "large query": (
        "DataSource",
        {"simpleVirtual": {"dataSource": "a", "alias": "a", "dataQuery": LARGE}},
    ),
    "volume of the host": ("SkippingIndex", INDEX | {"run": {"spark": {"podTemplate": {
        "volumes": [{"name": "v", "hostPath": {"path": "/"}}]}}}}),
    "sidecar": ("SkippingIndex", INDEX | {"run": {"spark": {"podTemplate": {
        "containers": [{"name": "c", "image": "i"}]}}}}),
    "security context": ("SkippingIndex", INDEX | {"run": {"spark": {"podTemplate": {
        "securityContext": {"privileged": True}}}}}),
    "number as text": output(maxDepth="3"),
    "list as object": files(sourceUriGlobs={"0": "/a"}),
    "null in a list": files(sourceUriGlobs=[None]),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "spec"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_spec_is_refused_with_a_short_message(judge, kind, spec):
    complaint = judge.complaint(kind, spec)
    assert complaint
    assert len(complaint) < 2_000


@pytest.mark.parametrize(
    "part",
    [
        {"containers": [{"name": "c", "image": "i"}]},
        {"securityContext": {"privileged": True}},
        {"hostNetwork": True},
        {"serviceAccountName": "admin"},
    ],
    ids=lambda part: next(iter(part)),
)
def test_what_is_not_ours_to_give_never_reaches_storage(judge, part):
    kept = judge.kept("SkippingIndex", INDEX | {"run": {"spark": {"podTemplate": part}}})
    assert kept == INDEX | {"run": {"spark": {"podTemplate": {}}}}


@pytest.mark.parametrize(
    "name", ["a\nb", "a b", "A", "a_b", "../a", "-a", "", "a" * 254, "a;b", "{{a}}"]
)
def test_hostile_name_is_refused(judge, name):
    assert judge.complaint(*files(), name=name)


def test_deeply_nested_type_is_left_to_the_parser(judge):
    nested = LONG
    for _ in range(200):
        nested = {"array": {"elementType": nested}}
    field = {"name": "a", "dataType": nested}
    assert judge.complaint(*files(schemaFields=[field])) == ""


def repeated(count, build):
    return [build(number) for number in range(count)]


FULL = {
    "sources of an output": output(
        otherDataSources=repeated(2000, lambda n: {"dataSource": f"s{n}", "fieldName": f"f{n}"}),
        dataRelationships=repeated(2000, lambda n: {"name": f"r{n}", "antiPriority": 1}),
    ),
    "fields of a source": files(
        schemaFields=repeated(
            2000, lambda n: {"name": f"f{n}", "dataType": {"decimal": {"precision": 9, "scale": 2}}}
        )
    ),
    "representations of a key": (
        "DataRelationship",
        {
            "representations": repeated(
                2000,
                lambda n: {
                    "dataSources": [f"s{n}"],
                    "joinKey": repeated(
                        4, lambda m: {"fields": [{"fieldName": f"f{m}", "dataType": LONG}]}
                    ),
                },
            )
        },
    ),
    "transformers": (
        "FieldTransformer",
        {
            "transformers": repeated(
                64,
                lambda n: {
                    "rename": {"to": f"f{n}"},
                    "selectors": repeated(64, lambda m: {"coordinateIncludeRegex": f"f{m}"}),
                },
            )
        },
    ),
    "indexes": (
        "SkippingIndex",
        INDEX | {"indexes": repeated(256, lambda n: {"type": "MIN_MAX", "column": f"f{n}"})},
    ),
}


@pytest.mark.parametrize(("kind", "spec"), FULL.values(), ids=FULL)
def test_rules_over_full_lists_cost_less_than_an_object_may(judge, kind, spec):
    assert judge.complaint(kind, spec) == ""


def test_status_is_written_by_its_subresource_only(kubectl, namespace):
    kind, spec = files()
    raw = {"apiVersion": "snaploom.io/v1alpha1", "kind": kind, "metadata": {"name": "a"}}
    kubectl.apply(raw | {"spec": spec, "status": {"observedGeneration": 7}}, namespace=namespace)
    assert "status" not in kubectl.get("datasource", "a", namespace)
    patch = '{"status": {"observedGeneration": 7}}'
    how = ("--namespace", namespace, "--type=merge", "--subresource=status", "--patch", patch)
    kubectl("patch", "datasource", "a", *how)
    found = kubectl.get("datasource", "a", namespace)
    assert found["status"] == {"observedGeneration": 7}
    assert found["metadata"]["generation"] == 1


def test_rules_and_places_are_of_the_same_models():
    assert {model for model, _, _ in RULES} == PLACES.keys()
