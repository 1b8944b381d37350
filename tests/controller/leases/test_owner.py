"""The lease goes with the account of the operator, which the chart takes away."""

import base64
import json

import pytest
from support.operator.clusters import a_config_map, until_gone

from snaploom_operator.cluster.client import account_reference
from snaploom_operator.cluster.lease import LeaderElector
from snaploom_operator.cluster.port import CONFIG_MAPS, LEASES

OWNER = {"apiVersion": "v1", "kind": "ServiceAccount", "name": "loom", "uid": "0a-1b"}
CLAIMS = {
    "kubernetes.io": {"namespace": "here", "serviceaccount": {"name": "loom", "uid": "0a-1b"}}
}


def token(folder, claims):
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    path = folder / "token"
    path.write_text(f"head.{payload}.signature")
    return path


def test_token_gives_the_account(tmp_path):
    assert account_reference("here", token(tmp_path, CLAIMS)) == OWNER


def test_account_of_another_namespace_owns_nothing_here(tmp_path):
    assert account_reference("elsewhere", token(tmp_path, CLAIMS)) is None


@pytest.mark.parametrize("claims", [[], {}, {"kubernetes.io": {"namespace": "here"}}, "text"])
def test_other_tokens_give_nothing(tmp_path, claims):
    assert account_reference("here", token(tmp_path, claims)) is None


@pytest.mark.parametrize("text", ["", "a.b", "a.é.c", "a.!!!.c"])
def test_what_is_no_token_gives_nothing(tmp_path, text):
    path = tmp_path / "token"
    path.write_text(text)
    assert account_reference("here", path) is None


def test_outside_a_pod_there_is_no_account(tmp_path):
    assert account_reference("here", tmp_path / "token") is None


async def test_lease_is_deleted_with_its_owner(cluster, own_namespace):
    settings = await cluster.create(CONFIG_MAPS, own_namespace, a_config_map("settings"))
    uid = settings["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "settings", "uid": uid}
    await LeaderElector(cluster, own_namespace, "owned", "one", owner).acquire()
    assert (await cluster.get(LEASES, own_namespace, "owned"))["metadata"]["ownerReferences"] == [
        owner
    ]
    await cluster.delete(CONFIG_MAPS, own_namespace, "settings", uid=uid)
    await until_gone(cluster, LEASES, own_namespace, "owned")
