"""Ownership of an output folder: one OutputDataset, by namespace and UID as well as its name.

Names come again: in another namespace, in another cluster, or after a resource was deleted. Without
a cluster there is neither namespace nor UID, so that only what both sides know is compared. What a
folder knows is never forgotten, and what it does not know yet it learns from the
next publication.
"""

from __future__ import annotations

from dataclasses import dataclass

from snaploom.errors import FolderNotOurs
from snaploom.storage.entries import FolderIdentity


@dataclass(frozen=True)
class FolderOwner:
    """An OutputDataset, as far as it is known."""

    output: str
    """Its name."""
    namespace: str = ""
    """Empty where there is no cluster."""
    uid: str = ""
    """Empty where there is no cluster."""

    def __str__(self) -> str:
        name = f"{self.namespace}/{self.output}" if self.namespace else self.output
        return f"OutputDataset/{name}" + (f" with UID {self.uid}" if self.uid else "")

    def is_elsewhere(self, other: FolderOwner) -> bool:
        """Whether another owner is known to be in another namespace."""
        return _differ(self.namespace, other.namespace)

    def is_another(self, other: FolderOwner) -> bool:
        """Whether another owner is known to be another resource."""
        return (
            self.output != other.output or self.is_elsewhere(other) or _differ(self.uid, other.uid)
        )


def owner_in(identity: FolderIdentity) -> FolderOwner:
    """Return the owner of a folder."""
    return FolderOwner(identity.output, identity.namespace, identity.uid)


def refuse_others(
    uri: str, found: FolderIdentity, asked: FolderIdentity, *, adopt_folder: bool
) -> None:
    """Raise `FolderNotOurs` for the folder of an output of the same name by another resource."""
    theirs, ours = owner_in(found), owner_in(asked)
    if theirs.is_elsewhere(ours):
        hint = "publish to another outputFolder.folderUri; nothing in it was touched"
    elif _differ(theirs.uid, ours.uid) and not adopt_folder:
        hint = (
            "publish to another outputFolder.folderUri; or, if that one is gone, because it was "
            "deleted and created anew or moved to this cluster, set run.adoptFolder for one run"
        )
    else:
        return
    raise FolderNotOurs(
        f"{uri} is the folder of another OutputDataset of this name",
        found=str(theirs),
        expected=str(ours),
        hint=hint,
    )


def adopted(found: FolderIdentity | None, asked: FolderIdentity) -> FolderIdentity:
    """The owner to record: the requested one, else the recorded one."""
    if found is None:
        return asked
    return asked.model_copy(
        update={
            "namespace": asked.namespace or found.namespace,
            "uid": asked.uid or found.uid,
        }
    )


def _differ(one: str, other: str) -> bool:
    return bool(one and other) and one != other
