"""Storage that fails under a run: nothing is published half, and the next run publishes it once."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.cluster.chaosnamespace import OUTPUT, PLACE, RUN, ChaosNamespace
from support.cluster.chart import NAMESPACE
from support.cluster.clusterkubectl import KubectlFailed
from support.cluster.clusternode import NODE
from support.cluster.wholeflights import in_bucket, secret_of, upload
from support.declared.shop import FIRST_DAY, SECOND_DAY
from support.servers.guardedproxy import Loss, lossy
from support.servers.s3servers import BUCKET, S3Server, running_versitygw
from support.storage.disks import small_disk

pytestmark = [pytest.mark.chaos, pytest.mark.node, pytest.mark.slow, pytest.mark.timeout(1200)]

OTHER = "outputdataset/other"
ENTRY = "/metadata/manifest/"
"""In the path of what commits a snapshot."""


def fill(disk: Path) -> Path:
    """A file that takes all that is left of a disk."""
    ballast = disk / "ballast"
    chaos = os.statvfs(disk)
    ballast.write_bytes(bytes(chaos.f_bavail * chaos.f_frsize))
    return ballast


def declare_in_bucket(chaos: ChaosNamespace, server: S3Server) -> None:
    add_day_to_bucket(chaos, server, FIRST_DAY)
    chaos.apply(*in_bucket([*chaos.sources(), chaos.output()], server, str(PLACE), "shop"))


def add_day_to_bucket(chaos: ChaosNamespace, server: S3Server, day: str) -> None:
    chaos.add_day(day)
    files = chaos.folder.glob(f"*/{day}.parquet")
    upload(server, {f"shop/{path.relative_to(chaos.folder)}": path for path in files})


def refusing(is_revoked: Callable[[], bool]) -> Loss:
    """Refuses to write what commits snapshots, as long as the keys are revoked."""

    def loss(method: str, path: str) -> str | None:
        return "403" if method == "PUT" and ENTRY in path and is_revoked() else None

    return loss


def test_full_volume_is_reported_and_its_run_retried_when_there_is_room(chaos):
    with small_disk(chaos.folder, "1m"):
        chaos.add_day(FIRST_DAY)
        ballast = fill(chaos.folder)
        chaos.declare()
        chaos.until_message("No space left on device")
        ballast.unlink()
        chaos.until_published(FIRST_DAY)
        chaos.kubectl("delete", "pods", "--all")


def test_two_outputs_never_share_a_folder(chaos: ChaosNamespace) -> None:
    chaos.declare()
    chaos.until_published(FIRST_DAY)
    other = chaos.output() | {"metadata": {"name": "other"}}
    with pytest.raises(KubectlFailed, match="OutputDataset/wide publishes to the same folder"):
        chaos.apply(other)
    with without_webhook(chaos):
        chaos.apply(other)
    chaos.until_message("OutputDataset/wide publishes to the same folder", resource=OTHER)
    chaos.check_rows(chaos.folder / "wide", [f"{FIRST_DAY}T00:00:00Z"])
    folder = other["spec"]["outputFolder"] | {"folderUri": f"file://{PLACE}/other/"}
    chaos.apply(other | {"spec": other["spec"] | {"outputFolder": folder}})
    chaos.until("the other output", lambda: chaos.condition(resource=OTHER).get("status") == "True")
    chaos.check_rows(chaos.folder / "other", [f"{FIRST_DAY}T00:00:00Z"])
    assert chaos.condition()["reason"] == "Published"


@contextmanager
def without_webhook(chaos: ChaosNamespace) -> Iterator[None]:
    """Store objects without a review, as where the webhook is off."""
    kind = "validatingwebhookconfigurations"
    (webhook,) = chaos.cluster_wide.list(kind)
    del webhook["metadata"]["resourceVersion"], webhook["metadata"]["uid"]
    webhook["metadata"].pop("managedFields", None)
    chaos.cluster_wide("delete", kind, webhook["metadata"]["name"])
    try:
        yield
    finally:
        chaos.cluster_wide("create", "--filename", "-", stdin=json.dumps(webhook))


def test_keys_revoked_in_the_middle_of_a_commit_publish_nothing(chaos, tmp_path):
    revoked = [False]
    address = chaos.own.whole.host
    published = tmp_path / "buckets" / BUCKET / "shop" / "wide"
    with (
        running_versitygw(tmp_path, address) as real,
        lossy(real, refusing(lambda: revoked[0]), address) as server,
    ):
        declare_in_bucket(chaos, server)
        chaos.until("the first snapshot", lambda: chaos.status().get("snapshotCount") == 1)
        revoked[0] = True
        add_day_to_bucket(chaos, server, SECOND_DAY)
        chaos.ask_for_run()
        chaos.until_message("may not be written with these credentials")
        chaos.check_rows(published, [f"{FIRST_DAY}T00:00:00Z"])
        revoked[0] = False
        chaos.until("the second snapshot", lambda: chaos.status().get("snapshotCount") == 2)
        chaos.check_rows(published, [f"{day}T00:00:00Z" for day in (FIRST_DAY, SECOND_DAY)])


def test_rotated_secret_is_reported_and_the_new_one_works(chaos, tmp_path):
    address = chaos.own.whole.host
    with running_versitygw(tmp_path, address) as server:
        declare_in_bucket(chaos, server)
        chaos.until("the first snapshot", lambda: chaos.status().get("snapshotCount") == 1)
    port = int(server.endpoint.rpartition(":")[2])
    with running_versitygw(tmp_path, address, port, secret="rotated-and-logged-nowhere") as rotated:
        add_day_to_bucket(chaos, rotated, SECOND_DAY)
        chaos.ask_for_run()
        chaos.until("a failure", lambda: bool(chaos.events("RunFailed")))
        chaos.messages += chaos.events("RunFailed")
        chaos.apply(secret_of(rotated))
        chaos.until("the second snapshot", lambda: chaos.status().get("snapshotCount") == 2)
    assert rotated.secret not in chaos.kubectl("get", "snaploom,events", "--output", "yaml")
    days = [f"{day}T00:00:00Z" for day in (FIRST_DAY, SECOND_DAY)]
    chaos.check_rows(tmp_path / "buckets" / BUCKET / "shop" / "wide", days)


NO_IMAGE = "registry.invalid/nobody/nothing:1"


def spark(**changes: object) -> dict[str, object]:
    return RUN["spark"] | changes


def test_image_that_is_missing_is_named_and_another_one_runs(chaos: ChaosNamespace) -> None:
    chaos.declare(spark=spark(image=NO_IMAGE), startTimeoutSeconds=20, retry={"limit": 0})
    chaos.until_message("ImagePull", NO_IMAGE)
    chaos.until("the time-out", lambda: "currentRun" not in chaos.status())
    message = chaos.note()
    assert chaos.status()["lastRun"]["reason"] == "StartTimeout"
    assert NO_IMAGE in message
    chaos.apply(chaos.output())
    chaos.until_published(FIRST_DAY)


def test_exceeded_quota_is_reported_and_the_run_retried(chaos: ChaosNamespace) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}}
    chaos.apply(quota | {"spec": {"hard": {"pods": "0"}}})
    chaos.until("the quota", lambda: "used" in chaos.status("resourcequota/none"))
    chaos.declare()
    chaos.until_message("exceeded quota: none")
    chaos.kubectl("delete", "resourcequota", "none")
    chaos.until_published(FIRST_DAY)


def test_secret_that_is_missing_is_named_and_the_run_goes_on_when_it_is_there(chaos):
    template = RUN["spark"]["podTemplate"] | {"envFrom": [{"secretRef": {"name": "keys"}}]}
    chaos.declare(spark=spark(podTemplate=template))
    chaos.until_message('secret "keys" not found')
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}}
    chaos.apply(secret | {"stringData": {"TOKEN": "anything"}})
    chaos.until_published(FIRST_DAY)
    assert chaos.status()["lastRun"]["attempt"] == 0


def test_config_map_of_a_run_cannot_be_edited_and_an_edited_report_is_ignored(chaos):
    chaos.declare()
    chaos.until_running()
    run = chaos.status()["currentRun"]["id"]
    with pytest.raises(KubectlFailed, match="immutable") as refused:
        edit(chaos, "bundle", run, "bundle.json")
    chaos.messages.append(refused.value.stderr.strip())
    chaos.until_published(FIRST_DAY)
    edit(chaos, "report", run, "report.json")
    chaos.run_again()
    chaos.until_published(FIRST_DAY, SECOND_DAY)


def edit(chaos: ChaosNamespace, role: str, run: str, key: str) -> None:
    """Change a ConfigMap of a run by hand."""
    which = f"--selector=snaploom.io/role={role},snaploom.io/run={run}"
    (name,) = chaos.kubectl("get", "configmaps", which, "--output", "name").split()
    lie = json.dumps({"data": {key: json.dumps({"phase": "Failed", "published": 99})}})
    chaos.kubectl("patch", name, "--type=merge", "--patch", lie)


def test_killed_driver_is_reported_and_the_run_retried(chaos: ChaosNamespace) -> None:
    chaos.declare()
    chaos.kill(chaos.until_running())
    chaos.until("an event of the failure", lambda: bool(chaos.events("RunFailed")))
    chaos.note()
    chaos.until_published(FIRST_DAY)
    last = chaos.status()["lastRun"]
    assert (last["phase"], last["published"], last["attempt"]) == ("Succeeded", 1, 1)


def test_killed_executor_is_replaced_and_the_run_ends_well(chaos: ChaosNamespace) -> None:
    spark = RUN["spark"] | {"executor": {"instances": 1}}
    chaos.declare(spark=spark)
    chaos.kill(chaos.until_running("executor"))
    chaos.until_published(FIRST_DAY)
    last = chaos.status()["lastRun"]
    assert (last["phase"], last["attempt"]) == ("Succeeded", 0)
    (run,) = chaos.applications()
    assert len(run["status"]["executorState"]) == 2


def test_drained_node_stops_everything_and_all_goes_on_when_it_is_back(chaos):
    chaos.declare()
    chaos.until_running()
    drained = ("drain", NODE, "--force", "--ignore-daemonsets", "--delete-emptydir-data")
    try:
        chaos.cluster_wide(*drained, "--timeout=120s")
        assert chaos.pods("driver") == []
    finally:
        chaos.cluster_wide("uncordon", NODE)
    chaos.own.whole.await_operator()
    chaos.until_published(FIRST_DAY)
    chaos.messages += chaos.events("RunFailed")
    chaos.run_again()
    chaos.until_published(FIRST_DAY, SECOND_DAY)


def test_application_deleted_by_hand_is_a_lost_run_that_is_done_again(chaos):
    chaos.declare()
    chaos.until_running()
    chaos.kubectl("delete", "sparkapplications", "--all")
    chaos.until("an event of the loss", lambda: bool(chaos.events("RunLost")))
    chaos.messages += chaos.events("RunLost")
    chaos.until_published(FIRST_DAY)
    assert chaos.status()["lastRun"]["attempt"] == 1
    assert chaos.kubectl("get", OUTPUT, "--no-headers").split()[1:3] == ["True", "Published"]


BEFORE_STATUS = {
    "matchConstraints": {
        "resourceRules": [
            {
                "apiGroups": ["snaploom.io"],
                "apiVersions": ["*"],
                "operations": ["UPDATE"],
                "resources": ["outputdatasets/status"],
            }
        ]
    },
    "validations": [
        {
            "expression": "!has(object.status.currentRun) || "
            "object.status.currentRun.phase in ['Queued', 'Submitting']"
        }
    ],
}
"""Refuses each status that shows a submitted run."""
_DAY = "2024-01-01T00:00:00Z"
SUBMITTED = {
    "currentRun": {"name": "x", "id": "x", "phase": "Submitted", "since": _DAY, "startedAt": _DAY}
}


def forbid_status(chaos: ChaosNamespace) -> None:
    """Keep the operator from writing down what it submitted, of an output that is there."""
    name = {"metadata": {"name": chaos.namespace}}
    api = {"apiVersion": "admissionregistration.k8s.io/v1"}
    here = {"matchLabels": {"kubernetes.io/metadata.name": chaos.namespace}}
    binding = {
        "policyName": chaos.namespace,
        "validationActions": ["Deny"],
        "matchResources": {"namespaceSelector": here},
    }
    chaos.cluster_wide.apply(
        api | name | {"kind": "ValidatingAdmissionPolicy", "spec": BEFORE_STATUS},
        api | name | {"kind": "ValidatingAdmissionPolicyBinding", "spec": binding},
    )
    # The API server learns of its policies from a watch.
    chaos.until("the policy in force", lambda: is_forbidden(chaos))


def is_forbidden(chaos: ChaosNamespace) -> bool:
    """Whether a status that shows a submission is refused."""
    status = ("--subresource=status", "--type=merge", "--patch", json.dumps({"status": SUBMITTED}))
    try:
        chaos.kubectl("patch", OUTPUT, *status, "--dry-run=server")
    except KubectlFailed as refused:
        return "ValidatingAdmissionPolicy" in refused.stderr
    return False


def allow_status(chaos: ChaosNamespace) -> None:
    kinds = "validatingadmissionpolicies,validatingadmissionpolicybindings"
    chaos.cluster_wide("delete", kinds, chaos.namespace)


def test_operator_killed_between_submit_and_status_submits_once(chaos: ChaosNamespace) -> None:
    chaos.declare(suspend=True)
    forbid_status(chaos)
    chaos.declare()
    chaos.until("an application", lambda: bool(chaos.applications()))
    assert chaos.status()["currentRun"]["phase"] == "Submitting"
    operator = ("delete", "pod", "--selector=app.kubernetes.io/component=operator")
    chaos.cluster_wide(*operator, "--namespace", NAMESPACE, "--grace-period=0", "--force")
    allow_status(chaos)
    chaos.until_published(FIRST_DAY)
    assert len(chaos.applications()) == 1
    assert chaos.status()["lastRun"]["attempt"] == 0


def test_spark_operator_that_is_away_is_waited_for(chaos: ChaosNamespace) -> None:
    spark_operator = chaos.own.spark_operator
    spark_operator.kill()
    chaos.declare()
    chaos.until_message("to pick up its application")
    spark_operator.start()
    chaos.until_running()
    spark_operator.kill()
    chaos.until("the end of the driver", lambda: not chaos.pods("driver"))
    spark_operator.start()
    chaos.until_published(FIRST_DAY)
    assert len(chaos.applications()) == 1


def test_api_server_that_is_killed_under_a_run_costs_nothing_but_time(chaos):
    chaos.declare()
    chaos.until_running()
    chaos.own.plane.apiserver.kill()
    chaos.own.plane.apiserver.start()
    chaos.own.plane.await_ready()
    chaos.until_published(FIRST_DAY)
    chaos.run_again()
    chaos.until_published(FIRST_DAY, SECOND_DAY)
