"""`docs/gitops` hangs together: what is to be copied is sound before any cluster sees it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from support.cluster.chart import REPOSITORY
from support.cluster.gitopsplatform import GITOPS, SHOP, shop

from snaploom.loading.load import load
from snaploom.models.findings import errors_of
from snaploom.models.kinds import KIND_BY_NAME
from snaploom.validate.validator import validate

Raw = dict[str, Any]

FOLDER = REPOSITORY / GITOPS
WAVE = "argocd.argoproj.io/sync-wave"
WAVES = {
    "DataSource": 1, "MetadataApplicator": 1, "FieldTransformer": 1,
    "DataRelationship": 2,
    "OutputDataset": 3, "SkippingIndex": 3,
}  # fmt: skip


def documents(place: str) -> list[Raw]:
    files = sorted((FOLDER / place).rglob("*.yaml"))
    return [raw for file in files for raw in yaml.safe_load_all(file.read_text("utf-8"))]


def found(place: str, kind: str, name: str) -> Raw:
    (raw,) = (
        raw
        for raw in documents(place)
        if (raw.get("kind"), raw.get("metadata", {}).get("name")) == (kind, name)
    )
    return raw


def wave(raw: Raw) -> int:
    return int(raw["metadata"]["annotations"][WAVE])


def test_the_shop_is_sound_and_has_every_kind() -> None:
    loaded = load([REPOSITORY / SHOP])
    assert list(errors_of([*loaded.findings, *validate(loaded.resources)])) == []
    assert {raw["kind"] for raw in shop()} == set(KIND_BY_NAME)


def test_waves_are_those_of_the_page() -> None:
    assert {raw["kind"]: wave(raw) for raw in shop()} == WAVES
    applications = {raw["metadata"]["name"]: wave(raw) for raw in documents("argocd/applications")}
    assert applications == {
        "data": -10, "snaploom": -10, "snaploom-crds": -5, "snaploom-operator": 0, "shop": 1,
    }  # fmt: skip


@pytest.mark.parametrize("raw", documents("argocd/applications"), ids=lambda raw: raw["kind"])
def test_paths_are_those_of_this_repository(raw: Raw) -> None:
    path = raw["spec"]["source"]["path"] if raw["kind"] == "Application" else "."
    assert (REPOSITORY / path).is_dir()


def test_flux_and_argo_cd_install_the_same() -> None:
    argo = found("argocd", "Application", "snaploom-operator")["spec"]["source"]["helm"]
    flux = found("flux", "HelmRelease", "snaploom")["spec"]
    assert flux["values"] == argo["valuesObject"]
    assert flux["releaseName"] == argo["releaseName"]
