import base64
import gzip
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.declared.declarations import document, files
from support.operator.runrequests import RUN, UID, an_output

from snaploom.models.datasource import DataSource
from snaploom.plan.bundle import Bundle
from snaploom.plan.plan import plan_offline
from snaploom.run.declarations import read_bundle_file
from snaploom.run.joblog import Owner
from snaploom_operator.errors import BundleTooLarge, SecretInBundle
from snaploom_operator.submit.manifests import (
    MOST_BYTES,
    bundle_config_map,
    child_labels,
    child_metadata,
    label_value,
    owner_reference,
    plan_config_map,
    plan_name,
)


def bundle(*sources: dict[str, Any]) -> Bundle:
    declared = sources or (files("customers"),)
    return Bundle(output_dataset=an_output(), data_sources=tuple(map(DataSource.parse, declared)))


def manifest_of(one: Bundle) -> Any:
    return bundle_config_map(an_output(), RUN, one)


def text_of(config_map: Any) -> str:
    if "data" in config_map:
        return str(config_map["data"]["bundle.json"])
    return gzip.decompress(base64.b64decode(config_map["binaryData"]["bundle.json.gz"])).decode()


def large(count: int, length: int = 0) -> Bundle:
    rng = random.Random(1)
    globs = [f"/data/{rng.randbytes(length // 2).hex()}/*.parquet" for _ in range(count)]
    sources = (files(f"s{i}", sourceUriGlobs=[glob]) for i, glob in enumerate(globs))
    return bundle(files("customers"), *sources)


def test_bundle_is_immutable_and_named_after_the_run_and_what_it_holds() -> None:
    config_map = manifest_of(bundle())
    assert config_map["immutable"] is True
    name = config_map["metadata"]["name"]
    assert name.startswith(f"{RUN}-bundle-")
    assert name == manifest_of(bundle())["metadata"]["name"]
    assert name != manifest_of(bundle(files("customers", format="orc")))["metadata"]["name"]
    assert config_map["metadata"]["labels"]["snaploom.io/role"] == "bundle"


def test_bundle_is_read_back_as_it_was() -> None:
    found = Bundle.parse(json.loads(text_of(manifest_of(bundle()))))
    assert found.data_sources[0].spec == bundle().data_sources[0].spec
    assert found.output.metadata.uid == an_output().metadata.uid


def test_bundle_is_the_same_text_each_time() -> None:
    assert manifest_of(large(700, 1500)) == manifest_of(large(700, 1500))


def test_metadata_that_tools_add_is_left_out() -> None:
    source = files("customers")
    applied = "kubectl.kubernetes.io/last-applied-configuration"
    source["metadata"] |= {"annotations": {applied: "hunter2"}, "managedFields": [{"a": 1}]}
    text = text_of(manifest_of(bundle(source)))
    assert "hunter2" not in text
    assert "managedFields" not in text


def test_large_bundle_is_compressed() -> None:
    config_map = manifest_of(large(700, 1500))
    assert len(text_of(config_map)) > MOST_BYTES
    assert len(base64.b64decode(config_map["binaryData"]["bundle.json.gz"])) <= MOST_BYTES


@pytest.mark.parametrize("size", [1, 700])
def test_job_reads_what_the_operator_wrote(tmp_path: Path, size: int) -> None:
    one = large(size, 1500)
    config_map = manifest_of(one)
    for key, text in config_map.get("data", {}).items():
        (tmp_path / key).write_text(text)
    for key, packed in config_map.get("binaryData", {}).items():
        (tmp_path / key).write_bytes(base64.b64decode(packed))
    found = read_bundle_file(tmp_path)
    assert found.owner == Owner("OutputDataset", "orders", "default")
    assert found.parse(UID).data_sources == one.data_sources


def test_bundle_that_does_not_fit_is_refused() -> None:
    with pytest.raises(BundleTooLarge) as refused:
        manifest_of(large(1500, 2000))
    assert refused.value.found is not None
    assert "1501 sources" in refused.value.found
    assert "900,000" in str(refused.value)


def test_password_in_a_spec_is_never_written() -> None:
    jdbc = {
        "driver": "POSTGRESQL",
        "host": "db",
        "database": "shop",
        "tableReference": "t",
        "credentials": {"fromPlaintext": {"user": "u", "password": "hunter2"}},
        "snapshot": {"fromReadTime": {}},
    }
    with pytest.raises(SecretInBundle, match=r"dataSources\[0\].spec.jdbc.credentials") as refused:
        manifest_of(bundle(document("DataSource", "customers", {"jdbc": jdbc})))
    assert "hunter2" not in str(refused.value)


def test_a_text_named_like_a_password_is_no_password() -> None:
    source = files("customers", formatOptions={"fromPlaintext": "true"})
    assert "fromPlaintext" in text_of(manifest_of(bundle(source)))


def test_plan_is_written_whole() -> None:
    config_map: Any = plan_config_map(an_output(), plan_offline(bundle()))
    assert config_map["metadata"]["name"] == "orders-plan"
    assert json.loads(config_map["data"]["plan.json"])["root"] == "customers"
    assert "immutable" not in config_map


def test_name_of_a_plan_is_never_too_long() -> None:
    assert len(plan_name("a" * 253)) == 253


LABEL = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
"""What Kubernetes lets pass as the value of a label, besides its length."""


@given(st.text(max_size=300))
def test_every_text_becomes_a_valid_label(text: str) -> None:
    value = label_value(text)
    assert len(value) <= 63
    assert LABEL.fullmatch(value)


@given(st.from_regex(r"\A[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?\Z"))
def test_a_valid_label_stays_as_it_is(text: str) -> None:
    assert label_value(text) == text


def test_long_name_is_cut_where_a_label_may_end() -> None:
    assert label_value("a" * 62 + "-bcd") == "a" * 62


def test_child_belongs_to_its_owner() -> None:
    assert owner_reference(an_output()) == {
        "apiVersion": "snaploom.io/v1alpha1",
        "kind": "OutputDataset",
        "name": "orders",
        "uid": UID,
        "controller": True,
        "blockOwnerDeletion": False,
    }


def test_child_has_labels_by_which_it_is_found() -> None:
    assert child_labels(an_output(), "run-1", "bundle") == {
        "snaploom.io/kind": "OutputDataset",
        "snaploom.io/name": "orders",
        "snaploom.io/owner-uid": UID,
        "snaploom.io/run": "run-1",
        "snaploom.io/role": "bundle",
    }


@pytest.mark.parametrize("kind", ["labels", "annotations"])
def test_nothing_of_the_owners_own_metadata_is_copied(kind: str) -> None:
    owner = an_output()
    theirs = {"argocd.argoproj.io/tracking-id": "x", "app.kubernetes.io/instance": "x"}
    metadata = owner.metadata.model_copy(update={kind: theirs})
    child = child_metadata(owner.model_copy(update={"metadata": metadata}), "child")
    assert not theirs.keys() & dict(child.get(kind, {})).keys()
