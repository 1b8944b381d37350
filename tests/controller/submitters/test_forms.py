"""What holds of every submitter: runs are written, read back, and judged by their CRDs."""

from contextlib import nullcontext
from typing import Any

import kubernetes_validate
import pytest
from hypothesis import HealthCheck, given, settings
from strategies import model_data
from support.cluster.sparkcrds import judge_of
from support.operator.runrequests import RUN, UID, a_request, an_output, stored
from support.runner.quick import examples

from snaploom.models.allowances import ALLOW_VARIABLE, Allowances
from snaploom.models.common import parse_instant
from snaploom.models.run import Accelerator, RunAction, SparkSettings, Submitter
from snaploom.plan.bundles import SecretKey
from snaploom.policy.variables import PINNED
from snaploom.sources.databases.declared import ALLOW_URL_VARIABLE
from snaploom_operator.errors import SparkSettingsRefused
from snaploom_operator.objects import ApplicationState
from snaploom_operator.settings import ApiKey, LineageSettings, OperatorSettings
from snaploom_operator.submit.applications import FORMS, ApplicationForm
from snaploom_operator.submit.manifests import PROTECTION, RunRequest, merged_settings

Raw = dict[str, Any]
every_form = pytest.mark.parametrize("form", FORMS.values(), ids=str)
SPARK = [FORMS[Submitter.SPARK_OPERATOR], FORMS[Submitter.APACHE_SPARK]]
every_spark_form = pytest.mark.parametrize("form", SPARK, ids=["SparkOperator", "ApacheSpark"])


def written(form: ApplicationForm, request: RunRequest | None = None) -> Any:
    return form.manifest(request or a_request())


def templates(form: ApplicationForm, manifest: Any) -> tuple[Raw, Raw]:
    spec = manifest["spec"]
    if form.submitter is Submitter.SPARK_OPERATOR:
        return spec["driver"]["template"], spec["executor"]["template"]
    return spec["driverSpec"]["podTemplateSpec"], spec["executorSpec"]["podTemplateSpec"]


def environment_of(container: Raw) -> list[Raw]:
    always = {entry["name"] for entry in variables_of_every_run()}
    return [entry for entry in container["env"] if entry["name"] not in always]


def variables_of_every_run() -> list[Raw]:
    _, executor = templates(SPARK[0], written(SPARK[0]))
    variables: list[Raw] = executor["spec"]["containers"][0]["env"]
    return variables


def schema_faults(form: ApplicationForm, manifest: Any) -> list[str]:
    judged = judge_of(form.submitter).iter_errors(manifest["spec"])
    return [f"{error.json_path}: {error.message}" for error in judged]


def judge_pod(template: Raw) -> None:
    container = {**template["spec"]["containers"][0], "image": "spark"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "driver", **template["metadata"]},
        "spec": {**template["spec"], "containers": [container]},
    }
    kubernetes_validate.validate(pod, "1.34", strict=True)


@every_form
def test_run_is_read_back_as_it_was_written(form: ApplicationForm) -> None:
    request = a_request(action=RunAction.DELETE, attempt=3)
    found = form.read(stored(written(form, request)))
    assert (found.submitter, found.name, found.owner_uid) == (form.submitter, RUN, UID)
    assert (found.action, found.attempt, found.trigger) == (
        RunAction.DELETE,
        3,
        request.run.trigger,
    )
    assert found.started_at == request.started_at
    assert (found.state, found.is_deleting) == (ApplicationState.NEW, False)


@every_form
def test_run_is_owned_by_its_resource(form: ApplicationForm) -> None:
    metadata = written(form)["metadata"]
    assert [owner["uid"] for owner in metadata["ownerReferences"]] == [UID]
    assert metadata["labels"]["snaploom.io/run"] == RUN == metadata["name"]


@every_form
def test_same_run_is_written_the_same_way(form: ApplicationForm) -> None:
    assert written(form) == written(form)


@every_form
@pytest.mark.parametrize("label", ["snaploom.io/owner-uid", "snaploom.io/run"])
def test_object_without_our_labels_is_not_ours(form: ApplicationForm, label: str) -> None:
    manifest = stored(written(form))
    del manifest["metadata"]["labels"][label]
    assert form.read(manifest) is None


@every_form
def test_object_of_another_run_is_not_this_run(form: ApplicationForm) -> None:
    manifest = stored(written(form))
    manifest["metadata"]["name"] = "another"
    assert form.read(manifest) is None


