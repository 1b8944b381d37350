"""Bundles as files: which are read, and which are refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.weaving.loom import Loom

from snaploom.errors import FormatTooNew
from snaploom.models.findings import InvalidDeclarations, NoUniqueJoinTree
from snaploom.plan.bundle import BUNDLE_FORMAT, Bundle
from snaploom.run.declarations import BundleUnreadable, read_bundle_file, refuse_invalid
from snaploom.run.joblog import Owner

UID = "5c1e7f9a"


@pytest.fixture
def raw(tmp_path: Path) -> dict[str, Any]:
    loom = Loom(tmp_path)
    loom.join("customer")
    return loom.bundle().dump()


def written(tmp_path: Path, raw: object) -> Path:
    path = tmp_path / "bundle.json"
    path.write_text(json.dumps(raw), "utf-8")
    return path


def test_bundle_is_read_from_file_or_folder(tmp_path: Path, raw: dict[str, Any]) -> None:
    path = written(tmp_path, raw)
    for place in (path, tmp_path):
        found = read_bundle_file(place)
        assert found.owner == Owner("OutputDataset", "wide", "")
        assert found.parse(UID) == Bundle.parse(raw)


def test_newer_bundle_is_refused_but_names_its_owner(tmp_path: Path, raw: dict[str, Any]) -> None:
    raw |= {"format": BUNDLE_FORMAT + 1, "unknown": 1}
    found = read_bundle_file(written(tmp_path, raw))
    assert found.owner.name == "wide"
    with pytest.raises(FormatTooNew):
        found.parse(UID)


@pytest.mark.parametrize("text", ["", "{", "[]", "1", '"x"'])
def test_file_that_is_no_object_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bundle.json"
    path.write_text(text, "utf-8")
    with pytest.raises(BundleUnreadable):
        read_bundle_file(path)


def test_absent_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BundleUnreadable, match=r"cannot read .*bundle\.json"):
        read_bundle_file(tmp_path / "bundle.json")


def test_unknown_key_is_refused_by_its_path(tmp_path: Path, raw: dict[str, Any]) -> None:
    raw["outputDataset"]["spec"]["secret"] = "s3cr3t"
    with pytest.raises(BundleUnreadable) as caught:
        read_bundle_file(written(tmp_path, raw)).parse(UID)
    assert "outputDataset.spec.secret" in str(caught.value)
    assert "s3cr3t" not in str(caught.value)


def test_bundle_without_an_identity_has_no_owner(tmp_path: Path) -> None:
    with pytest.raises(BundleUnreadable, match="neither"):
        assert read_bundle_file(written(tmp_path, {"format": 1})).owner


def test_bundle_of_another_resource_is_refused(tmp_path: Path, raw: dict[str, Any]) -> None:
    raw["outputDataset"]["metadata"]["uid"] = "another"
    found = read_bundle_file(written(tmp_path, raw))
    assert found.parse("another")
    with pytest.raises(BundleUnreadable, match="another"):
        found.parse(UID)


def test_sound_bundle_is_not_refused(raw: dict[str, Any]) -> None:
    assert not [finding for finding in refuse_invalid(Bundle.parse(raw)) if finding.is_error]


def test_what_is_wrong_is_refused_again(raw: dict[str, Any]) -> None:
    raw["dataSources"] = raw["dataSources"][:1]
    with pytest.raises(InvalidDeclarations):
        refuse_invalid(Bundle.parse(raw))


def test_source_that_nothing_leads_to_is_refused_as_a_tree(raw: dict[str, Any]) -> None:
    raw["outputDataset"]["spec"]["dataModel"]["dataRelationships"] = []
    with pytest.raises(NoUniqueJoinTree):
        refuse_invalid(Bundle.parse(raw))


def test_password_in_the_declaration_is_refused(raw: dict[str, Any]) -> None:
    jdbc = {
        "driver": "POSTGRESQL",
        "host": "db",
        "database": "d",
        "tableReference": "t",
        "credentials": {"fromPlaintext": {"user": "u", "password": "s3cr3t"}},
        "snapshot": {"fromReadTime": {}},
    }
    raw["dataSources"][0]["spec"] = {"jdbc": jdbc}
    with pytest.raises(InvalidDeclarations) as caught:
        refuse_invalid(Bundle.parse(raw))
    refused = [finding for finding in caught.value.findings if finding.is_error]
    assert "SL143" in {finding.code for finding in refused}
    assert "s3cr3t" not in repr(caught.value.findings)
