"""What `run.spark` may contain: settings of Spark, pods and images, by lists."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyspark
import pytest
from support.operator.runrequests import an_output

from snaploom.models.allowances import Allowances
from snaploom.models.run import SparkSettings
from snaploom.policy.pods import ALLOWED, ANNOTATIONS, BEYOND, conf_reason, refusals, spark_findings
from snaploom.policy.variables import FAMILIES, NAMES, PINNED, prefix_reason, variable_reason


def refused(allow: Allowances | None = None, **spark: Any) -> list[str]:
    settings = SparkSettings.parse(spark)
    return [one.found for one in refusals(settings, allow or Allowances())]


def of_pods(allow: Allowances | None = None, **template: Any) -> list[str]:
    return refused(allow, podTemplate=template)


@pytest.mark.parametrize(
    "key",
    [
        *BEYOND,
        "spark.authenticate.secret",
        "spark.eventLog.dir",
        "spark.hadoop.fs.file.impl",
        "spark.hadoop.fs.s3a.access.key",
        "spark.hadoop.fs.s3a.secret.key",
        "spark.hadoop.fs.s3a.impl",
        "spark.hadoop.fs.s3a.bucket.looms.secret.key",
        "spark.hadoop.hive.metastore.uris",
        "spark.hadoop.javax.jdo.option.ConnectionURL",
        "spark.hadoop.parquet.crypto.factory.class",
        "spark.io.encryption.enabled",
        "spark.kryo.registrator",
        "spark.metrics.conf.driver.sink.x.class",
        "spark.network.crypto.enabled",
        "spark.pyspark.python",
        "spark.redaction.regex",
        "spark.shuffle.sort.io.plugin.class",
        "spark.sql.adaptive.customCostEvaluatorClass",
        "spark.sql.ansi.doubleQuotedIdentifiers",
        "spark.sql.catalog.mine",
        "spark.sql.hive.metastore.jars",
        "spark.sql.legacy.setopsPrecedence.enabled",
        "spark.sql.optimizer.excludedRules",
        "spark.sql.parquet.output.committer.class",
        "spark.sql.parser.escapedStringLiterals",
        "spark.sql.parser.quotedRegexColumnNames",
        "spark.sql.runSQLOnFiles",
        "spark.sql.variable.substitute",
        "spark.ssl.enabled",
        "spark.ui.enabled",
        "spark.ui.filters",
        "spark.submit.deployMode",
        "spark.submit.pyFiles",
        "spark.jars.packages",
        "spark.jars.ivySettings",
        "spark.app.id",
        "spark.kerberos.keytab",
        "spark.hadoop.hadoop.security.authentication",
        "spark.security.credentials.hive.enabled",
        "spark.kubernetes.namespace",
        "spark.kubernetes.context",
        "spark.kubernetes.file.upload.path",
        "spark.kubernetes.container.image",
        "spark.kubernetes.driver.container.image",
        "spark.kubernetes.executor.container.image",
        "spark.kubernetes.authenticate.oauthToken",
        "spark.kubernetes.authenticate.driver.serviceAccountName",
        "spark.kubernetes.authenticate.executor.serviceAccountName",
        "spark.kubernetes.authenticate.submission.oauthTokenFile",
        "spark.kubernetes.driver.podTemplateFile",
        "spark.kubernetes.executor.podTemplateFile",
        "spark.kubernetes.driver.pod.name",
        "spark.kubernetes.driver.pod.featureSteps",
        "spark.kubernetes.executor.pod.featureSteps",
        "spark.kubernetes.allocation.pods.allocator",
        "spark.kubernetes.driver.master",
        "spark.kubernetes.driver.secrets.token",
        "spark.kubernetes.driver.secretKeyRef.TOKEN",
        "spark.kubernetes.driver.volumes.hostPath.root.mount.path",
        "spark.kubernetes.executor.volumes.hostPath.root.options.path",
        "spark.kubernetes.driver.label.snaploom.io/run",
        "spark.kubernetes.driver.securityContext.allowPrivilegeEscalation",
        "spark.kubernetes.executor.scheduler.name",
        "spark.kubernetes.somethingNew",
        "spark.driver.memory",
        "spark.executor.instances",
        "spark.dynamicAllocation.enabled",
        "spark.jarsOfSomebody",
        "spark.masterful",
        "spark.sql.a=b --conf spark.master",
        "spark.sql.a\nspark.master",
        "spark.sql.a b",
        " spark.master",
        "spark",
        "spark.",
        "hive.metastore.uris",
        "--master",
        "",
    ],
)
def test_a_key_that_nobody_judged_harmless_is_refused(key: str) -> None:
    assert refused(sparkConf={key: "1"}) == [key]


@pytest.mark.parametrize("key", [key for group in ALLOWED for key in group.keys])
def test_an_allowed_key_is_not_among_those_with_a_reason_against_them_by_name(key: str) -> None:
    assert key not in BEYOND


@pytest.mark.parametrize("key", [key for group in ALLOWED for key in group.keys])
@pytest.mark.parametrize("value", ["com.example.Miner", "/etc/passwd", "http://169.254.169.254/"])
def test_no_key_takes_a_class_a_path_and_the_metadata_server(key: str, value: str) -> None:
    is_a_server = key.endswith(".endpoint") and value == "com.example.Miner"
    if key != "spark.scheduler.pool" and not is_a_server:
        assert conf_reason(key, value) != ""


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.driver.extraJavaOptions", "-XX:+UseG1GC -XX:MaxGCPauseMillis=200"),
        ("spark.executor.extraJavaOptions", "-Duser.timezone=UTC"),
        ("spark.hadoop.fs.s3a.bucket.looms.endpoint", "https://minio.data.svc:9000"),
        ("spark.hadoop.fs.s3a.endpoint", "http://10.244.0.1:9000"),
        ("spark.serializer", "org.apache.spark.serializer.KryoSerializer"),
        ("spark.sql.autoBroadcastJoinThreshold", "-1"),
        ("spark.sql.session.timeZone", "Europe/Berlin"),
        ("spark.executor.memoryOverhead", "1.5g"),
        ("spark.hadoop.fs.s3a.endpoint", "http://minio.storage:9000"),
        ("spark.hadoop.fs.s3a.endpoint", "http://127.0.0.1:9000"),
        ("spark.hadoop.fs.s3a.endpoint", "10.1.2.3"),
        ("spark.executorEnv.LANG", "C"),
        ("spark.sql.shuffle.partitions", "1"),
        ("spark.driver.memoryOverhead", "1"),
        ("spark.kubernetes.driver.request.cores", "1"),
        ("spark.kubernetes.executor.limit.cores", "1"),
        ("spark.kubernetes.allocation.batch.size", "1"),
        ("spark.kubernetes.memoryOverheadFactor", "1"),
        ("spark.dynamicAllocation.executorIdleTimeout", "1"),
    ],
)
def test_harmless_values_pass(key: str, value: str) -> None:
    assert refused(sparkConf={key: value}) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.driver.extraJavaOptions", "-javaagent:/data/x.jar"),
        ("spark.driver.extraJavaOptions", "-XX:OnOutOfMemoryError=id"),
        ("spark.driver.extraJavaOptions", "-XX:Flags=/data/flags"),
        ("spark.driver.extraJavaOptions", "-XX:+UseG1GC\n@/data/options"),
        ("spark.executor.extraJavaOptions", "-Dlog4j.configurationFile=http://x/"),
        ("spark.hadoop.fs.s3a.endpoint", "http://169.254.169.254"),
        ("spark.hadoop.fs.s3a.endpoint", "http://2852039166"),
        ("spark.hadoop.fs.s3a.endpoint", "http://0xa9fea9fe/"),
        ("spark.hadoop.fs.s3a.endpoint", "http://[fe80::1]"),
        ("spark.hadoop.fs.s3a.endpoint", "http://[::ffff:169.254.169.254]"),
        ("spark.hadoop.fs.s3a.endpoint", "http://169.254.169.254.:80"),
        ("spark.hadoop.fs.s3a.endpoint", "http://[fd00:ec2::254]"),
        ("spark.hadoop.fs.s3a.endpoint", "http://100.100.100.200"),
        ("spark.hadoop.fs.s3a.bucket.mine.endpoint", "metadata.google.internal"),
        ("spark.executorEnv.PS4", "$(id)"),
        ("spark.hadoop.fs.s3a.endpoint", "http://user:password@host"),
        ("spark.hadoop.fs.s3a.aws.credentials.provider", "com.example.Provider"),
        ("spark.serializer", "com.example.Serializer"),
        ("spark.io.compression.codec", "com.example.Codec"),
        ("spark.executorEnv.LD_PRELOAD", "x"),
        ("spark.sql.shuffle.partitions", "${spark.driver.host}"),
        ("spark.executorEnv.LANG", "${env:AWS_SECRET_ACCESS_KEY}"),
        ("spark.executorEnv.LANG", "x${system:user.home}"),
        ("spark.executorEnv.LANG", "a\0b"),
    ],
)
def test_hostile_values_of_harmless_keys_are_refused(key: str, value: str) -> None:
    assert refused(sparkConf={key: value}) == [key]


def test_a_key_that_an_administrator_added_passes() -> None:
    allow = Allowances(spark_conf=("spark.jars", "spark.sql.catalog."))
    conf = {"spark.jars": "/x.jar", "spark.sql.catalog.a": "X", "spark.sql.catalogX": "1"}
    assert refused(allow, sparkConf=conf) == ["spark.sql.catalogX"]


def test_an_addition_does_not_let_a_field_be_overruled_or_the_submitters_variables_be_read():
    allow = Allowances(spark_conf=("spark.",))
    conf = {"spark.executor.memory": "1g", "spark.x": "${env:KEY}", "spark.y=z": "1"}
    assert refused(allow, sparkConf=conf) == sorted(conf)


@pytest.mark.parametrize(
    ("spark", "listed"),
    [
        ({"sparkConf": {"spark.plugins": "x"}}, "sparkConf=spark.plugins"),
        ({"podTemplate": {"annotations": {"a.io/b": "x"}}}, "annotations=a.io/b"),
        ({"podTemplate": {"labels": {"a.io/b": "x"}}}, "annotations=a.io/b"),
    ],
)
def test_the_message_names_the_list(spark: dict[str, Any], listed: str) -> None:
    (finding,) = spark_findings(an_output(spark=spark))
    name, _, entry = listed.partition("=")
    for part in (f"'{entry}'", f"allow.{name}", f"--allow {listed}"):
        assert part in finding.hint
    assert spark_findings(an_output(spark=spark), Allowances.of([listed])) == ()


def test_the_message_of_an_image_names_the_list() -> None:
    output, none = an_output(spark={"image": "evil/miner:1"}), Allowances(images=())
    (finding,) = spark_findings(output, none)
    assert "allow.images" in finding.hint
    assert finding.path == "spec.run.spark.image"


@pytest.mark.parametrize(
    ("pattern", "image", "passes"),
    [
        ("*", "evil/miner:1", True),
        ("registry.example/*", "registry.example/a/b:1", True),
        ("registry.example/*", "registry.example.evil/a", False),
        ("registry.example/*", "evil/registry.example/a", False),
        ("registryXexample/a", "registry.example/a", False),
        ("registry.example/a@sha256:*", "registry.example/a:latest", False),
        ("registry.example/a", "registry.example/a\nx", False),
    ],
)
def test_images_are_held_to_patterns(pattern: str, image: str, passes: bool) -> None:
    assert (refused(Allowances(images=(pattern,)), image=image) == []) is passes


@pytest.mark.parametrize("name", sorted({*NAMES, *PINNED} | {f"{one}X" for one in FAMILIES}))
def test_a_variable_that_changes_how_the_job_starts_is_refused(name: str) -> None:
    assert of_pods(env=[{"name": name, "value": "x"}]) == [name]


@pytest.mark.parametrize(
    "name", ["AWS_REGION", "DB_PASSWORD", "HTTPS_PROXY", "TZ", "SNAPLOOM_DEBUG"]
)
def test_a_users_own_variable_passes(name: str) -> None:
    assert of_pods(env=[{"name": name, "value": "x"}]) == []


@pytest.mark.parametrize("name", sorted({*NAMES} - PINNED.keys() | {f"{one}X" for one in FAMILIES}))
def test_no_prefix_of_a_refused_variable_passes(name: str) -> None:
    for cut in range(1, len(name) + 1):
        assert prefix_reason(name[:cut]) != "", name[:cut]


@pytest.mark.parametrize("prefix", [None, "", "AWS_", "DB_", "my_"])
def test_an_ordinary_prefix_passes(prefix: str | None) -> None:
    source = {"secretRef": {"name": "keys"}} | ({} if prefix is None else {"prefix": prefix})
    assert of_pods(envFrom=[source]) == []


@pytest.mark.parametrize("prefix", ["SNAPLOOM_ALLOW", "SNAP", "SPARK_", "LD_", "JAVA_TOOL_", "P"])
def test_a_prefix_that_could_become_one_is_refused(prefix: str) -> None:
    assert of_pods(envFrom=[{"configMapRef": {"name": "x"}, "prefix": prefix}]) == [prefix]


@pytest.mark.parametrize("name", PINNED)
def test_every_pinned_variable_is_refused_by_name_as_well(name: str) -> None:
    assert variable_reason(name) != ""


@pytest.mark.parametrize(
    "key",
    [
        "apparmor.security.beta.kubernetes.io/pod",
        "container.apparmor.security.beta.kubernetes.io/spark-kubernetes-driver",
        "eks.amazonaws.com/role-arn",
        "iam.amazonaws.com/role",
        "io.kubernetes.cri-o.Devices",
        "io.katacontainers.config.hypervisor.kernel_params",
        "k8s.v1.cni.cncf.io/networks",
        "kubernetes.io/egress-bandwidth",
        "linkerd.io/inject",
        "run.oci.hooks.stdin",
        "seccomp.security.alpha.kubernetes.io/pod",
        "sidecar.istio.io/inject",
        "sidecar.istio.io/userVolume",
        "vault.hashicorp.com/agent-inject",
        "vault.hashicorp.com/role",
    ],
)
def test_an_annotation_that_other_software_acts_on_is_refused(key: str) -> None:
    assert of_pods(annotations={key: "x"}) == [key]
    assert of_pods(Allowances(annotations=(key,)), annotations={key: "x"}) == []


def test_a_whole_prefix_of_annotations_can_be_added() -> None:
    allow = Allowances(annotations=("example.com/",))
    keys = {"example.com/a": "1", "example.com.evil/a": "1"}
    assert of_pods(allow, annotations=keys) == ["example.com.evil/a"]


@pytest.mark.parametrize("key", [*ANNOTATIONS, "team", "cost-center"])
def test_a_harmless_annotation_passes(key: str) -> None:
    values = {"prometheus.io/path": "/metrics", "prometheus.io/port": "4040"}
    value = values.get(key, "https" if key.endswith("scheme") else "true")
    assert of_pods(annotations={key: value}) == []


def test_a_harmless_annotation_with_a_hostile_value_is_refused() -> None:
    hostile = {"prometheus.io/port": "80@elsewhere", "prometheus.io/path": "/a?x=1"}
    assert of_pods(annotations=hostile) == sorted(hostile)


@pytest.mark.parametrize(
    "key",
    [
        "azure.workload.identity/use",
        "sidecar.istio.io/inject",
        "admission.datadoghq.com/enabled",
        "app.kubernetes.io/instance",
        "snaploom.io/run",
        "spark-role",
    ],
)
def test_a_label_that_other_software_acts_on_is_refused(key: str) -> None:
    assert of_pods(labels={key: "x"}) == [key]


def test_our_labels_cannot_be_added() -> None:
    allow = Allowances(annotations=("snaploom.io/",))
    assert of_pods(allow, labels={"snaploom.io/run": "x"}) == ["snaploom.io/run"]


@pytest.mark.parametrize(
    "path",
    [
        "/usr/bin",
        "/opt/snaploom/code",
        "/opt/spark/jars",
        "/opt",
        "/opt/spark/work-dir/../jars",
        "/etc/ld.so.preload",
        "/etc",
        "/var/run/secrets/kubernetes.io/serviceaccount",
        "/var/run",
        "/proc/self",
        "/lib64",
    ],
)
def test_a_volume_over_programs_and_tokens_is_refused(path: str) -> None:
    assert of_pods(volumeMounts=[{"name": "v", "mountPath": path}]) == [path]


@pytest.mark.parametrize(
    "path", ["/tmp", "/opt/spark/work-dir", "/opt/drivers", "/data", "/etc/ssl/certs/own", "/mnt/x"]
)
def test_a_volume_elsewhere_passes(path: str) -> None:
    assert of_pods(volumeMounts=[{"name": "v", "mountPath": path}]) == []


@pytest.mark.parametrize(
    ("template", "found"),
    [
        ({"priorityClassName": "system-node-critical"}, "system-node-critical"),
        ({"nodeSelector": {"node-role.kubernetes.io/control-plane": ""}},
         "node-role.kubernetes.io/control-plane"),
        ({"tolerations": [{"operator": "Exists"}]}, "every taint"),
        ({"tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}]},
         "node-role.kubernetes.io/control-plane"),
    ],
)  # fmt: skip
def test_a_way_to_nodes_of_the_cluster_itself_is_refused(template, found):
    assert of_pods(**template) == [found]


def test_ordinary_scheduling_passes() -> None:
    toleration = {"key": "spot", "value": "yes", "effect": "NoSchedule"}
    template: dict[str, Any] = {
        "tolerations": [toleration],
        "nodeSelector": {"disk": "ssd", "topology.kubernetes.io/zone": "a"},
        "priorityClassName": "batch",
    }
    assert of_pods(**template) == []


def test_a_long_name_is_cut_in_messages() -> None:
    (finding,) = spark_findings(an_output(spark={"sparkConf": {"spark." + "a" * 500: "1"}}))
    assert len(str(finding)) < 2_000


@pytest.mark.parametrize("text", [" " * 8_000 + "x", "-XX:+UseG1GC " * 600 + "x", "1" * 8_192])
def test_long_values_are_judged_at_once(text: str) -> None:
    begun = time.process_time()
    for group in ALLOWED:
        for key in group.keys:
            conf_reason(key, text)
    assert time.process_time() - begun < 1.0


# Who may speak to a driver from its own machine: nobody without the token of its gateway.


PROGRAM = str(Path(__file__).with_name("gateway.py"))
SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"
LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
"""127.0.0.1 and ::1, as the kernel writes them."""
WAYS: dict[str, Sequence[str]] = {
    "laptop": (sys.executable,),
    "submitted": (
        str(SUBMIT),
        "--master=local[1]",
        "--conf=spark.driver.bindAddress=127.0.0.1",
        "--conf=spark.driver.host=127.0.0.1",
        "--conf=spark.ui.enabled=false",
    ),
}


@pytest.fixture(scope="module", params=WAYS)
def driver(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What a driver reported of its gateway, and all that it printed."""
    report = tmp_path_factory.mktemp("gateway") / "report.json"
    command = [*WAYS[request.param], PROGRAM, str(report)]
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "SNAPLOOM_DEBUG": "1"}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    return json.loads(report.read_text()) | {"printed": done.stdout + done.stderr}


def test_a_client_without_the_token_learns_nothing(driver: Any) -> None:
    assert driver["version"] not in driver["answer"]
    assert not driver["answer"].startswith("!y")


def test_the_token_is_in_no_argument_setting_or_log(driver: Any) -> None:
    assert len(driver["token"]) >= 32
    assert (driver["isInArguments"], driver["isInSettings"]) == (False, False)
    assert driver["token"] not in driver["printed"]


def test_a_driver_on_a_laptop_listens_at_its_own_machine_only(driver: Any) -> None:
    assert driver["listening"]
    assert set(driver["listening"]) <= LOOPBACK
