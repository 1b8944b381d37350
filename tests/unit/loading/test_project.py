"""Which project file counts, which values it gives, and what is wrong with a choice."""

from __future__ import annotations

from pathlib import Path

import pytest

from snaploom.loading.load import Loaded, load
from snaploom.models.allowances import NO_CHOICE, VariableChoice
from snaploom.models.datasource import DataSource

SOURCE = """\
apiVersion: snaploom.io/v1alpha1
kind: DataSource
metadata: {name: orders}
spec:
  hdfsLike:
    format: parquet
    sourceUriGlobs: [$(root)/orders/*]
    snapshot: {fromReadTime: {}}
"""
PROJECT = """\
variables:
  root: /data
environments:
  prod:
    variables: {root: "s3://lake", day: 2024-05-01}
  empty: {}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in the folder that the process works in."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "snaploom.yaml").write_text(PROJECT)
    models = tmp_path / "models" / "shop"
    models.mkdir(parents=True)
    (models / "orders.yaml").write_text(SOURCE)
    return tmp_path


def globs(loaded: Loaded) -> tuple[str, ...]:
    assert loaded.findings == ()
    (source,) = loaded.resources
    assert isinstance(source, DataSource)
    assert source.spec.hdfs_like is not None
    return source.spec.hdfs_like.source_uri_globs


@pytest.mark.parametrize("path", [".", "models", "models/shop", "models/shop/orders.yaml"])
def test_the_project_above_the_files_counts(project: Path, path: str) -> None:
    assert globs(load([Path(path)])) == ("/data/orders/*",)
    assert globs(load([project / path])) == ("/data/orders/*",)


@pytest.mark.parametrize(
    ("choice", "root"),
    [
        (NO_CHOICE, "/data"),
        (VariableChoice("empty"), "/data"),
        (VariableChoice("prod"), "s3://lake"),
        (VariableChoice("prod", {"root": "/tmp/x"}), "/tmp/x"),
    ],
)
def test_a_value_that_is_set_goes_before_that_of_the_environment(
    project: Path, choice: VariableChoice, root: str
) -> None:
    loaded = load([Path("models")], choice)
    assert globs(loaded) == (f"{root}/orders/*",)
    assert loaded.project.values["root"] == root


def test_no_project_is_looked_for_above_the_working_folder(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project / "models" / "shop")
    for path in (Path(), project / "models"):
        assert [f.code for f in load([path]).findings] == ["SL121"]


def test_a_folder_elsewhere_has_its_own_project_file(
    project: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert globs(load([project])) == ("/data/orders/*",)


def test_a_file_of_that_name_with_resources_is_no_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "snaploom.yaml").write_text(SOURCE.replace("$(root)", "/x"))
    assert globs(load([tmp_path])) == ("/x/orders/*",)


@pytest.mark.parametrize(
    ("choice", "code", "hint"),
    [
        (VariableChoice("prd"), "SL123", "did you mean `prod`?"),
        (VariableChoice(None, {"roof": "x"}), "SL124", "did you mean `root`?"),
        (VariableChoice(None, {"a b": "x"}), "SL123", "write `--set name=value`"),
        (VariableChoice(None, {"root": "$(x)"}), "SL123", "write the whole value"),
        (VariableChoice(None, {"api_token": "x"}), "SL123", "use `credentials.fromEnvironment` "
         "or `credentials.fromSecret` of the source"),
    ],
)  # fmt: skip
def test_a_wrong_choice_is_one_finding(
    project: Path, choice: VariableChoice, code: str, hint: str
) -> None:
    (finding,) = load([Path("models")], choice).findings
    assert (finding.code, finding.hint, finding.is_error) == (code, hint, True)


def test_a_declared_variable_that_these_files_lack_is_a_warning(project: Path) -> None:
    (finding,) = load([Path("models")], VariableChoice(None, {"day": "x"})).findings
    assert (finding.code, finding.is_error) == ("SL124", False)


def test_a_variable_of_another_environment_names_it(project: Path) -> None:
    (project / "models" / "shop" / "orders.yaml").write_text(SOURCE.replace("root", "day"))
    (finding,) = load([Path("models")]).findings
    assert finding.code == "SL121"
    assert finding.hint == "add `--env prod`, or give it a value under `variables`"


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("variables: {root: /a\n", "SL104", 2),
        ("variable: {root: /a}\n", "SL110", 1),
        ("variables:\n  root: 5\n", "SL112", 2),
        ("variables:\n  root: $(x)\n", "SL113", 2),
        ("variables: {root: /a}\nenvironments:\n  prod: {variables: {db_password: x}}\n",
         "SL123", 3),
        ("variables: {root: /a}\n---\nvariables: {}\n", "SL123", 3),
        ("variables: {root: /a}\nvariables: {root: /b}\n", "SL105", 2),
    ],
)  # fmt: skip
def test_a_fault_of_the_project_file_has_its_line(
    project: Path, text: str, code: str, line: int
) -> None:
    (project / "snaploom.yaml").write_text(text)
    findings = load([Path("models")]).findings
    assert (findings[0].code, findings[0].file, findings[0].line) == (code, "snaploom.yaml", line)


def test_a_second_project_file_is_refused(project: Path) -> None:
    (project / "models" / "snaploom.yaml").write_text(PROJECT)
    (nested,) = load([Path()]).findings
    assert (nested.code, nested.file) == ("SL123", "models/snaploom.yaml")
    (project / "other").mkdir()
    (project / "other" / "x.yaml").write_text(SOURCE.replace("orders", "x"))
    (several,) = load([Path("models"), Path("other")]).findings
    assert several.found == "models/snaploom.yaml, snaploom.yaml"


def test_an_empty_project_file_declares_nothing(project: Path) -> None:
    (project / "snaploom.yaml").write_text("# nothing yet\n")
    assert globs(load([Path("models")], VariableChoice(None, {"root": "/a"}))) == ("/a/orders/*",)
