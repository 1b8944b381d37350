"""`docs/gitops` hangs together: what is to be copied is sound before any cluster sees it."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster.gitopsplatform import GITOPS, SHOP, shop
from support.cluster.chart import REPOSITORY
from support.cluster.cluster import kubectl_program
from support.documentation.pages import DOCS, blocks_of

from snaploom.loading.load import load
from snaploom.models.allowances import VariableChoice
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


PAGE = DOCS / "how-to" / "environments.md"


def test_an_overlay_gives_what_an_environment_gives(tmp_path: Path) -> None:
    for block in blocks_of(PAGE):
        if block.title:
            file = tmp_path / block.title
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text)
    command = (*kubectl_program(), "kustomize", str(tmp_path))
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    (tmp_path / "kustomized.yaml").write_text(done.stdout)
    chosen = load([tmp_path / "shop"], VariableChoice("prod")).resources
    (patched,) = load([tmp_path / "kustomized.yaml"]).resources
    assert next(each for each in chosen if each.kind == "DataSource") == patched
