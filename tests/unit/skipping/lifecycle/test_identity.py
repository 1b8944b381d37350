"""What the same file means, as descriptions state it."""

import pyarrow as pa
import pytest

from snaploom.skipping.core.filetable import FileTable
from snaploom.skipping.lifecycle.description import same_file


def described(uri: str, *etags: str | None) -> str:
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
def test_description_names_by_what_files_are_identified(
    uri: str, etags: tuple[str | None, ...], words: str
) -> None:
    assert words in described(uri, *etags)


def test_description_is_empty_where_no_file_is_indexed() -> None:
    assert described("file:/t") == ""
