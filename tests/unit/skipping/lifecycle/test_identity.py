"""What the same file means, as descriptions say it."""

import pyarrow as pa
import pytest

from snaploom.skipping.core.filetable import FileTable
from snaploom.skipping.lifecycle.identity import same_file


def said(uri: str, *etags: str | None) -> str:
    return same_file(uri, FileTable.of(pa.table({"etag": pa.array(etags, pa.large_string())})))


@pytest.mark.parametrize(
    ("uri", "etags", "words"),
    [
        ("file:/t", ("1.2", "3.4"), "milliseconds, inode and time of its last change"),
        ("s3a://b/t", ("a", "b"), "milliseconds, the store's tag of the content"),
        ("hdfs://h/t", ("hdfs.7", "hdfs.8"), "milliseconds, the number that HDFS gave the file"),
        ("webhdfs://h/t", ("hdfs.7",), "the number that HDFS gave the file"),
        ("hdfs://h/t", ("hdfs.7", None), "of 1 files not the last"),
        ("viewfs://h/t", (None, None), "a rewrite that keeps both is not noticed"),
        ("file:/t", ("1.2", None), "of 1 files not the last"),
    ],
)
def test_description_says_by_what_files_are_known(
    uri: str, etags: tuple[str | None, ...], words: str
) -> None:
    assert words in said(uri, *etags)


def test_nothing_is_said_where_no_file_is_indexed() -> None:
    assert said("file:/t") == ""
