"""`snaploom init --from`: what is refused, what is asked, what is written."""

import json
import secrets
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.declared.shop import CommandResult, snaploom
from support.discovery.datasets import shop
from support.servers.s3servers import BUCKET, S3Server, environment_of

from snaploom.files.stores import open_store
from snaploom.plugins.discovery import profiles, textfiles
from snaploom.run.driverlock import LOCK_FILE, write_lock
from snaploom.sources.databases.drivers import DRIVER_JAR_BY_NAME


def refused(result: CommandResult, code: int, *texts: str) -> None:
    assert result.code == code, result.err
    assert sum(line.startswith("error ") for line in result.err.splitlines()) == 1
    for text in texts:
        assert text in result.err
    assert "Traceback" not in result.err
    assert "internal error" not in result.err


@pytest.mark.parametrize(
    ("uri", "code", "text"),
    [
        ("nowhere", 1, "there are no files here"),
        ("", 2, "found:    an empty text"),
        ("empty", 1, "there are no files here"),
        ("junk", 1, "README.md: text for people"),
        ("junk/*.csv", 1, "name the folder above"),
        ("jdbc:oracle:thin:@//db/shop", 2, "databases of this kind are not looked into"),
        ("hdfs://cluster/data", 2, "hdfs: is not looked into"),
        ("s3://AKIA:very-secret-1@bucket/x", 2, "a password in a URL"),
        ("ftp://server/x", 1, "no store for the folder"),
    ],
)
def test_what_cannot_be_read_is_one_error(tmp_path, monkeypatch, uri, code, text):
    (tmp_path / "empty").mkdir()
    (tmp_path / "junk").mkdir()
    (tmp_path / "junk" / "README.md").write_text("hello")
    monkeypatch.chdir(tmp_path)
    result = snaploom("init", "model", "--from", uri)
    refused(result, code, text)
    assert "very-secret-1" not in result.err
    assert not (tmp_path / "model").exists()


def test_a_full_folder_and_lone_options_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,name\n1,x\n")
    refused(snaploom("init", tmp_path, "--from", tmp_path), 2, "this folder is not empty")
    refused(snaploom("init", tmp_path / "m", "--root", "a"), 2, "add --from")
    refused(snaploom("init", tmp_path / "m", "--only", "a"), 2, "add --from")
    for command in ("plan", "run"):
        refused(snaploom(command, "-f", tmp_path, "wide"), 2, "names stand in front of -f")


def test_a_driver_that_is_not_locked_is_installed_before_the_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with duckdb.connect("shop.duckdb") as opened:
        opened.execute("CREATE TABLE sales AS SELECT * FROM range(9) sales(id)")
    commands = snaploom("init", "m", "--from", "shop.duckdb").out.partition("Next:\n")[2]
    assert commands.startswith(
        "  snaploom drivers install duckdb --folder m\n  snaploom validate m\n"
    )
    write_lock(Path(LOCK_FILE), DRIVER_JAR_BY_NAME)
    assert "drivers install" not in snaploom("init", "n", "--from", "shop.duckdb").out
    Path(LOCK_FILE).write_text("no lock")
    assert "drivers install" in snaploom("init", "o", "--from", "shop.duckdb").out


@pytest.mark.parametrize("options", [(), ("--from", "../data")])
def test_a_folder_beside_the_working_one_is_written_as_it_is_read(tmp_path, monkeypatch, options):
    shop().write(tmp_path / "data")
    (tmp_path / "here").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    assert snaploom("init", "../link/../model", *options).code == 0
    assert "0 errors" in snaploom("validate", tmp_path / "model").out


def test_an_unknown_root_is_answered_with_the_nearest(tmp_path: Path) -> None:
    shop().write(tmp_path / "data")
    arguments = ("init", tmp_path / "model", "--from", tmp_path / "data", "--root")
    refused(snaploom(*arguments, "order"), 2, "did you mean `orders`?")
    assert snaploom(*arguments, "orders").code == 0
    text = (tmp_path / "model" / "output.yaml").read_text()
    assert "name: orders-wide" in text
    assert "groupBy: {fieldNames: [order_id]}" in text


def test_texts_that_are_read_as_null_are_printed(tmp_path: Path) -> None:
    (tmp_path / "plants.csv").write_text("id,fuel,a,b,c,d,e\n1,NA,NA,1,-,1,NA\n2,oil,2,NA,2,NA,1\n")
    result = snaploom("init", tmp_path / "model", "--from", tmp_path)
    assert "`-`, `NA` is NULL in a, b, c, d and others" in result.out