@every_form
@pytest.mark.parametrize("note", [None, "", "{", '{"attempt": "x"}', '{"startedAt": "never"}'])
def test_unreadable_note_does_not_lose_the_run(form: ApplicationForm, note: str | None) -> None:
    manifest = stored(written(form))
    annotations = {} if note is None else {"snaploom.io/trigger": note}
    manifest["metadata"]["annotations"] = annotations
    found = form.read(manifest)
    assert found.started_at == parse_instant("2024-05-01T12:00:01Z")
    assert found.attempt == 0


@every_form
def test_object_that_is_being_deleted_is_marked(form: ApplicationForm) -> None:
    manifest = stored(written(form))
    manifest["metadata"]["deletionTimestamp"] = "2024-05-01T13:00:00Z"
    found = form.read(manifest)
    assert found.is_deleting


@every_spark_form
def test_job_is_called_with_ids_only(form: ApplicationForm) -> None:
    spec = written(form)["spec"]
    assert spec.get("arguments", spec.get("driverArgs")) == [
        "--bundle", "/etc/snaploom/bundle", "--uid", UID, "--run-id", RUN, "--attempt", "1",
        "--action", "run", "--report", f"configmap:default/{RUN}-report",
    ]  # fmt: skip


@every_spark_form
def test_only_the_driver_sees_bundle_and_token(form: ApplicationForm) -> None:
    driver, executor = templates(form, written(form))
    assert driver["spec"]["automountServiceAccountToken"] is True
    assert executor["spec"]["automountServiceAccountToken"] is False
    bundles = [
        [v for v in template["spec"]["volumes"] if "configMap" in v]
        for template in (driver, executor)
    ]
    assert bundles == [
        [{"name": "snaploom-bundle", "configMap": {"name": f"{RUN}-bundle", "optional": False}}],
        [],
    ]


@every_spark_form
def test_secrets_reach_the_driver_by_reference_only(form: ApplicationForm) -> None:
    key = SecretKey("shop-db", "password")
    manifest = written(form, a_request(secrets=(key,)))
    driver, executor = (t["spec"]["containers"][0] for t in templates(form, manifest))
    reference = {"secretKeyRef": {"name": "shop-db", "key": "password"}}
    assert environment_of(driver) == [{"name": key.variable, "valueFrom": reference}]
    assert environment_of(executor) == []
    judge_pod(templates(form, manifest)[0])
    assert schema_faults(form, manifest) == []


@every_spark_form
def test_only_a_driver_gets_that_urls_are_allowed(form: ApplicationForm) -> None:
    manifest = written(form, a_request(allow_jdbc_url=True))
    driver, executor = (t["spec"]["containers"][0] for t in templates(form, manifest))
    assert {"name": "SNAPLOOM_ALLOW_JDBC_URL", "value": "true"} in driver["env"]
    assert {"name": "SNAPLOOM_ALLOW_JDBC_URL", "value": "false"} in executor["env"]


@every_spark_form
def test_only_a_driver_gets_where_lineage_is_sent(form: ApplicationForm) -> None:
    key = ApiKey(secret="lineage", key="token")
    lineage = LineageSettings(url="http://marquez:5000", namespace="prod", api_key=key)
    manifest = written(form, a_request(lineage=lineage))
    driver, executor = (t["spec"]["containers"][0] for t in templates(form, manifest))
    assert environment_of(driver) == [
        {"name": "SNAPLOOM_LINEAGE_URL", "value": "http://marquez:5000"},
        {"name": "SNAPLOOM_LINEAGE_NAMESPACE", "value": "prod"},
        {
            "name": "SNAPLOOM_LINEAGE_API_KEY",
            "valueFrom": {"secretKeyRef": {"name": "lineage", "key": "token"}},
        },
    ]
    assert environment_of(executor) == []
    assert schema_faults(form, manifest) == []


@every_spark_form
def test_a_driver_gets_the_format_of_its_log(form: ApplicationForm) -> None:
    driver, _ = (
        t["spec"]["containers"][0]
        for t in templates(form, written(form, a_request(log_format="json")))
    )
    assert environment_of(driver) == [{"name": "SNAPLOOM_LOG_FORMAT", "value": "json"}]


