"""From URIs to the text of declarations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from snaploom.discovery.declarations import Declarations, declare
from snaploom.discovery.foundfiles import list_files
from snaploom.discovery.jointree import ProposedTree, propose_tree
from snaploom.discovery.layout import layouts_of
from snaploom.discovery.objectfile import Meter
from snaploom.discovery.profiles import SourceProfile
from snaploom.discovery.relationships import Relationship, Relationships, find_relationships
from snaploom.discovery.samples import profiles_of
from snaploom.discovery.thresholds import SAMPLE_ROWS, TEXT_BYTES
from snaploom.discovery.yamltext import files_of
from snaploom.errors import ArgumentInvalid, SourceNotReadable
from snaploom.loading.nearmisses import did_you_mean

Ask = Callable[[Relationship], bool]
"""Whether a relationship with weak evidence is right."""


@dataclass(frozen=True)
class Discovery:
    """What was found."""

    profiles: tuple[SourceProfile, ...]
    relationships: Relationships
    tree: ProposedTree
    declarations: Declarations
    files_listed: int
    files_opened: int
    bytes_read: int

    @property
    def files(self) -> dict[str, str]:
        """The text of each file that is written, by its name."""
        about = [
            f"Written by `snaploom init --from`. Read: {self.bytes_read:,} bytes of "
            f"{self.files_opened:,} of {self.files_listed:,} files; of each source at most "
            f"{SAMPLE_ROWS:,} rows of Parquet and ORC, {TEXT_BYTES >> 20} MiB of text.",
            "What stands in comments is the evidence of a guess.",
        ]
        return files_of(self.declarations, about)


def discover(
    uris: Sequence[str], folder_uri: str, root: str | None = None, ask: Ask | None = None
) -> Discovery:
    """Look at what there is, and declare it.

    Args:
        uris: folders and files.
        folder_uri: of the folder for the declarations, with a final `/`.
        root: the table whose rows the output has; None to choose one.
        ask: decides on weak evidence; None to leave it in comments.

    Raises:
        ArgumentInvalid: a URI that cannot be declared, or no such root.
        SourceNotReadable: there is nothing, or nothing that can be read.
        StorageError: a store cannot be asked.
    """
    listing = list_files(uris)
    layouts, others = layouts_of(listing.files)
    meter = Meter()
    profiles, unread = profiles_of(layouts, meter)
    left_out = (*listing.left_out, *others, *unread)
    if not profiles:
        reasons = "; ".join(f"{each.what}: {each.why}" for each in left_out[:5])
        raise SourceNotReadable(
            "nothing here can be read as a source",
            path="--from",
            found=reasons or f"{len(listing.files)} files, none with data",
            expected="files of CSV, JSON, Parquet or ORC, known by their endings",
            hint="name the folder that has them",
        )
    found = find_relationships(profiles)
    if ask is not None:
        right = tuple(each for each in found.weak if ask(each))
        rest = tuple(each for each in found.weak if each not in right)
        found = replace(found, declared=(*found.declared, *right), weak=rest)
    tree = propose_tree(profiles, found, _root(root, profiles))
    declared = declare(profiles, found, tree, listing.files, folder_uri)
    declared = replace(declared, left_out=(*left_out, *declared.left_out))
    return Discovery(
        profiles=profiles,
        relationships=found,
        tree=tree,
        declarations=declared,
        files_listed=len(listing.files),
        files_opened=len(meter.files_opened),
        bytes_read=meter.bytes_read,
    )


def _root(root: str | None, profiles: Sequence[SourceProfile]) -> str | None:
    if root is None:
        return None
    names = {profile.name.casefold().replace("-", "_"): profile.name for profile in profiles}
    wanted = root.casefold().replace("-", "_")
    if wanted not in names:
        raise ArgumentInvalid(
            "there is no source of this name",
            path="--root",
            found=root,
            expected=", ".join(sorted(names.values())),
            hint=did_you_mean(root, names.values()) or "name one of them",
        )
    return names[wanted]