def test_evidence_and_what_was_left_out_are_written_and_printed(tmp_path: Path) -> None:
    shop().write(tmp_path / "data")
    result = snaploom("init", tmp_path / "model", "--from", tmp_path / "data")
    evidence = "100.0 % of 6 values of orders.store_id are in stores.id; same name"
    assert evidence in result.out
    assert f"# {evidence}" in (tmp_path / "model" / "relationships.yaml").read_text()
    for name in ("README.md", "archive.zip", "empty.csv", "notes.txt"):
        assert f"/{name}: " in result.out
        assert f"/{name}: " in (tmp_path / "model" / "sources.yaml").read_text()


def test_a_column_whose_days_are_snapshots_is_printed(tmp_path: Path) -> None:
    visits = "".join(f"{n},2024-03-{n % 5 + 1:02},{n % 7}\n" for n in range(90))
    (tmp_path / "visits.csv").write_text("visit_no,visit_date,mood\n" + visits)
    result = snaploom("init", tmp_path / "model", "--from", tmp_path / "visits.csv")
    assert "visits: key visit_no; a snapshot for each day of visit_date (5 days of" in result.out


def test_hostile_names_are_text_in_what_is_written(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "a.json").write_text('{"id": 1, "x: {}\\n---\\nkind: \\u001b[31mPod": 2}\n')
    deep = '{"a":[' * 20 + "1" + "]}" * 20  # what is deeper than a dozen levels is its text
    (data / "c.json").write_text(f'{{"id": 1, "v": {deep}}}\n')
    (data / "b\x1b[31m.csv").write_text("id,a\n1,2\n")
    result = snaploom("init", tmp_path / "model", "--from", data)
    assert result.code == 0, result.err
    text = (tmp_path / "model" / "sources.yaml").read_text()
    assert "\x1b" not in result.out + text
    assert "\nkind: \x1b" not in text
    assert snaploom("validate", "-f", tmp_path / "model").code == 0


WIDE = [f"c{number}" for number in range(2_001)]
"""One column more than a source has."""


def two_files(first: str, second: str, ending: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        for number, text in enumerate((first, second)):
            (folder / f"a-2024-01-0{number + 1}.{ending}").write_text(text)

    return write


@pytest.mark.parametrize(
    "write",
    [
        two_files("a\n1\n", f"{','.join(WIDE)}\n{'1,' * 2_000}1\n", "csv"),
        two_files("a\n1\n", f"{','.join(WIDE * 20)}\n1\n", "csv"),
        two_files(f"a{'x' * 2_000_000}\n1\n", "a\n1\n", "csv"),
        two_files(json.dumps(dict.fromkeys(WIDE, 1)), "{}", "json"),
        two_files('{"a": 1}\n', "".join(f'{{"{name}": 1}}\n' for name in WIDE), "json"),
        lambda folder: pq.write_table(
            pa.table({name: [1] for name in WIDE}), folder / "a.parquet"
        ),
    ],
    ids=["csv", "longer csv", "long csv", "json", "json lines", "parquet"],
)  # fmt: skip
def test_more_columns_than_a_source_has_are_one_sentence_and_not_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path], None]
) -> None:
    looked_at: list[object] = []
    for module in (textfiles, profiles):
        monkeypatch.setattr(module, "column_profiles", lambda _, names: looked_at.append(names))
    (tmp_path / "data").mkdir()
    write(tmp_path / "data")
    found = snaploom("init", str(tmp_path / "new"), "--from", str(tmp_path / "data"))
    refused(found, 1, "SourceNotReadable")
    assert "more than 2,000 columns" in found.err or "a header of" in found.err
    assert looked_at == []


def test_a_bucket_is_read_as_a_folder(tmp_path: Path, versitygw: S3Server) -> None:
    shop().write(tmp_path / "data")
    uri = f"s3://{BUCKET}/{secrets.token_hex(4)}"
    with environment_of(versitygw):
        store = open_store(uri, create=True)
        for file in (tmp_path / "data").rglob("*.*"):
            if file.is_file():
                key = file.relative_to(tmp_path / "data").as_posix()
                store.put_if_absent(key, file.read_bytes())
        result = snaploom("init", tmp_path / "model", "--from", uri)
    assert result.code == 0, result.err
    assert "100.0 % of 6 values of orders.store_id are in stores.id" in result.out
    text = (tmp_path / "model" / "sources.yaml").read_text()
    assert f"{uri.replace('s3:', 's3a:')}/orders_????????.csv" in text
    assert versitygw.secret not in text
    assert snaploom("validate", "-f", tmp_path / "model").code == 0
