from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import model_data
from support.operator.runrequests import an_output
from support.runner.quick import examples

from snaploom.models.findings import Severity
from snaploom.models.run import SparkSettings
from snaploom.policy.pods import refusals, spark_findings
from snaploom_operator.settings import OperatorSettings
from snaploom_operator.submit.manifests import merged_settings


def refused(**spark_conf: str) -> list[str]:
    settings = SparkSettings(spark_conf=spark_conf)
    return [refusal.found for refusal in refusals(settings)]


def test_reason_names_the_field_to_use() -> None:
    (refusal,) = refusals(SparkSettings(spark_conf={"spark.executor.memory": "secret"}))
    assert "run.spark.executor.memory" in refusal.reason
    assert "secret" not in str(refusal)


@given(st.text(max_size=50), st.text(max_size=50))
def test_every_key_is_judged(key: str, value: str) -> None:
    assert refused(**{key: value}) in ([], [key])


@pytest.mark.parametrize(
    ("template", "found"),
    [
        ({"volumes": [{"name": "snaploom-bundle", "emptyDir": {}}]}, "snaploom-bundle"),
        ({"labels": {"snaploom.io/run": "other"}}, "snaploom.io/run"),
        ({"labels": {"spark-role": "driver"}}, "spark-role"),
        (
            {"env": [{"name": "SNAPLOOM_ALLOW_JDBC_URL", "value": "true"}]},
            "SNAPLOOM_ALLOW_JDBC_URL",
        ),
        ({"volumeMounts": [{"name": "v", "mountPath": "/etc/snaploom"}]}, "/etc/snaploom"),
        (
            {"volumeMounts": [{"name": "v", "mountPath": "/x/../etc//snaploom/bundle/a"}]},
            "/x/../etc//snaploom/bundle/a",
        ),
        ({"volumeMounts": [{"name": "v", "mountPath": "/"}]}, "/"),
    ],
)
def test_names_of_ours_in_a_pod_template_are_refused(template, found):
    (refusal,) = refusals(SparkSettings.parse({"podTemplate": template}))
    assert refusal.found == found


def test_ordinary_pod_template_passes() -> None:
    template = {
        "labels": {"team": "shop"},
        "volumes": [{"name": "data", "emptyDir": {}}],
        "volumeMounts": [{"name": "data", "mountPath": "/etc/snaploom-data"}],
    }
    assert refusals(SparkSettings.parse({"podTemplate": template})) == ()


def test_refusals_are_errors_of_the_resource() -> None:
    spark = {"sparkConf": {"spark.master": "local", "spark.sql.shuffle.partitions": "1"}}
    (finding,) = spark_findings(an_output(spark=spark))
    assert (finding.code, finding.severity) == ("SL182", Severity.ERROR)
    assert (finding.resource, finding.path) == ("OutputDataset/orders", "spec.run.spark.sparkConf")
    assert "spark.master" in finding.message


SLOW = settings(max_examples=examples(50), suppress_health_check=[HealthCheck.too_slow])


def merged(own: dict[str, Any], below: dict[str, Any]) -> dict[str, Any]:
    both = merged_settings(SparkSettings.parse(own), SparkSettings.parse(below))
    return both.dump()


def template(own: dict[str, Any], below: dict[str, Any]) -> Any:
    return merged({"podTemplate": own}, {"podTemplate": below})["podTemplate"]


def test_what_is_omitted_comes_from_the_settings() -> None:
    found = merged({"image": "ours"}, {"image": "theirs", "sparkVersion": "4.3.0"})
    assert (found["image"], found["sparkVersion"]) == ("ours", "4.3.0")


def test_parts_are_merged_field_by_field() -> None:
    found = merged(
        {"executor": {"instances": 0}}, {"executor": {"instances": 2, "memory": "2g", "cores": 1}}
    )
    assert found["executor"] == {"instances": 0, "memory": "2g", "cores": 1}


def test_maps_are_united() -> None:
    found = merged({"sparkConf": {"spark.a": "1"}}, {"sparkConf": {"spark.a": "2", "spark.b": "3"}})
    assert found["sparkConf"] == {"spark.a": "1", "spark.b": "3"}


def test_lists_with_a_key_are_united_by_it() -> None:
    found = template(
        {"env": [{"name": "A", "value": "ours"}]},
        {"env": [{"name": "A", "value": "theirs"}, {"name": "B", "value": "theirs"}]},
    )
    assert found["env"] == [{"name": "A", "value": "ours"}, {"name": "B", "value": "theirs"}]


def test_member_of_a_list_is_not_mixed_of_two() -> None:
    found = template(
        {"volumes": [{"name": "v", "secret": {"secretName": "s"}}]},
        {"volumes": [{"name": "v", "emptyDir": {}}]},
    )
    assert found["volumes"] == [{"name": "v", "secret": {"secretName": "s", "optional": False}}]


def test_lists_without_a_key_are_replaced() -> None:
    found = merged({"imagePullSecrets": ["ours"]}, {"imagePullSecrets": ["theirs", "more"]})
    assert found["imagePullSecrets"] == ["ours"]


def test_dynamic_allocation_is_on_where_it_is_given() -> None:
    found = merged({"dynamicAllocation": {}}, {"dynamicAllocation": {"enabled": False}})
    assert found["dynamicAllocation"]["enabled"] is True


def drawn() -> st.SearchStrategy[SparkSettings]:
    return model_data(SparkSettings).map(SparkSettings.parse)


@given(drawn())
@SLOW
def test_settings_over_themselves_are_the_same(one: SparkSettings) -> None:
    assert merged_settings(one, one) == one


@given(drawn())
@SLOW
def test_settings_over_nothing_are_the_same(one: SparkSettings) -> None:
    assert merged_settings(one, SparkSettings()) == one
    assert merged_settings(None, one) == one


@given(drawn(), drawn(), drawn())
@SLOW
def test_merging_is_associative(a: SparkSettings, b: SparkSettings, c: SparkSettings) -> None:
    left = merged_settings(merged_settings(a, b), c)
    assert left.dump() == merged_settings(a, merged_settings(b, c)).dump()


@given(drawn())
@SLOW
def test_merged_with_the_operators_settings_it_is_complete(one: SparkSettings) -> None:
    found = merged_settings(one, OperatorSettings().spark)
    assert None not in (found.image, found.spark_version, found.service_account_name)
