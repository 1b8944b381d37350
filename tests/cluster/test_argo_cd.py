"""The real Argo CD brings chart and resources from Git, as `docs/gitops` has them."""

import copy
import random
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import yaml
from cluster.gitopsplatform import (
    DATA,
    DEPLOYMENTS,
    EARLY,
    OPERATOR,
    SHOP,
    SHUFFLED,
    Platform,
    Raw,
    a_repository,
    shop,
)
from support.cluster.argocd import (
    State,
    health,
    healths,
    is_at,
    is_synced,
    is_well,
    running_argo_cd,
    states,
)
from support.cluster.chart import NAMESPACE
from support.cluster.cluster import running_control_plane
from support.cluster.sparkcrds import install_spark_crds
from support.declared.declarations import put
from support.operator.operatorharness import is_ready

from snaploom.models.common import GROUP, VERSION

pytestmark = [pytest.mark.argo_cd, pytest.mark.slow]

CRDS, CHART, RESOURCES = "snaploom-crds", "snaploom-operator", "shop"
ROOT = "snaploom"
STATES = "states"
STAYS = "tests.snaploom.io/stays"
"""A finalizer of nobody: what has it stays in deletion."""
DELETED = {"status": "Progressing", "message": "Pending deletion"}
"""Argo CD's own message, before it runs any Lua."""
RECONCILES, RUNS = 20, 5
OUTPUT, INDEX = ("OutputDataset", "orders-wide"), ("SkippingIndex", "orders-wide")


