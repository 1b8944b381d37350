"""Folders: empty, ours, somebody else's; what is fixed; two that begin at once."""

from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from pathlib import Path

import pytest
from support.storage.faultystore import Fault, FaultyStore, Killed
from support.storage.folders import IDENTITY, SETTINGS, a_folder, a_run, keys, published

from snaploom import errors
from snaploom.files.objectstore import TEMPORARY_PREFIX, ObjectStore
from snaploom.files.stores import open_store
from snaploom.models.outputdataset import DataFormat
from snaploom.output import layout
from snaploom.output.folder import CrashPoint, inspect_folder, open_folder, prepare_folder
from snaploom.output.history import changed_settings, fixed_by
from snaploom.output.state import EMPTY


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    return open_store(str(tmp_path / "out") if request.param == "local" else "memory:", create=True)


def test_empty_folder_is_begun(store: ObjectStore) -> None:
    folder = a_folder(store)
    state = folder.log.read()
    assert (state.settings, state.identity, state.seq) == (SETTINGS, IDENTITY, 1)
    assert layout.MARKER in keys(store, "")


def test_preparing_again_writes_nothing(store: ObjectStore) -> None:
    a_folder(store)
    before = set(store.list(""))
    a_folder(store)
    assert set(store.list("")) == before


def test_inspection_writes_nothing(store: ObjectStore) -> None:
    assert inspect_folder(store, SETTINGS, IDENTITY) == EMPTY
    assert list(store.list("")) == []
    a_folder(store)
    assert inspect_folder(store, SETTINGS, IDENTITY).seq == 1


def test_leftover_of_a_process_killed_while_beginning_counts_as_empty(store: ObjectStore) -> None:
    store.put(f"{TEMPORARY_PREFIX}0123", b"")
    assert a_folder(store).log.read().seq == 1


def test_folder_of_somebody_else_is_refused_and_untouched(store: ObjectStore) -> None:
    for number in range(9):
        store.put(f"holiday/{number}.jpg", b"")
    with pytest.raises(errors.FolderNotOurs) as caught:
        a_folder(store)
    assert "holiday/" in str(caught.value.found)
    assert str(caught.value.found).endswith("…")
    assert len(keys(store, "")) == 9


@pytest.mark.parametrize(
    ("lost", "error"),
    [
        (("metadata/",), errors.ManifestCorrupt),
        (("metadata/", layout.MARKER), errors.FolderNotOurs),
    ],
)
def test_data_without_a_manifest_are_refused_and_unchanged(store, lost, error):
    published(a_folder(store))
    store.delete([key for key in keys(store, "") if key.startswith(lost)])
    before = keys(store, "")
    for action in (
        lambda: a_folder(store),
        lambda: inspect_folder(store, SETTINGS, IDENTITY),
        lambda: open_folder(store),
    ):
        with pytest.raises(error) as caught:
            action()
        assert "data/day=0/" in str(caught.value.found)
    assert keys(store, "") == before


def test_folder_that_was_marked_and_no_more_is_begun(store: ObjectStore) -> None:
    a_folder(store)
    store.delete([key for key in keys(store, "") if key.startswith("metadata/")])
    store.put("data/notes.txt", b"somebody's")
    assert open_folder(store).log.read() == EMPTY
    assert a_folder(store).log.read().seq == 1


@pytest.mark.parametrize("content", [b"{}", b"not json", b"[]"])
def test_marker_that_is_not_ours_is_damage(store: ObjectStore, content: bytes) -> None:
    store.put(layout.MARKER, content)
    with pytest.raises(errors.ManifestCorrupt, match=r"snaploom\.json"):
        a_folder(store)


def test_folder_of_a_newer_snaploom_asks_for_an_upgrade(store: ObjectStore) -> None:
    store.put(layout.MARKER, b'{"format": 2, "more": true}')
    for action in (lambda: a_folder(store), lambda: open_folder(store)):
        with pytest.raises(errors.FormatTooNew, match="Upgrade Snaploom"):
            action()