@every_spark_form
def test_pods_are_restricted(form: ApplicationForm) -> None:
    for template in templates(form, written(form)):
        pod, (container,) = template["spec"]["securityContext"], template["spec"]["containers"]
        assert pod["runAsNonRoot"] is True
        assert pod["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
        }
        assert {"/tmp", "/opt/spark/work-dir"} <= {
            m["mountPath"] for m in container["volumeMounts"]
        }


@every_spark_form
def test_folder_of_the_users_own_takes_the_place_of_ours(form: ApplicationForm) -> None:
    template = {
        "volumes": [{"name": "big", "emptyDir": {"sizeLimit": "10Gi"}}],
        "volumeMounts": [{"name": "big", "mountPath": "/tmp/"}],
    }
    request = a_request(an_output(spark={"podTemplate": template}))
    for pod in templates(form, written(form, request)):
        (container,) = pod["spec"]["containers"]
        mounts = [m for m in container["volumeMounts"] if m["mountPath"].rstrip("/") == "/tmp"]
        assert mounts == [{"name": "big", "mountPath": "/tmp/"}]


@every_spark_form
def test_settings_beyond_the_sandbox_are_never_written(form: ApplicationForm) -> None:
    spark = {"sparkConf": {"spark.kubernetes.namespace": "kube-system", "spark.sql.a": "1"}}
    with pytest.raises(SparkSettingsRefused, match=r"spark\.kubernetes\.namespace") as refused:
        written(form, a_request(an_output(spark=spark)))
    assert "kube-system" not in str(refused.value)


@every_spark_form
def test_administrators_settings_are_not_judged(form: ApplicationForm) -> None:
    master = {"spark.kubernetes.driver.master": "https://10.96.0.1:443"}
    settings = OperatorSettings().spark.model_copy(update={"spark_conf": master})
    spec = written(form, a_request(settings=settings))["spec"]
    assert spec["sparkConf"]["spark.kubernetes.driver.master"] == "https://10.96.0.1:443"


@every_spark_form
@pytest.mark.parametrize(("path", "is_refused"), [("/opt/spark/extra", True), ("/scratch", False)])
def test_a_volume_does_not_fill_a_mount_of_the_operators_over_programs(form, path, is_refused):
    claim = {"name": "v", "persistentVolumeClaim": {"claimName": "jars"}}
    mount = {"name": "v", "mountPath": path}
    theirs = SparkSettings.parse({"podTemplate": {"volumes": [claim], "volumeMounts": [mount]}})
    settings = merged_settings(theirs, OperatorSettings().spark)
    mine = {"volumes": [{"name": "v", "configMap": {"name": "my-jars"}}]}
    request = a_request(an_output(spark={"podTemplate": mine}), settings=settings)
    with pytest.raises(SparkSettingsRefused, match=path) if is_refused else nullcontext():
        written(form, request)


@every_spark_form
def test_contradiction_with_the_operators_settings_is_refused(form: ApplicationForm) -> None:
    theirs = SparkSettings.parse({"dynamicAllocation": {"maxExecutors": 2}})
    settings = merged_settings(theirs, OperatorSettings().spark)
    request = a_request(
        an_output(spark={"dynamicAllocation": {"minExecutors": 5}}), settings=settings
    )
    with pytest.raises(SparkSettingsRefused, match="5 and 2"):
        written(form, request)


@pytest.mark.parametrize(
    ("own", "image", "version"),
    [
        ({}, "snaploom-spark-comet:latest", "4.1.4"),
        ({"accelerator": "NONE"}, "snaploom-spark:latest", "4.3.0"),
        ({"image": "own:1", "sparkVersion": "4.1.9"}, "own:1", "4.1.9"),
    ],
)
def test_accelerator_chooses_the_image_unless_a_resource_does(own, image, version):
    everywhere = OperatorSettings().spark.model_copy(update={"accelerator": Accelerator.COMET})
    spark = a_request(an_output(spark=own), settings=everywhere).spark
    assert (spark.image, spark.spark_version) == (image, version)


@every_spark_form
@pytest.mark.parametrize(
    ("own", "found"),
    [
        ({"image": "own:1"}, "sparkVersion 4.3.0, of the image own:1"),
        ({"sparkVersion": "4.10.0"}, "sparkVersion 4.10.0, of the image snaploom-spark-comet:"),
    ],
)
def test_accelerator_with_another_spark_is_refused(form, own, found):
    request = a_request(an_output(spark={"accelerator": "COMET", **own}))
    with pytest.raises(SparkSettingsRefused, match=found) as refused:
        written(form, request)
    assert "spec.run.spark.accelerator" in str(refused.value)


