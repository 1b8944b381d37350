"""Files and folders to resources: every fault at once, each with its place."""

import copy
import json
import os
import random
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import dedent
from types import ModuleType
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from support.declared.declarations import (
    Raw,
    complex_,
    document,
    files,
    key,
    model,
    output,
    relationship,
    simple,
)
from support.runner.quick import examples

from snaploom.cli.main import run_command
from snaploom.errors import SnaploomError
from snaploom.installed import plugged
from snaploom.loading.load import Loaded, load
from snaploom.loading.project import MAX_BYTES
from snaploom.localfiles import open_plain, write_file
from snaploom.models.findings import Finding
from snaploom.models.report import Report
from snaploom.models.schemas import EDITOR_SCHEMA_FILE, write_crds, write_schemas
from snaploom.run.declarations import read_bundle_file
from snaploom.run.driverlock import LOCK_FILE, read_lock, write_lock
from snaploom.run.reports.writer import FileReport
from snaploom.validate.validator import validate

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
def test_documents_that_are_no_resources_are_refused(tmp_path, text, code, place, path):
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
def test_an_unknown_kind_is_answered_with_the_one_that_was_meant(tmp_path, kind, hint):
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
def test_swapped_virtual_sources_get_one_explanation(tmp_path, variant, body, meant):
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


SOUND = [
    *model(),
    simple("v", "SELECT a, count(*) FROM c WHERE b > 1 GROUP BY a"),
    complex_("w", "SELECT * FROM c0 WHERE t < {{ SNAPSHOT | UNIX_SECONDS }}", "customer"),
    document(
        "FieldTransformer",
        "t",
        {"transformers": [{"rename": {"to": "x"}, "selectors": [{"metadata": {"a": "b"}}]}]},
    ),
]
DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
JUNK: tuple[Any, ...] = (
    None, True, -1, 0, 10**30, 1.5, "", " ", "x", "{{", "{a:STRING}", "../", "SELECT (", "[", "\\",
    "a.b.c", "(" * 500, [], {}, [[]], [None], {"": ""}, {"a": {"b": []}}, "\U0001f600", "\x07",
    "UTC", "0 0 * * *", "2020-01-01T00:00:00Z", "/", "s3://", "data", "customer", "$9", "*", "'",
)  # fmt: skip
PIECES = st.sampled_from(
    [*"\t\n :-[]{},&*!|>'\"%@`#?~<", "a", "1", "---\n", "<<: ", "&a ", "*a", "\\u", "\x00", "é",
     "kind: ", "apiVersion: snaploom.io/v1alpha1\n", "spec:\n", "  "]
)  # fmt: skip


