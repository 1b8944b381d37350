"""Which project file counts, which values it gives, and what is wrong with a choice."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support.declared.declarations import files, output, spoilt

from snaploom.loading.composer import compose
from snaploom.loading.documents import Read, Surroundings, read_object, read_resource
from snaploom.loading.load import Loaded, load
from snaploom.models.allowances import NO_CHOICE, VariableChoice
from snaploom.models.datasource import DataSource, HdfsLike, Jdbc

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
def test_a_value_that_is_set_goes_before_that_of_the_environment(project, choice, root):
    loaded = load([Path("models")], choice)
    assert globs(loaded) == (f"{root}/orders/*",)
    assert loaded.project.values["root"] == root


def test_no_project_is_looked_for_above_the_working_folder(project, monkeypatch):
    monkeypatch.chdir(project / "models" / "shop")
    for path in (Path(), project / "models"):
        assert [f.code for f in load([path]).findings] == ["SL121"]


def test_a_folder_elsewhere_has_its_own_project_file(project, tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert globs(load([project])) == ("/data/orders/*",)


def test_a_file_of_that_name_with_resources_is_no_project(tmp_path, monkeypatch):
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
def test_a_wrong_choice_is_one_finding(project, choice, code, hint):
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
def test_a_fault_of_the_project_file_has_its_line(project, text, code, line):
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


GLOB = "spec.hdfsLike.sourceUriGlobs[0]"
FOLDER = "/home/me/models"


def read(raw: dict[str, Any], folder: str = "", **values: str) -> Read:
    (document,) = compose(json.dumps(raw)).documents
    return read_resource(document.node, Surroundings(values, folder=folder))


def file_source(**fields: Any) -> dict[str, Any]:
    raw = files("orders")
    raw["spec"]["hdfsLike"].update(fields)
    return raw


def hdfs(found: Read) -> HdfsLike:
    assert isinstance(found.resource, DataSource), found.findings
    assert found.resource.spec.hdfs_like is not None
    return found.resource.spec.hdfs_like


def test_a_variable_is_replaced_in_names_uris_and_times() -> None:
    raw = spoilt(output(), "metadata.name", "$(team)-wide")
    raw["spec"]["outputFolder"]["folderUri"] = "$(lake)/wide/"
    interval = raw["spec"]["dataModel"]["rootDataSource"]["snapshotFilter"]["fromInterval"]
    interval["intervalStartDate"] = "$(first)"
    found = read(raw, team="sales", lake="s3://lake", first="2024-05-01")
    assert found.findings == ()
    assert found.resource.name == "sales-wide"
    assert found.resource.spec.output_folder.folder_uri == "s3://lake/wide/"
    assert found.used == {"team", "lake", "first"}


@given(st.text(st.characters(codec="utf-8", exclude_characters="$\x00"), max_size=40))
def test_any_value_stays_in_its_field(value: str) -> None:
    found = read(file_source(sourceUriGlobs=["s3://lake/$(day)/*"]), day=value)
    assert hdfs(found).source_uri_globs == (f"s3://lake/{value}/*",)


def test_a_value_is_not_looked_at_again() -> None:
    found = read(file_source(sourceUriGlobs=["/a/$(one)/*"]), one="$(two)", two="x")
    (finding,) = found.findings
    assert (finding.code, finding.path) == ("SL113", GLOB)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("/a/$(dya)/*", "did you mean `day`?"),
        ("/a/$(day/*", "close it: `$(name)`"),
        ("/a/$()/*", "by `--set name=VALUE`"),
    ],
)
def test_what_has_no_value_is_one_finding(text: str, hint: str) -> None:
    (finding,) = read(file_source(sourceUriGlobs=[text]), day="x").findings
    assert (finding.code, finding.path) == ("SL121", GLOB)
    assert finding.hint.endswith(hint)


VIRTUAL = {
    "apiVersion": "snaploom.io/v1alpha1",
    "kind": "DataSource",
    "metadata": {"name": "open"},
    "spec": {
        "simpleVirtual": {
            "dataSource": "orders", "alias": "o", "dataQuery": "SELECT '$(day)' AS day FROM o",
        }
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        (VIRTUAL, "spec.simpleVirtual.dataQuery"),
        (file_source(format="$(day)"), "spec.hdfsLike.format"),
        (file_source(formatOptions={"header": "$(day)"}), "spec.hdfsLike.formatOptions.header"),
        (spoilt(output(), "spec.checks", [{"name": "c", "expression": "a = '$(day)'"}]),
         "spec.checks[0].expression"),
        (spoilt(files("a"), "metadata.labels", {"day": "$(day)"}), "metadata.labels.day"),
    ],
)  # fmt: skip
def test_a_variable_elsewhere_is_one_finding(raw: dict[str, Any], path: str) -> None:
    found = read(raw, day="2024-05-01")
    (finding,) = found.findings
    assert (finding.code, finding.path, finding.found) == ("SL122", path, "$(day)")
    assert found.resource is None


def test_text_that_only_looks_like_a_variable_stays() -> None:
    assert read(VIRTUAL, other="x").findings == ()


def test_a_password_is_no_place_for_a_variable_and_is_not_shown() -> None:
    jdbc = {
        "driver": "POSTGRESQL", "host": "$(host)", "database": "shop", "tableReference": "t",
        "credentials": {"fromPlaintext": {"user": "u", "password": "s3cret-$(host)"}},
        "snapshot": {"fromReadTime": {}},
    }  # fmt: skip
    raw = spoilt(files("a"), "spec", {"jdbc": jdbc})
    (finding,) = read(raw, host="db").findings
    assert finding.code == "SL122"
    assert "s3cret" not in finding.dump_json()


@pytest.mark.parametrize(
    ("text", "absolute"),
    [
        ("data/*.csv", f"{FOLDER}/data/*.csv"),
        ("./data/{a,b}/*", f"{FOLDER}/data/{{a,b}}/*"),
        ("../data/*", "/home/me/data/*"),
        ("../../x/../y/*", "/home/x/../y/*"),
        ("/data/*", "/data/*"),
        ("s3://lake/*", "s3://lake/*"),
        ("file:/data/*", "file:/data/*"),
    ],
)
def test_a_relative_path_counts_from_its_file(text: str, absolute: str) -> None:
    assert hdfs(read(file_source(sourceUriGlobs=[text]), FOLDER)).source_uri_globs == (absolute,)


def test_special_letters_of_the_folder_mean_themselves() -> None:
    raw = file_source(sourceUriGlobs=["d/*"], sourceUriPrefix="d/{day:STRING}/")
    found = hdfs(read(raw, "/home/{me}[1]"))
    assert found.source_uri_globs == (r"/home/\{me\}\[1\]/d/*",)
    assert found.source_uri_prefix == "/home/{{me}}[1]/d/{day:STRING}/"


def test_only_a_database_that_is_a_file_has_a_path() -> None:
    def database(driver: str) -> str | None:
        jdbc = {"driver": driver, "database": "shop", "tableReference": "t",
                "snapshot": {"fromReadTime": {}}}  # fmt: skip
        found = read(spoilt(files("a"), "spec", {"jdbc": jdbc}), FOLDER).resource
        assert isinstance(found.spec.variant, Jdbc)
        return found.spec.variant.database

    assert database("SQLITE") == f"{FOLDER}/shop"
    assert database("POSTGRESQL") == "shop"


def test_an_object_of_a_cluster_keeps_its_relative_path_and_no_variable() -> None:
    assert hdfs(read_object(file_source(sourceUriGlobs=["data/*"]))).source_uri_globs == ("data/*",)
    (finding,) = read_object(file_source(sourceUriGlobs=["s3://$(lake)/*"])).findings
    assert (finding.code, finding.path) == ("SL121", GLOB)
    assert "snaploom render" in finding.hint


def test_a_finding_has_the_line_of_the_variable(tmp_path: Path) -> None:
    text = yaml.safe_dump(file_source(sourceUriGlobs=["/a/$(day)/*"]))
    (tmp_path / "a.yaml").write_text(text)
    (finding,) = load([tmp_path]).findings
    assert text.splitlines()[finding.line - 1].strip() == "- /a/$(day)/*"
