"""Snapshots of folders are enumerated without their files, and are those of a full listing."""

import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.declared.sources import READ_TIME, by_field, files, without_spark
from support.servers.s3servers import BUCKET, S3Server, environment_of

from snaploom.errors import SnapshotValueInvalid, SourceFileUnmatched, SourceNotReadable
from snaploom.files.listed import ListedFile, NoOtherFiles, SparkNeeded, last_change, local_tag
from snaploom.files.stores import open_store
from snaploom.models.common import EpochNanos
from snaploom.models.datasource import HdfsLike
from snaploom.plan.intervals import READ_TIME as AS_OF_NOW
from snaploom.plan.intervals import SourceSnapshots
from snaploom.policy.addresses import S3, kind_of
from snaploom.skipping.core.filetable import FileFacts, last_changes
from snaploom.sources.files.buckets import A_PAGE, BucketFiles
from snaploom.sources.files.globs import (
    files_of_folders,
    folders_with_files,
    is_hidden,
    list_files,
    names_beside,
)
from snaploom.sources.files.snapshots import FileListing, PathSnapshots, path_snapshots

DAY = 86_400
FOLDERS = ("at=0", f"at={DAY}", f"at={2 * DAY}", "at=00", "_at=0", ".at=0", "at=x", "other")
NAMES = (
    "a.json",
    "b.json",
    "_c.json",
    ".d.json",
    "_k=1.json",
    "e.csv",
    "7.json",
    "a[1].json",
    "é.json",
    "f.json._COPYING_",
)
GLOBS = (
    "*/*",
    "at=[0-9]*/*",
    "at=*/[0-9]*.json",
    "at=*/a\\[1\\].json",
    "at=*/*.json",
    "at=*/?.json",
    "*/a.json",
    "at=0/*",
    "_at=*/*",
    "at=*/*/*",
)


def source(place: Path, *globs: str, data_format: str = "json", **more: object) -> PathSnapshots:
    """The listing of a source by days in the names of folders; nothing is listed yet."""
    declared = {
        "format": data_format,
        "sourceUriGlobs": [f"file://{place}/{glob}" for glob in globs],
        "sourceUriPrefix": f"file://{place}/at={{at:LONG}}/",
        "snapshot": {"fromFieldValue": {"fieldName": "at", "timeFormat": "UNIX_SECONDS"}},
        **more,
    }
    listing = FileListing("DataSource/x", HdfsLike.model_validate(declared), NoOtherFiles())
    found = path_snapshots(listing)
    assert found is not None
    return found


def write(place: Path, *keys: str) -> None:
    for key in keys:
        (place / key).parent.mkdir(parents=True, exist_ok=True)
        (place / key).write_text("{}")


def seconds(*times: int) -> tuple[EpochNanos, ...]:
    return tuple(EpochNanos(time * 10**9) for time in times)


Change = tuple[str, str, str]
CHANGES = st.tuples(
    st.sampled_from(("write", "delete", "folder", "link", "lost link")),
    st.sampled_from(FOLDERS),
    st.sampled_from(NAMES),
)


def change(place: Path, how: str, folder: str, name: str) -> None:
    path = place / folder / name
    path.parent.mkdir(exist_ok=True)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    match how:
        case "write":
            path.write_text("{}" * len(os.listdir(path.parent)))
        case "folder":
            path.mkdir()
            (path / "a.json").write_text("{}")
        case "link":
            path.symlink_to(place / "aim")
        case "lost link":
            path.symlink_to(place / "nothing")


def answer(find: PathSnapshots, *, is_full: bool) -> object:
    """Snapshots with their files, or the kind of error."""
    try:
        if is_full:
            return dict(find.by_instant)
        return {time: find.files_of(time) for time in find.listed.times}
    except (SnapshotValueInvalid, SourceFileUnmatched, SparkNeeded) as error:
        return type(error)


