"""A secret outside of credentials: a warning on a laptop, refused in a cluster, shown nowhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from support.declared.declarations import model, parsed, put

from snaploom.cli.main import run_command
from snaploom.models.findings import InvalidDeclarations
from snaploom.plan.bundles import bundle_for
from snaploom.run.declarations import refuse_invalid
from snaploom_operator.gather.gatherer import cluster_findings

CANARY = "c4nary-hunter2"
PLACES: dict[str, tuple[int, str, Any, str]] = {
    "option": (0, "spec.hdfsLike.formatOptions", {"password": CANARY}, "formatOptions.password"),
    "place": (
        0, "spec.hdfsLike.sourceUriGlobs", [f"sftp://me:{CANARY}@host/*"], "sourceUriGlobs[0]",
    ),
    "setting": (
        3, "spec.run.spark", {"sparkConf": {"spark.ssl.keyPassword": CANARY}},
        "sparkConf.spark.ssl.keyPassword",
    ),
    "variable": (
        3, "spec.run.spark", {"podTemplate": {"env": [{"name": "API_KEY", "value": CANARY}]}},
        "env[0].value",
    ),
    "annotation": (3, "metadata.annotations", {"a.example/password": CANARY}, "password"),
}  # fmt: skip


def spoilt_model(place: str) -> tuple[list[dict[str, Any]], int]:
    number, path, value, _ = PLACES[place]
    raws = model()
    put(raws[number], path, value)
    return raws, number


@pytest.mark.parametrize("place", PLACES)
def test_laptop_warns_without_showing_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    raws, _ = spoilt_model(place)
    (tmp_path / "model.yaml").write_text(yaml.safe_dump_all(raws))
    for form in ("text", "json"):
        run_command(["validate", str(tmp_path / "model.yaml"), "-o", form])
        printed = capsys.readouterr()
        assert "SL138" in printed.out + printed.err
        assert CANARY not in printed.out + printed.err


@pytest.mark.parametrize("place", PLACES)
def test_admission_and_jobs_refuse_it(place: str) -> None:
    raws, number = spoilt_model(place)
    resources = parsed(raws)
    (found,) = [f for f in cluster_findings(resources[number]) if f.code == "SL138"]
    assert found.is_error
    assert found.path.endswith(PLACES[place][3])
    with pytest.raises(InvalidDeclarations) as caught:
        refuse_invalid(bundle_for("OutputDataset", "wide", resources))
    assert "SL138" in {finding.code for finding in caught.value.findings if finding.is_error}
    assert CANARY not in str(caught.value) + str(caught.value.findings)


def test_differences_hide_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, secret in (("before", "old-s3cret"), ("after", CANARY)):
        raws = model()
        raws[3]["spec"]["outputFolder"]["folderUri"] = f"{tmp_path}/out/"
        options = {"password": secret}
        put(raws[0], "spec.hdfsLike.formatOptions", options)
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump_all(raws))
    files = ["-f", str(tmp_path / "after.yaml"), "--against", str(tmp_path / "before.yaml")]
    allowed = ["--allow", "options=parquet.password"]
    assert run_command(["diff", "wide", *files, *allowed]) == 1
    printed = capsys.readouterr()
    assert "(hidden)" in printed.out
    assert CANARY not in printed.out + printed.err
    assert "old-s3cret" not in printed.out + printed.err
