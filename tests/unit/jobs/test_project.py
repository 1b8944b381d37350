"""`snaploom.load` without Spark: reading, findings, resources of Python, and what is imported."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr
from support.declared.declarations import document
from support.declared.shop import Shop
from support.weaving.loom import OUTPUT, Loom

import snaploom as sl
from snaploom.errors import ArgumentInvalid
from snaploom.models.allowances import NO_CHOICE
from snaploom.models.common import DataType
from snaploom.models.datarelationship import KeyComponent, KeyField, Representation
from snaploom.models.datasource import (
    Credentials,
    FromPlaintext,
    FromReadTime,
    HdfsLike,
    Jdbc,
    JdbcDriver,
    SnapshotSettings,
)
from snaploom.models.fieldtransformer import Rename, Transformer, TransformerSelector
from snaploom.models.findings import InvalidDeclarations
from snaploom.project import results
from snaploom.run.folders import folder_of


@pytest.fixture
def project(tmp_path: Path) -> sl.Project:
    return sl.load(Shop(tmp_path).write())


def test_findings_are_those_of_validate(tmp_path: Path) -> None:
    shop = Shop(tmp_path).set("wide", "dataModel.rootDataSource.dataSource", "nothing")
    findings = sl.load(shop.write()).validate()
    assert [each.code for each in findings.errors] == ["SL130"]
    assert not findings.is_ok
    assert "model.yaml" in findings[0].file
    assert "nothing" in findings._repr_html_()
    with pytest.raises(sl.InvalidDeclarations) as caught:
        sl.load(shop.model).validate(raises=True)
    assert caught.value.findings == findings.items


def test_secrets_of_the_environment_are_in_no_message(project, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-very-secret-key")
    sl.load(project.resources)
    with pytest.raises(InvalidDeclarations) as caught:
        project.run("a-very-secret-key")
    assert "secret" not in str(caught.value)


def test_a_password_in_plain_text_is_written_nowhere() -> None:
    given = Jdbc(
        driver=JdbcDriver.POSTGRESQL,
        host="db",
        database="shop",
        table_reference="orders",
        credentials=Credentials(
            from_plaintext=FromPlaintext(user="ada", password=SecretStr("hunter22"))
        ),
        snapshot=SnapshotSettings(from_read_time=FromReadTime()),
    )
    source = sl.DataSource("orders", jdbc=given)
    shown = f"{source.to_yaml()}{source!r}{sl.load(source)!r}{sl.load(source)._repr_html_()}"
    assert "hunter22" not in shown


def test_files_folders_and_resources_are_one_set(tmp_path: Path, project: sl.Project) -> None:
    first, *others = project.resources
    (tmp_path / "rest").mkdir()
    (tmp_path / "rest" / "a.yaml").write_text(sl.to_yaml(others))
    mixed = sl.load([first, tmp_path / "rest"])
    assert set(mixed.outputs) == {"wide"}
    assert mixed.validate().is_ok
    assert len(sl.load([*project.resources, first]).validate().errors) == 1


def test_an_error_names_the_path_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidDeclarations, match=r"nothere: there is no such file or folder"):
        sl.load(tmp_path / "nothere")


@pytest.mark.parametrize("source", [3, [None], [["a.yaml"]]])
def test_what_is_no_declaration_is_named(source: object) -> None:
    with pytest.raises(ArgumentInvalid, match="these are no declarations"):
        sl.load(source)  # type: ignore[arg-type]


def test_resources_round_trip_through_yaml(tmp_path: Path, project: sl.Project) -> None:
    text = project.to_yaml()
    assert list(yaml.safe_load_all(text)) == Shop(tmp_path).documents
    (tmp_path / "again.yaml").write_text(text)
    assert sl.load(tmp_path / "again.yaml").resources == project.resources


def test_a_source_without_a_place_is_refused_as_in_yaml() -> None:
    with pytest.raises(ValueError, match="exactly one of"):
        sl.DataSource("orders")


def test_a_copy_that_was_not_validated_is_a_finding() -> None:
    files = HdfsLike(
        format="csv",
        source_uri_globs=("file:///data/*.csv",),
        source_uri_prefix="file:///data/",
        snapshot=SnapshotSettings(from_read_time=FromReadTime()),
    )
    spoilt = files.model_copy(update={"source_uri_globs": ()})
    source = sl.DataSource("orders", files=files)
    spec = source.spec.model_copy(update={"hdfs_like": spoilt})
    findings = sl.load([source.model_copy(update={"spec": spec})]).validate()
    assert [(each.resource, each.path) for each in findings.errors] == [
        ("DataSource/orders", "spec.hdfsLike.sourceUriGlobs")
    ]


def test_other_kinds_are_written_as_yaml_has_them() -> None:
    key = KeyField(field_name="id", data_type=DataType(long={}))
    relationship = sl.DataRelationship(
        "id",
        representations=[
            Representation(data_sources=("a", "b"), join_key=(KeyComponent(fields=(key,)),))
        ],
    )
    assert yaml.safe_load(relationship.to_yaml()) == document(
        "DataRelationship",
        "id",
        {
            "representations": [
                {
                    "dataSources": ["a", "b"],
                    "joinKey": [{"fields": [{"fieldName": "id", "dataType": {"long": {}}}]}],
                }
            ]
        },
    )
    selector = TransformerSelector(coordinate_include_regex="^a$")
    transformer = sl.FieldTransformer(
        "short", transformers=[Transformer(selectors=(selector,), rename=Rename(to="b"))]
    )
    assert sl.load([transformer]).validate() is not None


@given(st.text())
def test_no_text_leaves_its_place_in_html(text: str) -> None:
    assert not set("<>") & set(results.html_text(text))


@pytest.mark.slow
def test_import_takes_nothing_along_and_names_are_known() -> None:
    program = (
        "import sys, snaploom as sl; "
        "assert not {'pyspark', 'pydantic'} & set(sys.modules), 'import'; "
        "sl.load; assert 'pyspark' not in sys.modules, 'load'; "
        "print(*dir(sl))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert {"load", "read", "DataSource", "Project"} <= set(done.stdout.split())


def test_page_of_an_unknown_output_names_those_there_are(eventful: Path) -> None:
    with pytest.raises(InvalidDeclarations) as caught:
        sl.load(eventful).page("orders")
    assert caught.value.findings[0].expected == "orders-wide"


def test_a_diff_in_a_notebook_draws_what_is_new_and_what_is_gone(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "old")
    other = [{"dataSource": "customers", "fieldName": "buyer"}]
    new = Shop(tmp_path / "new").set("wide", "dataModel.otherDataSources", other)
    found = sl.load(new.write()).diff("wide", against=shop.write(), offline=True)
    shown = found._repr_html_()
    assert 'class="card added"' in shown
    assert 'class="card removed"' in shown
    assert "<td" in shown
    same = sl.load(shop.model).diff("wide", against=shop.model, offline=True)
    assert "nothing would change" in same._repr_html_()
    assert "<svg" in same._repr_html_()


def test_a_diff_with_nothing_published_has_no_drawing(project: sl.Project) -> None:
    assert project.diff("wide", offline=True).svg == ""


# Folders of outputs, found without judging what else is declared.


@pytest.fixture
def loom(tmp_path: Path) -> Loom:
    return Loom(tmp_path)


def test_folder_is_the_one_that_is_declared(loom) -> None:
    assert folder_of(OUTPUT, [loom.save()], NO_CHOICE) == loom.uri


def test_folder_is_found_whatever_is_wrong_with_the_sources(loom, tmp_path) -> None:
    output = next(raw for raw in loom.documents() if raw["kind"] == "OutputDataset")
    file = tmp_path / "output.yaml"
    file.write_text(yaml.safe_dump(output))
    assert folder_of(OUTPUT, [file], NO_CHOICE) == loom.uri


def test_output_that_is_not_declared_is_named(loom) -> None:
    with pytest.raises(InvalidDeclarations) as raised:
        folder_of("other", [loom.save()], NO_CHOICE)
    assert "other" in str(raised.value)
