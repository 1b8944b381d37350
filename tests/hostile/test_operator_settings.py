"""`snaploom operator settings` shows the lists, and no secret."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from snaploom.models.allowances import Allowances
from snaploom.policy.pods import BUILT_IN_LISTS
from snaploom_operator.commands.options import OutputForm
from snaploom_operator.commands.settings import HIDDEN, settings

MARKER = "canary-5f3a"
TEXT = f"""
allow: {{formats: [xml], sparkConf: [spark.plugins]}}
spark:
  podTemplate: {{env: [{{name: TOKEN, value: {MARKER}}}]}}
  sparkConf: {{spark.hadoop.fs.s3a.secret.key: {MARKER}, spark.task.cpus: "2"}}
"""


def shown(tmp_path: Path, capsys: pytest.CaptureFixture[str], *, entries: bool = False) -> str:
    (tmp_path / "settings.yaml").write_text(TEXT)
    assert settings(settings=tmp_path / "settings.yaml", entries=entries) == 0
    return capsys.readouterr().out


def test_every_list_is_known() -> None:
    assert [*BUILT_IN_LISTS] == [*Allowances().dump()]


def test_lists_are_shown_with_what_was_added(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    allowed = yaml.safe_load(shown(tmp_path, capsys))["allow"]
    assert allowed["formats"]["added"] == ["xml"]
    assert allowed["sparkConf"] == {
        "builtIn": len(BUILT_IN_LISTS["sparkConf"]),
        "added": ["spark.plugins"],
    }


def test_entries_of_a_list_are_named_on_demand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    allowed = yaml.safe_load(shown(tmp_path, capsys, entries=True))["allow"]
    assert "spark.task.cpus" in allowed["sparkConf"]["builtIn"]


def test_no_secret_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(tmp_path, capsys)
    assert MARKER not in text
    spark = yaml.safe_load(text)["settings"]["spark"]
    assert spark["sparkConf"] == {"spark.hadoop.fs.s3a.secret.key": HIDDEN, "spark.task.cpus": "2"}


def test_settings_are_shown_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert settings(output=OutputForm.JSON) == 0
    assert json.loads(capsys.readouterr().out)["allow"]["images"]["added"] == ["*"]