@dataclass(frozen=True)
class Beginning:
    """What Argo CD showed while the first Applications were synced."""

    early: str
    """Argo CD's message about resources that came before their kinds."""
    before_roll_out: dict[str, str]
    """Health of the Applications that were there before the operator had a pod."""


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A cluster with nothing but Argo CD and the kinds of the Spark operator."""
    folder = tmp_path_factory.mktemp("gitops")
    with running_control_plane(folder / "plane") as plane, running_argo_cd(plane) as argo:
        install_spark_crds(plane.kubectl)
        for namespace in (EARLY, SHUFFLED, STATES):
            plane.kubectl("create", "namespace", namespace)
        found = Platform(plane, argo, a_repository(folder / "repository", plane.url))
        yield found
        found.close()


@pytest.fixture(scope="module")
def beginning(platform: Platform) -> Beginning:
    """Sync everything, the resources of one namespace before their kinds."""
    applications = platform.applications
    automated = {"automated": {}, "retry": {"limit": -1, "backoff": {"duration": "5s"}}}
    options = ["ServerSideApply=true", "SkipDryRunOnMissingResource=true"]
    platform.apply_application(EARLY, automated | {"syncOptions": options})
    early = applications.wait_for(EARLY, is_retried)
    platform.apply_root()
    applications.wait_for(CHART, is_synced)
    before = {name: health(applications.get(name)) for name in (CRDS, CHART, RESOURCES)}
    platform.roll_out()
    platform.start_operator()
    for name in (ROOT, CRDS, CHART, RESOURCES, EARLY):
        applications.wait_for(name, is_well)
    return Beginning(early["status"]["operationState"]["message"], before)


def is_retried(app: Raw) -> bool:
    return app.get("status", {}).get("operationState", {}).get("retryCount", 0) > 0


def conditions(platform: Platform, namespace: str) -> dict[tuple[str, str], dict[str, Raw]]:
    """Status and reason of every condition in the shop; messages name runs, and are left out."""
    compared = ("status", "reason")
    return {
        (raw["kind"], raw["metadata"]["name"]): {
            each["type"]: {key: each[key] for key in compared}
            for each in platform.get(raw["kind"], raw["metadata"]["name"], namespace)["status"][
                "conditions"
            ]
        }
        for raw in shop()
    }


def test_one_application_brings_everything_in_waves(platform, beginning):
    assert beginning.before_roll_out == {CRDS: "Healthy", CHART: "Progressing", RESOURCES: ""}
    found = healths(platform.applications.get(RESOURCES))
    assert {each["status"] for each in found.values()} == {"Healthy"}
    assert found.keys() == {(raw["kind"], raw["metadata"]["name"]) for raw in shop()}


def test_resources_that_come_before_their_kinds_end_in_the_same_state(platform, beginning):
    assert "no matches for kind" in beginning.early
    assert conditions(platform, EARLY) == conditions(platform, DATA)


def test_resources_one_by_one_in_any_order_end_in_the_same_state(platform, beginning):
    platform.apply_application(SHUFFLED, {"syncOptions": ["ServerSideApply=true"]})
    for raw in random.Random(7).sample(shop(), len(shop())):
        one = {"group": GROUP, "kind": raw["kind"], "name": raw["metadata"]["name"]}
        ended = platform.applications.sync(SHUFFLED, resources=[one])
        assert ended["status"]["operationState"]["phase"] == "Succeeded"
    platform.applications.wait_for(SHUFFLED, is_well)
    assert conditions(platform, SHUFFLED) == conditions(platform, DATA)


def test_nothing_differs_from_git_while_runs_come_and_go(platform, beginning):
    applications, names = platform.applications, (CRDS, CHART, RESOURCES)
    before = {name: applications.get(name)["status"]["history"] for name in names}
    counted = platform.argo.figure("argocd_app_reconcile_count")
    with applications.watched() as seen:
        for number in range(RUNS):
            run_anew(platform, f"again-{number}")
            for _ in range(RECONCILES // RUNS):
                applications.refresh(*names)
    assert platform.argo.figure("argocd_app_reconcile_count") - counted >= RECONCILES * len(names)
    assert {state for name, state in seen if name in names} == {"Synced"}
    assert {name: applications.get(name)["status"]["history"] for name in names} == before


def run_anew(platform: Platform, token: str) -> None:
    last = platform.get(*OUTPUT)["status"]["lastRun"]["id"]
    platform.patch(*OUTPUT, {"metadata": {"annotations": {"snaploom.io/run": token}}})
    platform.wait_for(*OUTPUT, lambda raw: raw["status"]["lastRun"]["id"] != last)


def test_health_of_every_state_of_every_kind(platform: Platform) -> None:
    expected = {}
    for number, state in enumerate(states()):
        raw = resource_in(state, f"state-{number}")
        file = platform.repository.path(f"{STATES}/{number}.yaml")
        file.write_text(yaml.safe_dump(raw), "utf-8")
        is_deleted = "deletionTimestamp" in state.resource["metadata"]
        expected[state.kind, f"state-{number}"] = DELETED if is_deleted else state.health
    platform.repository.commit("Every state of every kind")
    platform.apply_application(STATES, {"syncOptions": ["ServerSideApply=true"]})
    platform.applications.refresh(STATES)
    platform.applications.sync(STATES)
    for number, state in enumerate(states()):
        bring_into(platform, state, f"state-{number}")
    platform.applications.wait_for(STATES, lambda app: healths(app) == expected)


def resource_in(state: State, name: str) -> Raw:
    """What Git has of a resource that will be in a state."""
    raw = next(copy.deepcopy(each) for each in shop() if each["kind"] == state.kind)
    annotations = state.resource["metadata"].get("annotations", {})
    raw["metadata"] = {"name": name, "annotations": annotations, "finalizers": [STAYS]}
    for path, value in state.resource["spec"].items():
        put(raw["spec"], path, value)
    return raw


def bring_into(platform: Platform, state: State, name: str) -> None:
    """Bring a resource into a state, in place of operator and people."""
    metadata = state.resource["metadata"]
    if "status" in state.resource:
        behind = metadata["generation"] - state.resource["status"]["observedGeneration"]
        generation = platform.get(state.kind, name, STATES)["metadata"]["generation"]
        status = state.resource["status"] | {"observedGeneration": generation - behind}
        platform.patch(state.kind, name, {"status": status}, STATES, status=True)
    if "deletionTimestamp" in metadata:
        platform.plane.kubectl("delete", state.kind, name, "--namespace", STATES, "--wait=false")


def test_actions_are_offered_and_done(platform: Platform, beginning: Beginning) -> None:
    platform.argo.serve()
    for resource, action in ((OUTPUT, "run"), (INDEX, "refresh")):
        last = platform.get(*resource)["status"]["lastRun"]["id"]
        assert offered(platform, *resource) == {action, "pause"}
        act(platform, *resource, action)
        platform.wait_for(*resource, lambda raw, last=last: raw["status"]["lastRun"]["id"] != last)
        act(platform, *resource, "pause")
        platform.applications.wait_for(
            RESOURCES, lambda app, of=resource: healths(app)[of]["status"] == "Suspended"
        )
        assert offered(platform, *resource) == {"resume"}
        act(platform, *resource, "resume")
        platform.applications.wait_for(RESOURCES, is_well)


def offered(platform: Platform, kind: str, name: str) -> set[str]:
    found = platform.argo.request(f"{RESOURCES}/resource/actions", **named(kind, name))
    return {each["name"] for each in found["actions"] if not each.get("disabled", False)}


def act(platform: Platform, kind: str, name: str, action: str) -> None:
    body = named(kind, name) | {"name": RESOURCES, "action": action}
    platform.argo.request(f"{RESOURCES}/resource/actions/v2", body)


def named(kind: str, name: str) -> dict[str, str]:
    return {
        "namespace": DATA, "resourceName": name, "kind": kind, "group": GROUP, "version": VERSION,
    }  # fmt: skip


def test_what_the_operator_makes_is_shown_below_its_owner(platform, beginning):
    below = parents(platform, EARLY)
    for kind in ("SparkApplication", "ConfigMap"):
        assert {(kind, *OUTPUT), (kind, *INDEX)} <= below


def test_a_project_of_only_our_kinds_hides_the_rest(platform, beginning):
    assert parents(platform, RESOURCES) == set()


def parents(platform: Platform, application: str) -> set[tuple[str, str, str]]:
    """Kind of each resource that has an owner, with kind and name of that one."""
    platform.argo.serve()
    nodes = platform.argo.request(f"{application}/resource-tree")["nodes"]
    return {
        (each["kind"], parent["kind"], parent["name"])
        for each in nodes
        for parent in each.get("parentRefs", ())
    }


def test_a_change_by_hand_is_undone(platform: Platform, beginning: Beginning) -> None:
    platform.patch("DataSource", "orders", {"spec": {"hdfsLike": {"format": "csv"}}})
    platform.plane.kubectl("delete", "datarelationship", "customer", "--namespace", DATA)
    platform.wait_for(
        "DataSource", "orders", lambda raw: raw["spec"]["hdfsLike"]["format"] == "parquet"
    )
    platform.wait_for("DataRelationship", "customer", bool)
    platform.applications.wait_for(RESOURCES, is_well)


def test_a_field_that_git_does_not_set_is_kept(platform: Platform, beginning: Beginning) -> None:
    applications = platform.applications
    for is_suspended, shown in ((True, "Suspended"), (False, "Healthy")):
        platform.patch(*OUTPUT, {"spec": {"run": {"suspend": is_suspended}}})
        applications.wait_for(RESOURCES, lambda app, to=shown: health(app) == to)
        applications.refresh(RESOURCES)
        assert is_synced(applications.get(RESOURCES))
        assert platform.get(*OUTPUT)["spec"]["run"]["suspend"] is is_suspended


def test_what_leaves_git_leaves_the_cluster(platform: Platform, beginning: Beginning) -> None:
    repository = platform.repository
    outputs = repository.folder / SHOP / "outputs.yaml"
    whole = outputs.read_text("utf-8")
    outputs.write_text(whole.split("---\n")[0], "utf-8")
    commit = repository.commit("Without the index")
    platform.applications.refresh(RESOURCES)
    platform.applications.wait_for(RESOURCES, is_at(commit))
    assert platform.get(*INDEX) == {}
    assert platform.get(*OUTPUT)["status"]["lastRun"]["phase"] == "Succeeded"
    outputs.write_text(whole, "utf-8")
    commit = repository.commit("With the index")
    platform.applications.refresh(RESOURCES)
    platform.applications.wait_for(RESOURCES, lambda app: is_at(commit)(app) and is_well(app))


def test_an_older_commit_is_brought_back(platform: Platform, beginning: Beginning) -> None:
    applications, before = platform.applications, platform.get(*OUTPUT)["spec"]
    number = applications.get(RESOURCES)["status"]["history"][-1]["id"]
    rename_field(platform, "customer", "buyer")
    applications.wait_for(RESOURCES, is_well)
    assert platform.get(*OUTPUT)["spec"] != before
    applications.change(RESOURCES, {"spec": {"syncPolicy": {"automated": None}}})
    platform.argo.serve()
    platform.argo.request(f"{RESOURCES}/rollback", {"id": number, "prune": True})
    platform.wait_for(*OUTPUT, lambda raw: raw["spec"] == before and is_ready(raw))
    assert applications.get(RESOURCES)["status"]["sync"]["status"] == "OutOfSync"
    rename_field(platform, "buyer", "customer")  # and the root switches the sync on again
    applications.wait_for(RESOURCES, is_well)


def rename_field(platform: Platform, old: str, new: str) -> None:
    """Commit a change of the output, and let it arrive."""
    file = f"{SHOP}/outputs.yaml"
    platform.repository.change(file, f"fieldName: {old}}}", f"fieldName: {new}}}")
    commit = platform.repository.commit(f"{old} is called {new}")
    platform.applications.refresh(ROOT, RESOURCES)
    platform.applications.wait_for(RESOURCES, is_at(commit))


def test_a_commit_upgrades_the_chart(platform: Platform, beginning: Beginning) -> None:
    repository, applications = platform.repository, platform.applications
    repository.change(
        OPERATOR, "repository: registry.example/snaploom-operator", "repository: other.example/it"
    )
    repository.change("charts/snaploom/Chart.yaml", "appVersion: ", "appVersion: 9.")
    commit = repository.commit("Another image, and another version")
    applications.refresh(ROOT)

    # The chart's commit and its values come one after the other, from two applications.
    def is_rolled_out(app: Raw) -> bool:
        is_changed = image_of_operator(platform).startswith("other.example/it:9.")
        return is_changed and is_at(commit)(app) and health(app) == "Progressing"

    applications.wait_for(CHART, is_rolled_out)
    platform.roll_out()
    applications.wait_for(CHART, is_well)


def image_of_operator(platform: Platform) -> str:
    stored = platform.objects.get(DEPLOYMENTS, "snaploom-operator", NAMESPACE)
    (container,) = stored["spec"]["template"]["spec"]["containers"]
    return str(container["image"])