def test_only_a_marked_folder_opens(store: ObjectStore) -> None:
    with pytest.raises(errors.FolderNotOurs, match="empty or absent"):
        open_folder(store)
    store.put("a", b"")
    with pytest.raises(errors.FolderNotOurs) as caught:
        open_folder(store)
    assert caught.value.found == "a"


def test_every_changed_setting_is_listed_with_both_values(store: ObjectStore) -> None:
    a_folder(store)
    changed = SETTINGS.model_copy(update={"data_format": "AVRO", "partition_field_name": "time"})
    with pytest.raises(errors.ImmutableSettingChanged) as caught:
        prepare_folder(store, changed, IDENTITY, a_run())
    assert caught.value.found == "dataFormat: AVRO, partitionFieldName: time"
    assert caught.value.expected == "dataFormat: PARQUET, partitionFieldName: day"


@pytest.mark.parametrize(("before", "after"), list(permutations(DataFormat, 2)))
def test_another_format_is_one_change(before: DataFormat, after: DataFormat) -> None:
    settings = (SETTINGS.model_copy(update={"data_format": one}) for one in (before, after))
    fixed, asked = (fixed_by(one, IDENTITY) for one in settings)
    assert changed_settings(fixed, asked, accept_root_change=False) == ("dataFormat",)


def test_compression_left_open_is_as_the_folder_was_begun(store: ObjectStore) -> None:
    a_folder(store)
    other = SETTINGS.model_copy(update={"data_compression": "ZSTD"})
    with pytest.raises(errors.ImmutableSettingChanged, match="ZSTD"):
        prepare_folder(store, other, IDENTITY, a_run())
    folder = prepare_folder(store, other, IDENTITY, a_run(), open_names={"dataCompression"})
    assert folder.log.read().settings == SETTINGS


def test_folder_of_another_output_is_refused(store: ObjectStore) -> None:
    a_folder(store)
    other = IDENTITY.model_copy(update={"output": "orders"})
    with pytest.raises(errors.ImmutableSettingChanged, match="output: orders"):
        prepare_folder(store, SETTINGS, other, a_run(), accept_root_change=True)


def test_another_root_needs_an_explicit_yes(store: ObjectStore) -> None:
    a_folder(store)
    other = IDENTITY.model_copy(update={"root": "person"})
    with pytest.raises(errors.ImmutableSettingChanged, match="acceptRootChange"):
        prepare_folder(store, SETTINGS, other, a_run())
    folder = prepare_folder(store, SETTINGS, other, a_run(), accept_root_change=True)
    assert folder.log.read().identity == other


def test_twenty_that_begin_at_once_all_end_well(store: ObjectStore) -> None:
    with ThreadPoolExecutor(20) as pool:
        folders = list(pool.map(lambda _: a_folder(store), range(20)))
    assert {folder.log.read().seq for folder in folders} == {1}
    assert keys(store, TEMPORARY_PREFIX) == set()


def test_of_two_that_begin_with_other_settings_one_gets_an_error(store: ObjectStore) -> None:
    settings = [SETTINGS, SETTINGS.model_copy(update={"data_format": "AVRO"})]

    def begin(number: int) -> str:
        try:
            prepare_folder(store, settings[number % 2], IDENTITY, a_run())
        except errors.ImmutableSettingChanged:
            return "refused"
        return settings[number % 2].data_format

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(begin, range(8)))
    assert outcomes.count("refused") == 4
    assert len(set(outcomes)) == 2


def test_folder_whose_beginner_died_after_the_marker_is_finished_by_the_next(store):
    def die(point: CrashPoint) -> None:
        raise Killed

    with pytest.raises(Killed):
        a_folder(store, a_run(die))
    assert open_folder(store).log.read() == EMPTY
    published(a_folder(store))


def test_folder_that_refuses_writes_is_an_error_before_any_work(store: ObjectStore) -> None:
    faulty = FaultyStore(store)
    faulty.faults = lambda operation, key: Fault.REFUSED if operation == "put_if_absent" else None
    with pytest.raises(errors.FolderNotWritable):
        a_folder(faulty)
