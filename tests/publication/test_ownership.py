"""A folder is one OutputDataset's, by namespace and UID; what is not known is not compared."""

import pytest
from support.storage.folders import IDENTITY, SETTINGS, a_run, keys, published

from snaploom.errors import FolderNotOurs
from snaploom.files.objectstore import ObjectStore
from snaploom.files.stores import open_store
from snaploom.output.entries import FolderIdentity
from snaploom.output.folder import Folder, FolderOwner, inspect_folder, owner_in, prepare_folder
from snaploom.output.removal import remove_folder


def identity(namespace: str, uid: str) -> FolderIdentity:
    return IDENTITY.model_copy(update={"namespace": namespace, "uid": uid})


LAPTOP, FILES = identity("", ""), identity("sales", "")
OURS, ANEW, THEIRS = identity("sales", "1"), identity("sales", "2"), identity("hr", "3")


@pytest.fixture
def store() -> ObjectStore:
    return open_store("memory:", create=True)


def begun(store: ObjectStore, owner: FolderIdentity, *, adopt_folder: bool = False) -> Folder:
    return prepare_folder(store, SETTINGS, owner, a_run(), adopt_folder=adopt_folder)


@pytest.mark.parametrize(
    ("first", "second", "known"),
    [
        (LAPTOP, LAPTOP, LAPTOP),
        (LAPTOP, OURS, OURS),
        (OURS, LAPTOP, OURS),
        (OURS, FILES, OURS),
        (FILES, OURS, OURS),
        (OURS, OURS, OURS),
    ],
)
def test_folder_learns_its_owner_and_never_forgets_it(store, first, second, known):
    begun(store, first)
    assert begun(store, second).log.read().identity == known


@pytest.mark.parametrize(
    ("second", "hint"),
    [
        (THEIRS, "another outputFolder.folderUri; nothing"),
        (identity("hr", ""), "nothing in it"),
        (ANEW, "run.adoptFolder"),
    ],
)
def test_output_of_the_same_name_is_refused(store, second, hint):
    begun(store, OURS)
    with pytest.raises(FolderNotOurs, match="another OutputDataset of this name") as caught:
        inspect_folder(store, SETTINGS, second)
    assert hint in (caught.value.hint or "")
    with pytest.raises(FolderNotOurs):
        begun(store, second)
    assert begun(store, OURS).log.read().seq == 1


def test_resource_that_was_created_anew_adopts_its_folder_with_adopt_folder(store):
    published(begun(store, OURS))
    state = begun(store, ANEW, adopt_folder=True).log.read()
    assert (state.identity, len(state.live)) == (ANEW, 1)
    with pytest.raises(FolderNotOurs):
        begun(store, OURS)


def test_folder_of_another_namespace_is_never_adopted(store: ObjectStore) -> None:
    begun(store, OURS)
    with pytest.raises(FolderNotOurs):
        begun(store, THEIRS, adopt_folder=True)


@pytest.mark.parametrize("other", [THEIRS, ANEW, identity("hr", "")])
def test_folder_is_not_removed_with_another_resource_of_the_name(store, other):
    published(begun(store, OURS))
    before = keys(store, "")
    with pytest.raises(FolderNotOurs, match="another output"):
        remove_folder(store, owner_in(other), a_run())
    assert keys(store, "") == before


def test_owner_that_is_known_in_part_removes_its_folder(store: ObjectStore) -> None:
    published(begun(store, OURS))
    remove_folder(store, FolderOwner(IDENTITY.output, "sales"), a_run())
    assert keys(store, "") == set()