@settings(max_examples=150, deadline=None)
@given(
    changes=st.lists(st.lists(CHANGES, max_size=8), min_size=1, max_size=4),
    globs=st.lists(st.sampled_from(GLOBS), min_size=1, max_size=2, unique=True),
)
def test_every_enumeration_equals_a_full_listing(changes, globs):
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / "aim").write_text("{}")
        for some in changes:
            for each in some:
                change(place, *each)
            expected = answer(source(place, *globs), is_full=True)
            assert answer(source(place, *globs), is_full=False) == expected


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths whose status was asked for."""
    asked: list[str] = []
    stat = os.stat
    monkeypatch.setattr(
        os, "stat", lambda path, **how: asked.append(str(path)) or stat(path, **how)
    )
    return asked


def test_files_are_looked_at_when_their_snapshot_is_read(tmp_path, looked_at) -> None:
    write(tmp_path, "at=0/a.json", f"at={DAY}/a.json", f"at={DAY}/b.json")
    found = source(tmp_path, "*/*.json")
    assert found.listed.times == seconds(0, DAY)
    assert [path for path in looked_at if path.endswith(".json")] == []
    assert [file.file.name for file in found.files_of(*seconds(DAY))] == ["a.json", "b.json"]
    assert {Path(path).parent.name for path in looked_at if path.endswith(".json")} == {f"at={DAY}"}


def test_a_file_that_is_written_anew_is_seen_as_it_is_when_it_is_read(tmp_path) -> None:
    write(tmp_path, "at=0/a.json")
    before = source(tmp_path, "*/*.json").files_of(*seconds(0))
    (tmp_path / "at=0/a.json").write_text("[]")  # of the same length
    after = source(tmp_path, "*/*.json").files_of(*seconds(0))
    assert before[0].file.length == after[0].file.length
    assert before[0].file.identity != after[0].file.identity


def test_a_snapshot_of_which_a_run_knows_the_files_keeps_them(tmp_path) -> None:
    write(tmp_path, "at=0/a.json")
    found = source(tmp_path, "*/*.json")
    first = found.files_of(*seconds(0))
    write(tmp_path, "at=0/b.json")
    assert found.files_of(*seconds(0)) == first
    again = path_snapshots(found.listing.asking(NoOtherFiles()))
    assert again.files_of(*seconds(0)) == first
    assert len(source(tmp_path, "*/*.json").files_of(*seconds(0))) == 2


def test_a_snapshot_whose_files_went_after_it_was_enumerated_has_none(tmp_path) -> None:
    write(tmp_path, "at=0/a.json")
    found = source(tmp_path, "*/*.json")
    assert found.listed.times == seconds(0)
    (tmp_path / "at=0/a.json").unlink()
    assert found.files_of(*seconds(0)) == ()


def test_an_older_day_that_arrives_late_is_enumerated(tmp_path) -> None:
    write(tmp_path, f"at={DAY}/a.json")
    assert source(tmp_path, "*/*.json").listed.times == seconds(DAY)
    write(tmp_path, "at=0/a.json")
    assert source(tmp_path, "*/*.json").listed.times == seconds(0, DAY)


def test_a_file_without_bytes_fails_the_snapshot_that_has_it_and_no_other(tmp_path) -> None:
    write(tmp_path, "at=0/a.parquet", f"at={DAY}/a.parquet")
    (tmp_path / "at=0/a.parquet").write_bytes(b"")
    found = source(tmp_path, "*/*.parquet", data_format="parquet")
    assert found.listed.times == seconds(0, DAY)
    assert len(found.files_of(*seconds(DAY))) == 1
    with pytest.raises(SourceNotReadable, match="1 of 1 files have zero bytes"):
        found.files_of(*seconds(0))


def test_folders_of_an_output_are_listed_by_its_manifest(tmp_path) -> None:
    place = tmp_path / "data"
    write(place, "at=0/a.json")
    assert source(place, "*/*.json").listing.folders is not None
    write(tmp_path, "snaploom.json")
    assert source(place, "*/*.json").listing.folders is None


TAGS = st.one_of(
    st.none(),
    st.sampled_from(["", "d41d8cd98f", "1.2", "1.2.3", "1.2\n", "x1.2", "1x2", ".", "1."]),
    st.builds("{}.{}".format, st.integers(0, 10**20 - 1), st.integers(0, 2**64 - 1)),
)


def test_facts_are_those_of_each_file(tmp_path: Path) -> None:
    facts, statuses = FileFacts(), []
    for number in range(3):
        path = tmp_path / str(number)
        path.write_bytes(b"x" * number)
        os.utime(path, ns=(0, 1_600_000_000_123_456_789 + number))
        statuses.append(path.stat())
        facts.add(statuses[-1])
    assert facts.lengths.to_pylist() == [0, 1, 2]
    assert facts.modified.to_pylist() == [each.st_mtime_ns // 1_000_000 for each in statuses]
    assert facts.tags.to_pylist() == [local_tag(each) for each in statuses]


def test_no_files_have_no_facts() -> None:
    facts = FileFacts()
    assert facts.tags == pa.array([], pa.large_string())
    assert list(last_changes(facts.modified, facts.tags)) == []


@given(rows=st.lists(st.tuples(st.integers(-(10**14), 10**14), TAGS), max_size=9))
def test_newest_times_are_those_of_each_file(rows: list[tuple[int, str | None]]) -> None:
    modified = pa.array([at for at, _ in rows], pa.int64())
    tags = pa.array([tag for _, tag in rows], pa.large_string())
    assert last_changes(modified, tags).tolist() == [last_change(at, tag) for at, tag in rows]


KEYS = ("a/1/x.parquet", "a/1/y.csv", "a/2/x.parquet", "a/_tmp/x.parquet", "a/1/.x", "a/z.parquet")


@pytest.fixture(params=["versitygw", "moto"])
def server(request: pytest.FixtureRequest) -> Iterator[S3Server]:
    found: S3Server = request.getfixturevalue(request.param)
    with environment_of(found):
        yield found


@pytest.fixture
def place(server: S3Server) -> str:
    """A folder with some objects of one byte."""
    place = f"s3a://{BUCKET}/{secrets.token_hex(8)}"
    store = open_store(place, create=True)
    for key in KEYS:
        store.put(key, b"1")
    return place


def matches(place: str, glob: str) -> list[str]:
    found = BucketFiles(os.environ).matches(f"{place}/{glob}", "DataSource/x")
    return sorted(f"{file.uri.removeprefix(place)}{'/' * file.folder}" for file in found)


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("a/*/*.parquet", ["/a/1/x.parquet", "/a/2/x.parquet", "/a/_tmp/x.parquet"]),
        ("a/?/x.*", ["/a/1/x.parquet", "/a/2/x.parquet"]),
        ("*/1/y.csv", ["/a/1/y.csv"]),
        ("a/*", ["/a/1/", "/a/2/", "/a/_tmp/", "/a/z.parquet"]),
        ("a//z.parquet", ["/a/z.parquet"]),
        ("a/1", ["/a/1/"]),
        ("a/*/1", []),
        ("a/*/nothing/*", []),
        ("b/*", []),
        ("b", []),
    ],
)
def test_glob_matches_names_step_by_step(place, glob, expected) -> None:
    assert matches(place, glob) == expected


FOLDER_GLOBS = ("a/*/*.parquet", "a/*/*", "a/?/y.*", "*/1/y.csv", "a/*", "b/*/*", "a/*/.x", "*/*")


@pytest.mark.parametrize("glob", FOLDER_GLOBS)
def test_folders_of_a_glob_are_those_of_its_files(place, glob) -> None:
    whole = f"{place}/{glob}"
    folders = BucketFiles(os.environ).folders(whole, partial(is_hidden, glob=whole))
    listed = list_files([whole], "DataSource/x", BucketFiles(os.environ))
    assert sorted(folders) == sorted({file.uri.rpartition("/")[0] for file in listed})


def test_a_folder_of_a_bucket_with_much_below_it_is_asked_for_its_own_files(place) -> None:
    store = open_store(place, create=False)
    for number in range(A_PAGE + 1):
        store.put(f"c/1/below/{number:04d}.parquet", b"1")
    glob = f"{place}/c/*/*.parquet"
    ask = partial(BucketFiles(os.environ).folders, glob, partial(is_hidden, glob=glob))
    assert ask() == []
    store.put("c/1/z.parquet", b"1")
    assert ask() == [f"{place}/c/1"]


def test_files_of_a_folder_of_a_bucket_are_listed_when_they_are_read(place) -> None:
    (folder,) = folders_with_files([f"{place}/a/1/*.csv"], BucketFiles(os.environ)) or ()
    files = files_of_folders([folder], "DataSource/x", BucketFiles(os.environ))
    assert [file.name for file in files] == ["y.csv"]


def test_files_have_what_a_run_goes_by(place) -> None:
    (file,) = list_files([f"{place}/a/1/x.*"], "DataSource/x", BucketFiles(os.environ))
    info = open_store(f"{place}/a/1/", create=False).head("x.parquet")
    assert (file.uri, file.length) == (f"{place}/a/1/x.parquet", 1)
    assert file.modified == info.modified // 1_000_000
    assert file.etag == info.etag.strip('"')


def test_hidden_files_are_left_out_as_for_every_store(place) -> None:
    found = list_files([f"{place}/a/*/*"], "DataSource/x", BucketFiles(os.environ))
    assert [file.name for file in found] == ["x.parquet", "y.csv", "x.parquet"]


def test_mark_of_a_folder_is_no_file(server, place) -> None:
    key = f"{place.removeprefix(f's3a://{BUCKET}/')}/a/1/"
    server.put(key)
    assert matches(place, "a/1/*") == ["/a/1/.x", "/a/1/x.parquet", "/a/1/y.csv"]
    assert "/a/1/" in matches(place, "a/*")


MARKS = ("a/1_$folder$", "a/2/below_$folder$", "a/3_$folder$", "a/4/below", "a/5/")
"""Objects without a byte, by which clients mark folders; `a/4/below` is one where it has a file."""


@pytest.mark.parametrize("glob", ["a/*", "a/*/*", "a/?/*", "a/3_$folder$", "a/*/below_$folder$"])
def test_marks_of_folders_are_neither_files_nor_folders_with_some(request, server, place, glob):
    whole, store = f"{place}/{glob}", open_store(place, create=False)
    store.put("a/4/below/x", b"1")
    store.put("a/5/x", b"1")
    is_file_system = request.node.callspec.params["server"] == "versitygw"

    def listed() -> tuple[list[ListedFile], list[str]]:
        files = BucketFiles(os.environ)
        folders = files.folders(whole, partial(is_hidden, glob=whole))
        return [*list_files([whole], "DataSource/x", files)], sorted(folders)

    before = listed()
    for key in MARKS:
        if key != "a/4/below" or not is_file_system:  # in which a file is no folder
            server.put(f"{place.removeprefix(f's3a://{BUCKET}/')}/{key}")
    assert listed() == before


@pytest.mark.parametrize("glob", ["a/{1,2}/*", "a/[12]/*", "a/../a/*", "a/\\*"])
def test_globs_that_hadoop_reads_otherwise_are_left_to_it(place, glob) -> None:
    with pytest.raises(SparkNeeded):
        matches(place, glob)


def test_folder_with_an_odd_name_is_left_to_hadoop(place) -> None:
    open_store(place, create=True).put("a/1/a:b", b"1")
    with pytest.raises(SparkNeeded):
        matches(place, "a/1/*")
    assert matches(place, "a/2/*") == ["/a/2/x.parquet"]


@pytest.mark.parametrize(
    "uri", ["s3a://no-such-bucket-here/a/*", f"s3a://{BUCKET}/", "s3a://*/a", "hdfs://host/a"]
)
def test_places_that_cannot_be_listed_are_left_to_hadoop(server, uri) -> None:
    with pytest.raises(SparkNeeded):
        BucketFiles(os.environ).matches(uri, "DataSource/x")


def test_objects_and_folders_exist_and_ends_are_read(place) -> None:
    files = BucketFiles(os.environ)
    assert [files.exists(f"{place}/{key}") for key in ("a/z.parquet", "a/1", "a/z")] == [
        True, True, False,
    ]  # fmt: skip
    open_store(place, create=True).put("long", b"123456789")
    assert files.end(ListedFile(f"{place}/long", 9, 0), 4) == b"6789"
    with pytest.raises(SparkNeeded):
        files.end(ListedFile(f"{place}/gone", 9, 0), 4)


@pytest.mark.parametrize(
    ("uri", "expected"), [("s3://b/a", True), ("s3a://b/a", True), ("gs://b/a", False)]
)
def test_buckets_are_those_of_s3(uri, expected) -> None:
    assert (kind_of(uri) is S3) is expected


# Whether a table of Iceberg's has a version, by its folder.


FULL: dict[str, Any] = {
    "format-version": 2, "current-snapshot-id": 7, "refs": {"main": {"snapshot-id": 7}},
}  # fmt: skip


def version(folder: Path, number: int, **changes: Any) -> Path:
    place = folder / "metadata"
    place.mkdir(exist_ok=True)
    path = place / f"v{number}.metadata.json"
    path.write_text(json.dumps({**FULL, **changes}))
    hint = place / "version-hint.text"
    if not hint.exists():
        hint.write_text(str(number))
    return path


def declared(folder: Path, **settings: Any) -> dict[str, Any]:
    return files("iceberg", f"file://{folder}", **settings)


EMPTY = {"current-snapshot-id": -1, "refs": {}}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({}, AS_OF_NOW),
        ({"refs": None}, AS_OF_NOW),
        (EMPTY, SourceSnapshots()),
        ({"current-snapshot-id": None, "refs": {}}, SourceSnapshots()),
    ],
    ids=["versions", "format version 1", "no version", "none at all"],
)
def test_table_is_one_snapshot_once_it_has_a_version(tmp_path, document, expected) -> None:
    version(tmp_path, 3, **document)
    assert without_spark(declared(tmp_path, snapshot=READ_TIME)) == expected


def test_newest_document_counts_where_the_hint_is_behind(tmp_path) -> None:
    for number, changes in ((1, EMPTY), (2, EMPTY), (3, {})):
        version(tmp_path, number, **changes)
    assert without_spark(declared(tmp_path, snapshot=READ_TIME)) == AS_OF_NOW


def without_hint(folder: Path) -> None:
    (folder / "metadata/version-hint.text").unlink()


def odd_hint(folder: Path) -> None:
    (folder / "metadata/version-hint.text").write_text("00000-abc")


def hint_ahead(folder: Path) -> None:
    (folder / "metadata/version-hint.text").write_text("9")


def compressed(folder: Path) -> None:
    (folder / "metadata/v2.gz.metadata.json").write_bytes(b"")


def no_json(folder: Path) -> None:
    (folder / "metadata/v1.metadata.json").write_text("{")


def no_table(folder: Path) -> None:
    (folder / "metadata/v1.metadata.json").write_text("{}")


def contradiction(folder: Path) -> None:
    version(folder, 1, refs={})


@pytest.mark.parametrize(
    "change", [without_hint, odd_hint, hint_ahead, compressed, no_json, no_table, contradiction]
)
def test_odd_folder_is_left_to_the_library_of_iceberg(tmp_path, change) -> None:
    version(tmp_path, 1)
    change(tmp_path)
    with pytest.raises(SparkNeeded):
        without_spark(declared(tmp_path, snapshot=READ_TIME))


@pytest.mark.parametrize(
    "spec",
    [
        files("iceberg", "lake.db.levels"),
        files("iceberg", "/a/path/without/scheme"),
        files("iceberg", "file:///table", snapshot=by_field("day", "ISO8601_DATE")),
        files("delta", "file:///table"),
    ],
    ids=["name in a catalog", "no scheme", "snapshots by a column", "delta"],
)
def test_other_tables_are_left_to_spark(spec) -> None:
    assert without_spark(spec) is None


def test_table_on_another_store_is_left_to_spark() -> None:
    with pytest.raises(SparkNeeded):
        without_spark(files("iceberg", "hdfs://host/table"))


# Files beside those of a source that are named alike, and that no source reads.


def beside(folder: Path, names: str, glob: str, *others: str) -> list[str]:
    for name in names.split():
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        (folder / name).write_text("x")
    globs = [f"file://{folder}/{each}" for each in (glob, *others)]
    return list(names_beside(globs[:1], globs, NoOtherFiles(), {})[1])


@pytest.mark.parametrize(
    "name",
    [
        "sales_20240505.csv", "sales-2024-05-05.csv", "sales_2024-05-05.CSV",
        "Sales_2024-05-05.csv",
        "sales_2024-05-05.csv.gz", "sales_5.5.2024.csv", "sales_2024-05-05_final.csv", "sales.csv",
        "sales_2024-05-05T10.csv", "sales_05-May-2024.csv", "sales_2024-05-05.json",
        "sales_2024-05-05.xlsx",
    ],
)  # fmt: skip
def test_a_file_of_another_form_is_found(tmp_path: Path, name: str) -> None:
    names = f"sales_2024-05-01.csv {name}"
    assert beside(tmp_path, names, "sales_????-??-??.csv") == [name]


@pytest.mark.parametrize(
    "name",
    [
        "sales_2024-05-02.csv", "returns_20240505.csv", "sales_returns_2024-05-01.csv",
        "sales_2024-05-01.csv.md5", "_sales_20240505.csv", ".sales_20240505.csv", "readme.csv",
        "sales_20240505.csv/part", "sales_2024-05-01.parquet", "sales_2024-05-01.csv.gz",
    ],
)  # fmt: skip
def test_other_files_are_none_of_the_source(tmp_path: Path, name: str) -> None:
    assert beside(tmp_path, f"sales_2024-05-01.csv {name}", "sales_????-??-??.csv") == []


def test_a_file_that_another_source_reads_is_read(tmp_path: Path) -> None:
    names = "sales_2024-05-01.csv sales_20240505.csv"
    assert beside(tmp_path, names, "sales_????-??-??.csv", "sales_[0-9]*.csv") == []


def test_files_below_folders_of_dates_are_looked_at(tmp_path: Path) -> None:
    names = "2024-05-01/sales.csv 2024-05-02/sales.CSV 2024-05-02/a/sales.csv"
    assert beside(tmp_path, names, "*/sales.csv") == ["sales.CSV"]


def test_no_file_is_beside_where_a_glob_has_choices(tmp_path: Path) -> None:
    assert beside(tmp_path, "a_1.csv a-2.csv", "a_?.{csv,tsv}") == []


@pytest.mark.parametrize("name", [b"notes at 10:30.txt", b"sales_2024\xff.csv"])
def test_a_name_in_doubt_beside_a_source_ends_nothing(tmp_path: Path, name: bytes) -> None:
    (tmp_path / os.fsdecode(name)).write_text("x")
    assert beside(tmp_path, "sales_2024-05-01.csv", "sales_????-??-??.csv") == []


def test_a_pipe_beside_a_source_ends_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "queue")
    assert beside(tmp_path, "sales_2024-05-01.csv", "sales_????-??-??.csv") == []


def test_controls_in_names_are_escaped_and_long_names_cut(tmp_path: Path) -> None:
    (tmp_path / f"sales_2024\n05-02{chr(10) * 99}.csv").write_text("x")
    (found,) = beside(tmp_path, "sales_2024-05-01.csv", "sales_????-??-??.csv")
    assert found.startswith(r"sales_2024\x0a05-02\x0a")
    assert len(found) == 255
