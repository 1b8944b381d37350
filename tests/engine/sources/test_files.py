"""Files are listed as Hadoop and Spark see them, whatever their names, once and in order."""

import os

import pytest

from snaploom.errors import SourceNotReadable
from snaploom.files.listed import fingerprint, with_local_tag
from snaploom.sources.files.globs import (
    escape_glob,
    is_hidden,
    list_files,
    local_matches,
    split_glob,
)
from snaploom.sources.files.hadoop import HadoopFiles
from snaploom.spark.jvm import client_of

pytestmark = pytest.mark.spark

ODD_NAMES = [
    "we ird.csv", "pe%20rc.csv", "ünï-日本.csv", "se;mi.csv", "br{a,b}[x]*?.csv", "back\\slash.csv",
    "a=b,c.csv", "quo'te\".csv", "x{path=y; isDirectory=false; modification_time=1;.csv",
    "x; isDirectory=true; modification_time=1;.csv", "#h@!.csv",
]  # fmt: skip


def touch(folder, *names, content="a\n1\n"):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)


def listed(spark, folder, *globs):
    files = list_files(
        [f"{folder}/{glob}" for glob in globs], "DataSource/x", HadoopFiles(client_of(spark))
    )
    return [file.uri.removeprefix(f"file:{folder}/") for file in files]


@pytest.mark.parametrize(
    "glob",
    ["*", "*/*", "?.csv", "a*/b*.csv", "*/*/*", "a.csv", "gone/*", "a.csv/*", "day=*/a?.csv",
     "l*/*", ".*", "*/", "//a.csv", "[0-9]*", "day=[0-9]/*", "x\\*", "x\\?\\[1\\]*", "d\\{\\}/*"],
)  # fmt: skip
def test_local_files_are_listed_as_hadoop_lists_them(spark, tmp_path, glob):
    touch(tmp_path, "a.csv", "b.csv", "day=1/ab.csv", "a d/b.csv", "day=1/ü/b.csv", ".h/c.csv")
    touch(tmp_path, "1.csv", "٣.csv", "x*", "xy", "x?[1].csv", "d{}/a.csv")
    (tmp_path / "link").symlink_to(tmp_path / "day=1")
    (tmp_path / "linked.csv").symlink_to(tmp_path / "a.csv")
    (tmp_path / "lost.csv").symlink_to(tmp_path / "nothing")
    found = local_matches(f"file://{tmp_path}/{glob}")
    expected = HadoopFiles(client_of(spark)).matches(f"file://{tmp_path}/{glob}", "DataSource/x")
    assert sorted(f.identity for f in found if not f.folder) == sorted(
        with_local_tag(f).identity for f in expected if not f.folder
    )
    assert {f.uri for f in found} == {f.uri for f in expected}


@pytest.mark.parametrize("glob", ["[ab].csv", "{a,b}.csv", "x\\y", "../*", "*:*"])
def test_what_hadoop_may_see_otherwise_is_left_to_it(tmp_path, glob):
    touch(tmp_path, "a:b.csv")
    assert local_matches(f"file://{tmp_path}/{glob}") is None
    assert local_matches("/a/*") is None
    assert local_matches("file://host/*") is None


def test_files_of_all_globs_are_listed_once_and_in_order(spark, tmp_path):
    touch(tmp_path, "b.csv", "a.csv", "c.txt", "sub/d.csv")

    assert listed(spark, tmp_path, "*.csv", "a*", "*/*.csv", "none*") == [
        "a.csv", "b.csv", "sub/d.csv",
    ]  # fmt: skip


def test_folders_that_match_are_passed_over(spark, tmp_path):
    touch(tmp_path, "a.csv", "a.csv.d/b.csv")

    assert listed(spark, tmp_path, "*") == ["a.csv"]


def test_a_glob_that_matches_folders_only_is_a_warning(spark, tmp_path, caplog):
    touch(tmp_path, "day=1/a.csv")

    assert listed(spark, tmp_path, "*") == []
    assert "day" not in caplog.text
    assert f"DataSource/x: {tmp_path}/* matches folders only" in caplog.text


@pytest.mark.parametrize("glob", ["absent", "absent/*", "{x,y}/*"])
def test_a_glob_that_matches_nothing_lists_nothing(spark, tmp_path, glob):
    assert listed(spark, tmp_path, glob) == []


