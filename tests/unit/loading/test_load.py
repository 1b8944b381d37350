"""Files and folders to resources: every fault at once, each with its place."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest

from snaploom.loading.load import Loaded, load
from snaploom.loading.project import MAX_BYTES
from snaploom.models.findings import Finding

SOURCE = """\
apiVersion: snaploom.io/v1alpha1
kind: DataSource
metadata:
  name: {name}
spec:
  hdfsLike:
    format: parquet
    sourceUriGlobs: [/data/*]
    snapshot:
      fromReadTime: {{}}
"""


def load_text(folder: Path, text: str, name: str = "a.yaml") -> Loaded:
    (folder / name).write_text(dedent(text), encoding="utf-8")
    return load([folder / name])


def only(loaded: Loaded) -> Finding:
    (finding,) = loaded.findings
    return finding


def test_folders_are_read_at_every_level_in_order(tmp_path: Path) -> None:
    (tmp_path / "b" / ".git").mkdir(parents=True)
    (tmp_path / "b" / "z.yml").write_text(SOURCE.format(name="three"))
    (tmp_path / "a.yaml").write_text(SOURCE.format(name="one") + "---\n" + SOURCE.format(name="2"))
    (tmp_path / "b" / "notes.txt").write_text("not: [yaml")
    (tmp_path / "b" / ".git" / "x.yaml").write_text("not: [yaml")
    loaded = load([tmp_path])
    assert [f.code for f in loaded.findings] == ["SL112"]  # the name 2 is a number
    assert [item.resource.name for item in loaded.located] == ["one", "three"]


def test_a_file_given_twice_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(SOURCE.format(name="a"))
    loaded = load([tmp_path, tmp_path / "a.yaml", tmp_path])
    assert loaded.findings == ()
    assert len(loaded.resources) == 1


def test_json_is_read_like_yaml(tmp_path: Path) -> None:
    document = {
        "apiVersion": "snaploom.io/v1alpha1",
        "kind": "MetadataApplicator",
        "metadata": {"name": "a"},
        "spec": {"fieldSelectors": [{"coordinateIncludeRegex": "\U0001f600"}], "metadata": {}},
    }
    loaded = load_text(tmp_path, json.dumps(document, indent="\t"), "a.json")
    assert loaded.findings == ()
    assert "\U0001f600" in loaded.resources[0].dump_json()


@pytest.mark.parametrize(
    ("text", "code", "place", "path"),
    [
        pytest.param("- 1\n", "SL106", (1, 1), "", id="list"),
        pytest.param("--- words\n", "SL106", (1, 5), "", id="scalar"),
        pytest.param("kind: DataSource\n", "SL108", (1, 1), "apiVersion", id="no-version"),
        pytest.param("apiVersion: 1\n", "SL108", (1, 13), "apiVersion", id="number-as-version"),
        pytest.param(
            "apiVersion: v1\nkind: DataSource\n", "SL108", (1, 13), "apiVersion", id="core-version"
        ),
        pytest.param(
            "apiVersion: snaploom.io/v1\nkind: DataSource\n", "SL108", (1, 13), "apiVersion",
            id="other-version",
        ),
        pytest.param(
            "apiVersion: snaplom.io/v1alpha1\nkind: X\n", "SL108", (1, 13), "apiVersion",
            id="misspelt-group",
        ),
        pytest.param("apiVersion: snaploom.io/v1alpha1\n", "SL109", (1, 1), "kind", id="no-kind"),
        pytest.param(
            "apiVersion: snaploom.io/v1alpha1\nkind: DataSources\n", "SL109", (2, 7), "kind",
            id="plural",
        ),
    ],
)  # fmt: skip
def test_documents_that_are_no_resources_are_refused(
    tmp_path: Path, text: str, code: str, place: tuple[int, int], path: str
) -> None:
    finding = only(load_text(tmp_path, text))
    assert (finding.code, finding.path, (finding.line, finding.column)) == (code, path, place)
    assert finding.is_error
    assert finding.file == str(tmp_path / "a.yaml")


@pytest.mark.parametrize(
    ("kind", "hint"),
    [
        ("DataSources", "write `kind: DataSource`"),
        ("datasource", "write `kind: DataSource`"),
        ("ods", "write `kind: OutputDataset`"),
        ("OutputDatset", "did you mean `OutputDataset`?"),
        ("HDFSLikeDataSource", "`spec.hdfsLike`"),
        ("ComplexVirtualDataSource", "`spec.complexVirtual`"),
    ],
)
def test_an_unknown_kind_is_answered_with_the_one_that_was_meant(
    tmp_path: Path, kind: str, hint: str
) -> None:
    loaded = load_text(tmp_path, f"apiVersion: snaploom.io/v1alpha1\nkind: {kind}\n")
    assert hint in only(loaded).hint


def test_foreign_documents_are_passed_over_with_a_warning(tmp_path: Path) -> None:
    foreign = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {}\n---\n"
    loaded = load_text(tmp_path, foreign + SOURCE.format(name="a"))
    assert [item.resource.identity for item in loaded.located] == ["DataSource/a"]
    assert (only(loaded).code, only(loaded).severity) == ("SL107", "WARNING")


@pytest.mark.parametrize("text", ["", "---\n---\n", "# nothing\n", "~\n"])
def test_files_without_resources_are_reported(tmp_path: Path, text: str) -> None:
    assert only(load_text(tmp_path, text)).code == "SL119"


def test_empty_documents_are_skipped(tmp_path: Path) -> None:
    loaded = load_text(tmp_path, f"---\n---\n{SOURCE.format(name='a')}---\n# end\n")
    assert loaded.findings == ()


def test_lists_as_kubectl_prints_them_are_unpacked(tmp_path: Path) -> None:
    items = [SOURCE.format(name=name) for name in ("a", "b")]
    body = "".join("- " + text.replace("\n", "\n  ").rstrip() + "\n" for text in items)
    loaded = load_text(tmp_path, "apiVersion: v1\nkind: List\nitems:\n" + body + "- 5\n")
    assert [item.resource.name for item in loaded.located] == ["a", "b"]
    assert (only(loaded).code, only(loaded).line) == ("SL106", 24)


def test_a_resource_declared_twice_names_both_places(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(SOURCE.format(name="a"))
    (tmp_path / "b.yaml").write_text("\n" + SOURCE.format(name="a"))
    finding = only(load([tmp_path]))
    assert (finding.code, finding.line) == ("SL118", 5)
    assert f"{tmp_path}/a.yaml line 4" in finding.found
    assert f"{tmp_path}/b.yaml line 5" in finding.found


def test_files_as_such_can_be_wrong(tmp_path: Path) -> None:
    (tmp_path / "big.yaml").write_bytes(b"a: 1\n" * 2_200_000)
    (tmp_path / "latin.yaml").write_bytes("a: 1\nb: Zürich\n".encode("latin-1"))
    (tmp_path / "utf16.yaml").write_bytes("a: 1\n".encode("utf-16"))
    findings = load([tmp_path, tmp_path / "absent.yaml"]).findings
    places = [(Path(f.file).name, f.code, f.line, f.column) for f in findings]
    assert places == [
        ("big.yaml", "SL102", 0, 0),
        ("latin.yaml", "SL103", 2, 5),
        ("utf16.yaml", "SL103", 1, 1),
        ("absent.yaml", "SL101", 0, 0),
    ]
    assert f"{MAX_BYTES:,}" in findings[0].expected


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"\xef\xbb\xbf" + SOURCE.format(name="a").encode())
    assert load([tmp_path]).findings == ()


def test_every_fault_of_every_document_is_reported_at_once(tmp_path: Path) -> None:
    text = """\
        apiVersion: snaploom.io/v1alpha1
        kind: DataSource
        metadata: {name: a}
        spec:
          hdfsLike:
            format: 5
            sourceUris: [/data]
            format: csv
            snapshot: {}
        ---
        apiVersion: snaploom.io/v1alpha1
        kind: DataSource
        metadata: {name: b}
        spec: {}
        ---
        a: [
        """
    loaded = load_text(tmp_path, text)
    assert sorted((f.line, f.code, f.path) for f in loaded.findings) == [
        (6, "SL112", "spec.hdfsLike.format"),
        (7, "SL110", "spec.hdfsLike.sourceUris"),
        (8, "SL105", "spec.hdfsLike.format"),
        (9, "SL114", "spec.hdfsLike.snapshot"),
        (14, "SL114", "spec"),
        (17, "SL104", ""),
    ]
    assert loaded.broken == {"DataSource/a", "DataSource/b"}


def test_later_findings_are_given_their_place(tmp_path: Path) -> None:
    loaded = load_text(tmp_path, SOURCE.format(name="a"))
    finding = Finding(
        code="SL141",
        severity="ERROR",
        resource="DataSource/a",
        path="spec.hdfsLike.sourceUriGlobs[0]",
        message="x",
    )
    (placed,) = loaded.placed([finding])
    assert (placed.file, placed.line, placed.column) == (str(tmp_path / "a.yaml"), 8, 22)


@pytest.mark.parametrize(
    ("variant", "body", "meant"),
    [
        pytest.param(
            "simpleVirtual",
            "{dataSources: [], snapshotQuery: x, dataQuery: y}",
            "complexVirtual",
            id="simple-with-snapshotQuery",
        ),
        pytest.param(
            "simpleVirtual",
            '{dataSource: a, alias: a, dataQuery: "SELECT {{ SNAPSHOT | UNIX_SECONDS }} FROM a"}',
            "complexVirtual",
            id="simple-with-placeholder",
        ),
        pytest.param(
            "complexVirtual",
            "{dataSource: {kind: HDFSLikeDataSource, name: a, alias: a}, sqlQuery: SELECT a}",
            "simpleVirtual",
            id="complex-with-one-source",
        ),
        pytest.param(
            "complexVirtual",
            "{dataSources: [{dataSource: a, alias: a}], dataQuery: SELECT a FROM a}",
            "simpleVirtual",
            id="complex-without-snapshots",
        ),
    ],
)
def test_swapped_virtual_sources_get_one_explanation(
    tmp_path: Path, variant: str, body: str, meant: str
) -> None:
    text = f"""\
        apiVersion: snaploom.io/v1alpha1
        kind: DataSource
        metadata: {{name: v}}
        spec:
          {variant}: {body}
        """
    finding = only(load_text(tmp_path, text))
    assert (finding.code, finding.path, finding.line) == ("SL117", f"spec.{variant}", 5)
    assert f"rename `{variant}` to `{meant}`" in finding.hint
