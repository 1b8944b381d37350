"""Indexes on a page: as declared, with coverage and savings where they can be read."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import yaml
from support.declared.fulldeclarations import an_index
from support.site.histories import START, declarations
from support.skipping.indexstores import NOW, definition, write

from snaploom.models.skippingindex import IndexState
from snaploom.plugins.site import pages
from snaploom.plugins.site.document import output_document
from snaploom.plugins.site.indexstates import distinct_counts
from snaploom.plugins.site.pagedata import OutputPage
from snaploom.plugins.site.pages import Clock, declared_pages
from snaploom.run.declarations import read_declarations
from snaploom.skipping.core.definition import IndexDefinition, Term
from snaploom.skipping.core.filetable import FileTable, field_column
from snaploom.skipping.indexes.valueset import FIELD
from snaploom.skipping.stores.catalog import open_base
from snaploom.skipping.stores.port import IndexStore
from snaploom.skipping.stores.usage import Usage, usage_log


def indexed(folder: Path) -> IndexStore:
    """Declarations with an index over the output, and the store of its state."""
    file = declarations(folder, folder / "out")
    documents = [*yaml.safe_load_all(file.read_text()), an_index("orders-wide", folder)]
    file.write_text(yaml.safe_dump_all(documents))
    (folder / "index").mkdir()
    return open_base(f"{(folder / 'index').as_uri()}/").index(f"file:{folder}/out/data")


def drawn(folder: Path) -> OutputPage:
    (page,) = declared_pages(read_declarations([folder]), ["orders-wide"], Clock(START))
    return page


def test_index_shows_coverage_and_what_queries_left_out(tmp_path: Path) -> None:
    store = indexed(tmp_path)
    place = replace(definition().target, uri=f"file:{tmp_path}/out/data")
    segments = tuple(write(store, {"a": (1, 5), "b": (1, None), "c": (1, 7)}))
    store.commit(
        lambda state: replace(
            state,
            phase=IndexState.ACTIVE,
            definition=replace(definition(), target=place),
            segments=segments,
            refreshed_at=NOW,
        )
    )
    log = usage_log(store)
    log.write("0123456789abcdef", Usage(reads=3, served=2, files=30, dropped_files=12,
                                        bytes=3_000, dropped_bytes=1_024))  # fmt: skip
    (state,) = (page := drawn(tmp_path)).indexes
    assert state.problem == ""
    assert (state.phase, state.refreshed, state.files, state.problem) == ("active", NOW, 3, "")
    assert state.coverage == (("MIN_MAX(ci1)", 3, 0),)
    assert "12 of 30 files (40%) and 1.0 KiB of 2.9 KiB in 3 reads" in output_document(page)


def test_index_that_was_never_built_is_shown_as_declared(tmp_path: Path) -> None:
    indexed(tmp_path)
    (state,) = drawn(tmp_path).indexes
    assert (state.name, state.indexes) == ("orders-amount", ("data.amount MIN_MAX",))
    assert state.problem == "there is no skipping index"


def test_sets_of_values_of_all_files_give_distinct_counts() -> None:
    index = IndexDefinition("i1", "VALUE_SET", (Term('["data","status"]', "string"),))
    files = ["file:///out/data/a.parquet", "file:///out/data/b.parquet"]
    paths = [*(uri.replace("///", "/") for uri in files), "file:/out/data/old.parquet"]
    sets = [["new", "paid"], ["paid", "sent"], ["lost"]]

    def counted(sets: list[list[str] | None], files: list[str]) -> dict[str, int]:
        rows = pa.table({
            "path": pa.array(paths, pa.large_string()),
            field_column("i1", FIELD): sets,
        })  # fmt: skip
        return dict(distinct_counts([index], FileTable.of(rows), files))

    assert counted([*sets], files) == {"data.status": 3}
    assert counted([*sets], [*files, "file:///out/data/unknown.parquet"]) == {}
    assert counted([["new"], None, ["lost"]], files) == {}  # more than the index keeps of a file


def test_without_arrow_it_is_shown_as_declared(tmp_path, monkeypatch):
    indexed(tmp_path)
    monkeypatch.setattr(pages, "find_spec", lambda name: None)
    (state,) = drawn(tmp_path).indexes
    assert "snaploom[data]" in state.problem