def check(text: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.yaml"
        path.write_bytes(text)
        loaded = load([path])
    findings = (*loaded.findings, *loaded.placed(validate(loaded.resources, broken=loaded.broken)))
    for finding in findings:
        assert finding.message
        assert finding.line >= 1 or finding.code in ("SL103", "SL119")


@given(st.binary(max_size=200))
@settings(deadline=None)
def test_random_bytes_give_findings(raw: bytes) -> None:
    check(raw)


@given(st.lists(PIECES, max_size=60).map("".join))
@settings(deadline=None)
def test_random_yaml_gives_findings(text: str) -> None:
    check(text.encode())


@pytest.mark.slow
@given(st.integers(0, 2**32))
@settings(max_examples=examples(150), deadline=None)
def test_spoilt_declarations_give_findings(seed: int) -> None:
    chance = random.Random(seed)
    documents = copy.deepcopy(SOUND)
    for _ in range(chance.randint(1, 4)):
        spoil(chance.choice(documents), chance)
    check(yaml.dump_all(documents, Dumper=DUMPER).encode())


def spoil(raw: Any, chance: random.Random) -> None:
    """Replace, remove, add or rename something somewhere."""
    while isinstance(raw, dict | list) and raw:
        steps = list(raw) if isinstance(raw, dict) else list(range(len(raw)))
        step = chance.choice(steps)
        if chance.random() < 0.2 or not isinstance(raw[step], dict | list):
            break
        raw = raw[step]
    else:
        return
    match chance.randint(0, 4):
        case 0:
            del raw[step]
        case 1 if isinstance(raw, dict):
            raw[f"{step}x"] = raw.pop(step)
        case 2 if isinstance(raw, list):
            raw.append(copy.deepcopy(raw[step]))
        case _:
            raw[step] = copy.deepcopy(chance.choice(JUNK))


SOURCES, RELATIONSHIPS = 1000, 300


def large_model() -> list[Raw]:
    """Sources in groups, each group related to the root by a key of two components."""
    names = [f"source-{number}" for number in range(SOURCES)]
    groups = [names[number::RELATIONSHIPS] for number in range(RELATIONSHIPS)]
    columns = ["day", "a", "b", "c", "d", *(f"f{i}" for i in range(5))]
    fields = {"schemaFields": [{"name": name, "dataType": {"string": {}}} for name in columns]}
    return [
        files("customer"),
        *(files(name, **fields) for name in names[::2]),
        *(simple(name, "SELECT a, max(b) FROM c WHERE d > 1 GROUP BY a") for name in names[1::2]),
        *(
            relationship(
                f"relationship-{number}",
                (["customer", *group], [key("a"), key("b", "c", query="concat_ws('-', b, c)")]),
            )
            for number, group in enumerate(groups)
        ),
        output(
            **{
                "dataModel.otherDataSources": [
                    {"dataSource": name, "fieldName": name.replace("-", "_")} for name in names
                ],
                "dataModel.dataRelationships": [
                    {"name": f"relationship-{number}"} for number in range(RELATIONSHIPS)
                ],
            }
        ),
    ]


@pytest.mark.slow
def test_a_large_model_loads_and_validates_in_seconds(tmp_path: Path) -> None:
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    (tmp_path / "model.yaml").write_text(yaml.dump_all(large_model(), Dumper=dumper))
    begin = time.process_time()
    loaded = load([tmp_path])
    read = time.process_time()
    findings = validate(loaded.resources, broken=loaded.broken)
    end = time.process_time()
    assert (loaded.findings, findings) == ((), ())
    print(f"load {read - begin:.2f} s, validate {end - read:.2f} s")
    assert end - begin < 10  # processor time; about 2 s on a quiet machine


# Files of a folder that anybody may have filled: pipes hold up nobody, links lead nowhere.


NAME = "a.yaml"


def bound_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the path of a socket is short
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(path.name)
    os.chdir(here)


def pipe_behind_a_link(path: Path) -> None:
    os.mkfifo(path.with_name("pipe"))
    path.symlink_to("pipe")


OTHERS: dict[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo,
    "link to a pipe": pipe_behind_a_link,
    "socket": bound_socket,
    "link to a device": lambda path: path.symlink_to("/dev/zero"),
    "link to itself": lambda path: path.symlink_to(path.name),
}


def pages() -> ModuleType:
    """The module of the plug-in that draws pages; an error where there is none."""
    return sys.modules[plugged("snaploom.project", "page", "pages").__module__]


READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "Bundle": ("bundle.json", read_bundle_file),
    "log of queries": (
        "log", lambda file: refused_by("index", "advise", str(file.parent), "--log", str(file)),
    ),
    "lock of drivers": (LOCK_FILE, read_lock),
    "page": ("index.html", lambda file: pages().write_site(file.parent, {file.name: ""})),
    "Report": ("report.json", lambda file: pages().read_reports([file])),
}  # fmt: skip
WRITERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "file": ("file", lambda file: write_file(file, "new")),
    "kinds": ("datasources.snaploom.io.yaml", lambda file: write_crds(file.parent)),
    "lock of drivers": (LOCK_FILE, lambda file: write_lock(file, {})),
    "Report": ("report.json", lambda file: FileReport(file).write(Report.model_construct())),
    "schema": (EDITOR_SCHEMA_FILE, lambda file: write_schemas(file.parent)),
}


def refused_by(*command: str) -> None:
    if run_command([*command]) != 0:
        raise OSError


@pytest.mark.parametrize("other", OTHERS)
def test_only_plain_files_are_declarations(tmp_path: Path, other: str) -> None:
    OTHERS[other](tmp_path / NAME)
    for path in (tmp_path, tmp_path / NAME):
        findings = load([path]).findings
        assert [each.code for each in findings] == ["SL101"]
        assert "no plain file" in findings[0].found or "link" in findings[0].found


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("reader", READERS)
def test_nothing_but_a_plain_file_is_read(tmp_path: Path, reader: str, other: str) -> None:
    name, read = READERS[reader]
    OTHERS[other](tmp_path / name)
    with pytest.raises((SnaploomError, OSError)):
        read(tmp_path / name)


def test_link_to_a_plain_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("text")
    (tmp_path / "here").symlink_to("there")
    with open_plain(tmp_path / "here") as stream:
        assert stream.read() == b"text"


@pytest.mark.parametrize("writer", WRITERS)
def test_no_link_is_followed_where_something_is_written(tmp_path: Path, writer: str) -> None:
    theirs, mine = tmp_path / "theirs", tmp_path / "mine"
    theirs.mkdir()
    mine.write_text("mine")
    name, write = WRITERS[writer]
    for taken in (name, f".{name}.tmp", f".{name}.{os.getpid()}"):
        (theirs / taken).symlink_to(mine)
    write(theirs / name)
    assert mine.read_text() == "mine"
    assert not (theirs / name).is_symlink()


@given(before=st.one_of(st.none(), st.binary()), after=st.binary())
def test_file_that_is_replaced_keeps_its_permissions(tmp_path_factory, before, after):
    file = tmp_path_factory.mktemp("folder") / "file"
    if before is not None:
        file.write_bytes(before)
        file.chmod(0o640)
    write_file(file, after, is_durable=True)
    assert (file.read_bytes(), [*file.parent.iterdir()]) == (after, [file])
    assert before is None or file.stat().st_mode & 0o777 == 0o640


def test_file_that_cannot_be_written_in_full_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_file(tmp_path / "folder", "text")
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]
