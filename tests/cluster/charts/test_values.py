"""Values have every setting, and a mistyped one is refused."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from generation.chart import CHART, chart_drift, write_chart
from support.cluster.chart import HelmFailed, Raw, Rendered, render_text

VALUES: Raw = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
SCHEMA: Raw = json.loads((CHART / "values.schema.json").read_text("utf-8"))
FREE = {
    "requests", "limits", "nodeAffinity", "podAffinity", "podAntiAffinity", "valueFrom",
    "capabilities", "seccompProfile", "volumes", "namespaceSelector", "topologySpreadConstraints",
    "metricsFrom", "pagesFrom", "egress", "global", "relabelings", "metricRelabelings",
    "ExtraObject",
    "ExtraMetadata",
}  # fmt: skip
"""What is passed to Kubernetes as it is."""


def objects(schema: Any, name: str = "") -> Iterator[tuple[str, Raw]]:
    if isinstance(schema, list):
        for each in schema:
            yield from objects(each, name)
    elif isinstance(schema, dict):
        if schema.get("type") == "object":
            yield name, schema
        for keyword, value in schema.items():
            if keyword in ("properties", "definitions"):
                for field, inner in value.items():
                    yield from objects(inner, field)
            else:
                yield from objects(value, name)


def mappings(values: Raw, schema: Raw, *outer: str) -> Iterator[tuple[str, ...]]:
    """The path of every mapping among the defaults whose names are ours."""
    schema = (
        SCHEMA["definitions"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    )
    if schema["additionalProperties"] is False:
        yield outer
        for name, value in values.items():
            if isinstance(value, dict):
                yield from mappings(value, schema["properties"][name], *outer, name)


VALIDATOR = jsonschema.Draft7Validator(SCHEMA)
PATHS = list(mappings(VALUES, SCHEMA))


def changed(path: tuple[str, ...], value: Any, values: Raw = VALUES) -> Raw:
    if not path:
        return value
    first, *rest = path
    return values | {first: changed(tuple(rest), value, values[first])}


def at(path: tuple[str, ...]) -> Raw:
    found = VALUES
    for name in path:
        found = found[name]
    return found


def test_generated_files_are_those_of_the_models() -> None:
    assert chart_drift(CHART) == [], "run `make generate`"


def test_drift_of_the_chart_is_reported_file_by_file(tmp_path: Path) -> None:
    write_chart(tmp_path)
    (tmp_path / "values.yaml").write_text("changed")
    (tmp_path / "templates/crds/others.yaml").write_text("strange")
    assert chart_drift(tmp_path) == [
        "values.yaml differs from the code",
        "templates/crds/others.yaml is not generated",
    ]


def test_defaults_are_what_the_schema_allows() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    VALIDATOR.validate(VALUES)


def test_every_object_of_the_schema_names_its_fields() -> None:
    for name, schema in objects(SCHEMA):
        allowed = schema["additionalProperties"]
        assert allowed is False or isinstance(allowed, dict) or name in FREE, name


@pytest.mark.parametrize("path", PATHS, ids=".".join)
def test_mistyped_names_are_refused_everywhere(path: tuple[str, ...]) -> None:
    with pytest.raises(jsonschema.ValidationError, match="'mistyped' was unexpected"):
        VALIDATOR.validate(changed(path, at(path) | {"mistyped": 1}))


@pytest.mark.parametrize("path", PATHS, ids=".".join)
def test_values_cannot_be_taken_away(path: tuple[str, ...]) -> None:
    for name in at(path):
        rest = {other: value for other, value in at(path).items() if other != name}
        with pytest.raises(jsonschema.ValidationError, match="is a required property"):
            VALIDATOR.validate(changed(path, rest))


@pytest.mark.parametrize(
    "values",
    [
        {"operatr": {}},
        {"admission": {"failurePolicy": "ignore"}},
        {"admission": {"replicas": "2"}},
        {"admission": {"replicas": 0}},
        {"operator": {"submitters": ["Sparkoperator"]}},
        {"operator": {"tolerations": [{"keys": "spark"}]}},
        {"operator": {"limits": None}},
        {"spark": {"application": {"podTemplate": {"hostNetwork": True}}}},
        {"watchNamespaces": "team-a"},
        {"metrics": {"serviceMonitor": {"interval": "soon"}}},
    ],
    ids=str,
)
def test_helm_refuses_what_the_schema_refuses(values: Raw) -> None:
    with pytest.raises(HelmFailed, match="don't meet the specifications of the schema"):
        render_text(values)


def test_a_chart_of_charts_may_hand_down_global_values() -> None:
    assert Rendered.of({"global": {"registry": "example"}, "crds": {"enabled": False}}).objects


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("image", "repository"), ""),
        (("image", "repository"), "registry.example/snaploom:1.0"),
        (("image", "repository"), "https://registry.example/snaploom"),
        (("spark", "image", "repository"), ""),
        (("tests", "image", "repository"), ""),
        (("image", "digest"), "sha256:0123"),
        (("image", "digest"), "latest"),
        (("image", "tag"), "of today"),
        (("operator", "submitters"), ["Local"]),
        (("operator", "submitters"), []),
        (("metrics", "serviceMonitor", "scrapeTimeout"), "soon"),
        (("metrics", "serviceMonitor", "interval"), "30s1m"),
        (("admission", "certManager", "duration"), "90d"),
        (("admission", "port"), 443),
        (("watchNamespaces",), [""]),
        (("spark", "namespaces"), ["a.b"]),
        (("imagePullSecrets",), [{"name": ""}]),
        (("commonLabels",), {"team": "a b"}),
        (("clusterDomain",), "a b"),
        (("extraObjects",), [{"kind": "ConfigMap", "metadata": {"name": "more"}}]),
        (("extraObjects",), [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}]),
    ],
)
def test_values_that_cannot_work_are_refused_by_the_schema(path, value):
    with pytest.raises(jsonschema.ValidationError) as refused:
        VALIDATOR.validate(changed(path, value))
    assert list(refused.value.absolute_path)[: len(path)] == list(path)


@pytest.mark.parametrize(
    ("values", "field", "reason"),
    [
        ({"operator": {"extraArgs": ["--local"]}}, "operator.extraArgs[0]", "chart does not set"),
        ({"admission": {"extraArgs": ["-n=a", "--settings=/other.yaml"]}},
         "admission.extraArgs[1]", "chart does not set"),
        ({"fullnameOverride": "1st"}, "fullnameOverride", "a Service takes no other name"),
        ({"fullnameOverride": "a.b"}, "fullnameOverride", "a Service takes no other name"),
        ({"operator": {"serviceAccount": {"name": "one"}},
          "admission": {"serviceAccount": {"name": "one"}}},
         "operator.serviceAccount.name", "cannot create one object twice"),
        ({"pages": {"enabled": True, "serviceAccount": {"name": "snaploom-operator"}}},
         "pages.serviceAccount.name", "cannot create one object twice"),
        ({"pages": {"extraArgs": ["--kubeconfig=/a"]}}, "pages.extraArgs[0]", "chart does not set"),
        ({"operator": {"serviceAccount": {"name": "snaploom-spark"}}},
         "spark.serviceAccount.name", "cannot create one object twice"),
        ({"metrics": {"podMonitor": {"enabled": True, "scrapeTimeout": "60001ms",
                                     "interval": "1m"}}},
         "metrics.podMonitor.scrapeTimeout", "Prometheus refuses"),
        ({"admission": {"certManager": {"enabled": True, "renewBefore": "36h",
                                        "duration": "35h60m"}}},
         "admission.certManager.renewBefore", "less than duration"),
    ],
)  # fmt: skip
def test_values_that_cannot_work_together_are_refused_with_the_reason(values, field, reason):
    with pytest.raises(HelmFailed, match=reason) as refused:
        render_text(values)
    assert f"{field}: found" in str(refused.value)


def test_account_that_is_not_created_may_serve_two() -> None:
    mine = {"serviceAccount": {"name": "mine", "create": False}}
    assert render_text({"operator": mine, "admission": mine})


def test_labels_of_a_monitor_count_more_than_ours() -> None:
    labels = {"app.kubernetes.io/instance": "prometheus"}
    monitor = {"enabled": True, "labels": labels, "interval": "1m", "scrapeTimeout": "60s"}
    rendered = Rendered.of({"metrics": {"serviceMonitor": monitor}, "crds": {"enabled": False}})
    (found,) = rendered.of_kind("ServiceMonitor")
    assert found["metadata"]["labels"]["app.kubernetes.io/instance"] == "prometheus"


@pytest.mark.parametrize(
    "image",
    [
        {"repository": "registry.example:5000/team/snaploom", "tag": "1.0-rc.1"},
        {"repository": "snaploom", "digest": f"sha256:{'0' * 64}"},
        {"repository": "localhost/a__b/c-d"},
    ],
)
def test_references_of_images_are_allowed(image: Raw) -> None:
    VALIDATOR.validate(changed(("image",), VALUES["image"] | image))


@pytest.mark.parametrize(
    ("values", "one", "other"),
    [
        ({"healthPort": 9090}, "metrics.port", "healthPort"),
        ({"metrics": {"port": 9443}}, "metrics.port", "admission.port"),
        ({"admission": {"port": 8080}}, "healthPort", "admission.port"),
        ({"pages": {"enabled": True, "port": 8080}}, "pages.port", "healthPort"),
        ({"pages": {"enabled": True, "port": 9090}}, "pages.port", "metrics.port"),
    ],
)
def test_two_uses_of_one_port_are_refused_with_the_reason(values, one, other):
    with pytest.raises(HelmFailed, match="one container listens on both") as refused:
        render_text(values)
    assert one in str(refused.value)
    assert other in str(refused.value)


def test_port_of_a_webhook_that_is_not_there_is_free() -> None:
    assert render_text({"metrics": {"port": 9443}, "admission": {"enabled": False}})


def test_arguments_objects_and_rules_of_monitors_are_rendered() -> None:
    rule = {"action": "drop", "sourceLabels": ["pod"]}
    monitor = {"enabled": True, "scrapeTimeout": "5s", "relabelings": [rule]}
    rendered = render_text(
        {
            "operator": {"extraArgs": ["--namespace=shop"]},
            "metrics": {
                "serviceMonitor": {**monitor, "metricRelabelings": [rule]},
                "podMonitor": monitor,
            },
            "extraObjects": [
                {"apiVersion": "v1", "kind": "ConfigMap",
                 "metadata": {"name": "{{ .Release.Name }}-more"}},
            ],
        }
    )  # fmt: skip
    objects_ = {(each["kind"], each["metadata"]["name"]): each
                for each in yaml.safe_load_all(rendered) if each}  # fmt: skip
    assert ("ConfigMap", "snaploom-more") in objects_
    pod = objects_["Deployment", "snaploom-operator"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["args"][-1] == "--namespace=shop"
    (endpoint,) = objects_["ServiceMonitor", "snaploom"]["spec"]["endpoints"]
    assert (endpoint["scrapeTimeout"], endpoint["metricRelabelings"]) == ("5s", [rule])
    assert endpoint["relabelings"][-1] == rule
    pods = objects_["PodMonitor", "snaploom-drivers"]["spec"]["podMetricsEndpoints"]
    assert [each["relabelings"][-1] for each in pods] == [rule, rule]
