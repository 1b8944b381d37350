"""What is wrong with a declaration, all at once, without Spark."""

import pyarrow as pa
import pytest
from support.skipping.faketarget import FakeTarget
from support.skipping.indexstores import folder_store

from snaploom.errors import IndexNotPossible
from snaploom.models.skippingindex import Index, IndexState
from snaploom.skipping.core.filetable import FileTable
from snaploom.skipping.lifecycle import operations
from snaploom.skipping.lifecycle.declaration import (
    Declaration,
    DeclarationNotPossible,
    problems,
    refuse_problems,
)
from snaploom.skipping.lifecycle.description import same_file
from snaploom.skipping.stores.folder import FolderIndexStore

TARGET = FakeTarget(columns={"a": "bigint", "a_minmax_1": "bigint", "p": "int"})


def min_max(*columns: str) -> tuple[Index, ...]:
    return tuple(Index(type="MIN_MAX", column=column) for column in columns)


WRONG = {
    "nothing": (Declaration(()), ["indexes"]),
    "unknown columns": (Declaration(min_max("a", "b", "c")), ["indexes[1]", "indexes[2]"]),
    "unknown type": (Declaration((Index(type="MAGIC", column="a"),)), ["indexes[0]"]),
    "partition": (Declaration((Index(type="PARTITION", column="p"),)), ["indexes[0]"]),
    "twice": (Declaration(min_max("a", "a")), ["indexes[1]"]),
    "clash": (Declaration(min_max("a", "a_minmax_1"), form="XSKIPPER"), ["indexes"]),
    "form": (Declaration(min_max("a"), form="SQUARE"), ["indexes"]),
    "keys": (Declaration((Index(type="MIN_MAX", column="a", key_label="k"),)), ["indexes"]),
}


@pytest.mark.parametrize(("declaration", "paths"), WRONG.values(), ids=WRONG)
def test_everything_wrong_is_found_by_its_field(declaration: Declaration, paths: list[str]) -> None:
    found = problems(declaration, TARGET)
    assert [path for path, _ in found] == paths
    with pytest.raises(IndexNotPossible):
        refuse_problems(declaration, TARGET)


def test_names_that_clash_are_no_fault_of_the_native_form() -> None:
    assert problems(Declaration(min_max("a", "a_minmax_1")), TARGET) == ()


def test_a_resource_gets_each_problem_even_the_only_one() -> None:
    with pytest.raises(DeclarationNotPossible) as refusal:
        refuse_problems(Declaration(min_max("b"), owner="SkippingIndex/x"), TARGET)
    assert [path for path, _ in refusal.value.problems] == ["indexes[0]"]


def test_of_several_problems_each_keeps_what_was_found_and_what_to_do() -> None:
    wrong = (*min_max("b"), Index(type="PARTITION", column="p"))
    with pytest.raises(DeclarationNotPossible) as refusal:
        refuse_problems(Declaration(wrong), TARGET)
    assert "indexes[1]: PARTITION(p): not a partition column (p)" in str(refusal.value.found)
    assert "indexes[1]: use MIN_MAX or VALUE_SET" in str(refusal.value.hint)
    assert "None" not in str(refusal.value)


def test_an_interrupted_operation_is_marked_in_its_state(tmp_path, monkeypatch):
    store = folder_store(tmp_path)
    operations.create(store, TARGET, Declaration(min_max("a")))

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(FolderIndexStore, "compact", interrupt)
    with pytest.raises(KeyboardInterrupt):
        operations.compact(store)
    assert (store.read().phase, store.read().message) == (IndexState.FAILED, "interrupted")


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
def test_description_names_by_what_files_are_identified(uri, etags, words):
    assert words in described(uri, *etags)


def test_description_is_empty_where_no_file_is_indexed() -> None:
    assert described("file:/t") == ""