def test_hadoop_globs_match_what_they_name(spark, tmp_path):
    touch(tmp_path, "2019/a.csv", "2020/a.csv", "2021/a.csv", "2021/b.csv")

    assert listed(spark, tmp_path, "202[01]/a*", "{2019,none}/?.csv") == [
        "2019/a.csv", "2020/a.csv", "2021/a.csv",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_file_with_an_odd_name_is_listed_and_read_as_it_is(spark, tmp_path, name):
    touch(tmp_path, name, "other.csv")

    assert listed(spark, tmp_path, "*") == sorted([name, "other.csv"])
    read = spark.read.csv(escape_glob(f"file:{tmp_path}/{name}"), header=True)
    assert [row.a for row in read.collect()] == ["1"]


def test_names_and_folders_that_spark_hides_are_hidden(spark, tmp_path):
    touch(
        tmp_path, "a.csv", "_SUCCESS", ".hidden", "_p=1", "x._COPYING_",
        "_temporary/0/a.csv", ".staging/a.csv", "_day=1/a.csv", "day=1/_a.csv", "day=1/b.csv",
    )  # fmt: skip

    assert listed(spark, tmp_path, "*", "*/*", "*/*/*") == [
        "_day=1/a.csv", "_p=1", "a.csv", "day=1/b.csv",
    ]  # fmt: skip


@pytest.mark.parametrize("glob", ["*/*", "{day=1,day=2_$folder$}/*", "day=2_$folder$", "*"])
def test_objects_that_mark_folders_are_no_files(spark, tmp_path, glob):
    touch(tmp_path, "day=2_$folder$", "day=1/sub_$folder$", "day=1/a.csv")

    assert listed(spark, tmp_path, glob) == (["day=1/a.csv"] if "/" in glob else [])


@pytest.mark.parametrize(
    ("uri", "glob", "expected"),
    [
        ("file:/d/_raw/a", "/d/_raw/*", False),
        ("file:/d/_raw/a", "/d/*/*", True),
        ("file:/d/_raw/a", "/d/{_raw,x}/*", False),
        ("file:/d/.x/y/a", "/d/*/y/a", True),
        ("file:/.cache/d/a", "/.cache/*/*", False),
        ("hdfs://nn/_d/x/a", "/_d/*/a", False),
        ("file:/d/_a", "/d/_a", True),
    ],
)
def test_a_hidden_folder_is_read_only_when_the_glob_spells_it(uri, glob, expected):
    assert is_hidden(uri, glob) is expected


def test_a_glob_that_hadoop_refuses_is_one_clear_error(spark, tmp_path):
    with pytest.raises(SourceNotReadable, match="cannot be listed") as caught:
        list_files([f"{tmp_path}/[a"], "DataSource/x", HadoopFiles(client_of(spark)))

    assert caught.value.path == "spec.hdfsLike.sourceUriGlobs"


def test_an_unknown_file_system_is_one_clear_error(spark):
    with pytest.raises(SourceNotReadable) as caught:
        list_files(["nosuch://a/b"], "DataSource/x", HadoopFiles(client_of(spark)))

    assert "nosuch" in str(caught.value)
    assert "\tat " not in str(caught.value)


def test_a_name_with_a_colon_is_refused_rather_than_lost(spark, tmp_path):
    touch(tmp_path, "a.csv", "b:c.csv")

    with pytest.raises(SourceNotReadable, match="b:c"):
        listed(spark, tmp_path, "*")


def test_the_fingerprint_follows_the_files(spark, tmp_path):
    touch(tmp_path, "a.csv", "b.csv")
    os.utime(tmp_path / "a.csv", (1, 1))
    before = list_files([f"{tmp_path}/*"], "DataSource/x", HadoopFiles(client_of(spark)))
    os.utime(tmp_path / "a.csv", (2, 2))
    after = list_files([f"{tmp_path}/*"], "DataSource/x", HadoopFiles(client_of(spark)))

    assert fingerprint(before) == fingerprint(reversed(before))
    assert len({fingerprint(before), fingerprint(after), fingerprint(before[:1])}) == 3


@pytest.mark.parametrize("glob", ["*.csv", "{a,b}.csv"])
def test_the_fingerprint_follows_a_rewrite_that_keeps_length_and_time(spark, tmp_path, glob):
    touch(tmp_path, "a.csv")
    os.utime(tmp_path / "a.csv", (1, 1))
    before = list_files(
        [f"file://{tmp_path}/{glob}"], "DataSource/x", HadoopFiles(client_of(spark))
    )
    length = (tmp_path / "a.csv").stat().st_size
    (tmp_path / "a.csv").write_bytes(b"z" * length)
    os.utime(tmp_path / "a.csv", (1, 1))
    after = list_files([f"file://{tmp_path}/{glob}"], "DataSource/x", HadoopFiles(client_of(spark)))
    assert fingerprint(before) != fingerprint(after)
    assert before[0].changed > before[0].modified


def test_five_thousand_files_are_listed(spark, tmp_path):
    touch(tmp_path, *(f"d={i % 50}/f{i}.csv" for i in range(5000)))

    assert len(listed(spark, tmp_path, "*/*")) == 5000


@pytest.mark.parametrize(
    ("glob", "parts"),
    [
        ("/a/*/b/*.csv", ("/a/*", "b/*.csv")),
        ("s3a://b/{x,y}/?/c*", ("s3a://b/{x,y}", "?/c*")),
        ("/a/[ab]*/c", None),
        ("/a/b", None),
        ("/a/{b/*,c}/*", None),
    ],
)
def test_a_glob_is_split_after_its_first_wildcard(glob, parts):
    assert split_glob(glob) == parts


def test_folders_listed_at_the_same_time_give_what_one_question_gives(spark, tmp_path, monkeypatch):
    touch(tmp_path, *(f"day={n}[{n % 3}]/{m}.csv" for n in range(20) for m in range(7)))
    touch(tmp_path, "day=3[0]/_hidden.csv", "_other/x.csv", "file.csv")
    at_once = listed(spark, tmp_path, "*/*", "day=1*/[0-3].*")
    monkeypatch.setattr("snaploom.sources.files.hadoop.split_glob", lambda _glob: None)
    monkeypatch.setattr("snaploom.sources.files.hadoop.STATUSES_AT_ONCE", 3)

    assert at_once == listed(spark, tmp_path, "*/*", "day=1*/[0-3].*")
    assert len(at_once) == 140