@every_spark_form
def test_misspelt_field_would_be_seen(form: ApplicationForm) -> None:
    manifest = written(form)
    manifest["spec"]["colour"] = "blue"
    driver, _ = templates(form, manifest)
    driver["spec"]["colour"] = "blue"
    assert len(schema_faults(form, manifest)) == 1
    with pytest.raises(kubernetes_validate.ValidationError):
        judge_pod(driver)


@pytest.mark.slow
@every_spark_form
@given(spark=model_data(SparkSettings))
@settings(deadline=None, max_examples=examples(50), suppress_health_check=[HealthCheck.too_slow])
def test_any_settings_give_an_object_that_the_crd_accepts(form, spark):
    administrator = merged_settings(SparkSettings.parse(spark), OperatorSettings().spark)
    manifest = written(form, a_request(settings=administrator))
    assert schema_faults(form, manifest) == []
    assert all(isinstance(v, str) for v in manifest["spec"].get("sparkConf", {}).values())
    for template in templates(form, manifest):
        judge_pod(template)


@every_spark_form
def test_every_pod_has_the_lists_of_the_administrator(form: ApplicationForm) -> None:
    allow = Allowances(formats=("xml",))
    named = {"envFrom": [{"configMapRef": {"name": "anything"}}]}
    request = a_request(an_output(spark={"podTemplate": named}), allow=allow)
    for template in templates(form, written(form, request)):
        variables = template["spec"]["containers"][0]["env"]
        (value,) = (entry["value"] for entry in variables if entry["name"] == ALLOW_VARIABLE)
        assert Allowances.from_environment({ALLOW_VARIABLE: value}) == allow


@every_spark_form
def test_lists_are_written_where_they_add_nothing(form: ApplicationForm) -> None:
    for template in templates(form, written(form)):
        names = [entry["name"] for entry in template["spec"]["containers"][0]["env"]]
        assert {ALLOW_VARIABLE, ALLOW_URL_VARIABLE} <= set(names)


@every_spark_form
def test_pods_of_a_run_know_each_other_and_show_nothing(form: ApplicationForm) -> None:
    conf = written(form)["spec"]["sparkConf"]
    assert conf.items() >= PROTECTION.items()
    assert schema_faults(form, written(form)) == []


@every_spark_form
def test_an_administrator_may_show_the_web_page(form: ApplicationForm) -> None:
    settings = OperatorSettings().spark.model_copy(
        update={"spark_conf": {"spark.ui.enabled": "true"}}
    )
    conf = written(form, a_request(settings=settings))["spec"]["sparkConf"]
    assert conf["spark.ui.enabled"] == "true"
    assert conf["spark.authenticate"] == "true"


@every_spark_form
@pytest.mark.parametrize("key", PROTECTION)
def test_a_resource_may_not_undo_it(form: ApplicationForm, key: str) -> None:
    with pytest.raises(SparkSettingsRefused):
        written(form, a_request(an_output(spark={"sparkConf": {key: "false"}})))


@every_spark_form
def test_envfrom_brings_nothing_that_changes_how_the_job_starts(form: ApplicationForm) -> None:
    named = {"envFrom": [{"configMapRef": {"name": "anything"}}]}
    request = a_request(an_output(spark={"podTemplate": named}))
    for template in templates(form, written(form, request)):
        variables = template["spec"]["containers"][0]["env"]
        found = {entry["name"]: entry["value"] for entry in variables}
        assert found.items() >= PINNED.items()
        judge_pod(template)


@every_spark_form
def test_what_an_administrator_gives_a_value_keeps_it(form: ApplicationForm) -> None:
    theirs = {
        "envFrom": [{"configMapRef": {"name": "x"}}],
        "env": [{"name": "PYTHONPATH", "value": "/own"}],
    }
    settings = merged_settings(
        SparkSettings.parse({"podTemplate": theirs}), OperatorSettings().spark
    )
    driver, _ = templates(form, written(form, a_request(settings=settings)))
    variables = driver["spec"]["containers"][0]["env"]
    assert [e["value"] for e in variables if e["name"] == "PYTHONPATH"] == ["/own"]
