"""From URIs to the text of declarations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from snaploom.discovery.databases import ReadDatabase, database_address, is_database, no_databases
from snaploom.discovery.datecolumns import with_event_dates
from snaploom.discovery.declarations import Declarations, declare
from snaploom.discovery.foundfiles import list_files
from snaploom.discovery.jointree import ProposedTree, propose_tree
from snaploom.discovery.layout import layouts_of
from snaploom.discovery.objectfile import Meter
from snaploom.discovery.profiles import SourceProfile
from snaploom.discovery.relationships import Relationship, Relationships, find_relationships
from snaploom.discovery.samples import profiles_of
from snaploom.discovery.tablefolders import table_folders
from snaploom.discovery.thresholds import AVRO_ROWS, DATABASE_ROWS, SAMPLE_ROWS, TEXT_BYTES
from snaploom.discovery.yamltext import files_of
from snaploom.errors import ArgumentInvalid, SourceNotReadable
from snaploom.loading.nearmisses import did_you_mean

Ask = Callable[[Relationship], bool]
"""Whether a relationship with weak evidence is right."""


@dataclass(frozen=True)
class Discovery:
    """The discovered tables and their declarations."""

    profiles: tuple[SourceProfile, ...]
    relationships: Relationships
    tree: ProposedTree
    declarations: Declarations
    files_listed: int
    files_opened: int
    bytes_read: int
    tables_read: int
    """Of databases."""

    @property
    def about(self) -> str:
        """The tables read, for people."""
        parts = []
        if self.files_listed:
            parts.append(
                f"Read: {self.bytes_read:,} bytes of {self.files_opened:,} of "
                f"{self.files_listed:,} files; of each source at most {SAMPLE_ROWS:,} rows of "
                f"Parquet and ORC, {AVRO_ROWS:,} of Avro, {TEXT_BYTES >> 20} MiB of text."
            )
        if self.tables_read:
            parts.append(
                f"Read: at most {DATABASE_ROWS:,} rows of each of {self.tables_read:,} tables."
            )
        return " ".join(parts)

    @property
    def files(self) -> dict[str, str]:
        """The text of each file that is written, by its name."""
        about = [
            f"Written by `snaploom init --from`. {self.about}",
            "What stands in comments is the evidence of a guess.",
        ]
        return files_of(self.declarations, about)


def discover(
    uris: Sequence[str],
    folder_uri: str,
    root: str | None = None,
    ask: Ask | None = None,
    read_database: ReadDatabase = no_databases,
) -> Discovery:
    """Discover the tables of some places, and declare them.

    Args:
        uris: folders, files and databases.
        folder_uri: of the folder for the declarations, with a final `/`.
        root: the table whose rows the output has; None to choose one.
        ask: decides on weak evidence; None to leave it in comments.
        read_database: reads a database.

    Raises:
        ArgumentInvalid: a URI that cannot be declared, or no such root.
        SourceNotReadable: there is nothing, or nothing that can be read.
        StorageError: a store cannot be asked.
        SourceError: a database cannot be read.
    """
    addresses = [database_address(uri) for uri in uris if is_database(uri)]
    listing = list_files(uri for uri in uris if not is_database(uri))
    layouts, others = layouts_of(listing.files)
    databases = [(address, read_database(address)) for address in addresses]
    meter = Meter()
    profiles, unread = profiles_of(
        layouts,
        meter,
        table_folders(listing.files),
        [(address, content.tables) for address, content in databases],
    )
    of_databases = (each for _, content in databases for each in content.left_out)
    left_out = (*listing.left_out, *others, *of_databases, *unread)
    if not profiles:
        reasons = "; ".join(f"{each.what}: {each.why}" for each in left_out[:5])
        raise SourceNotReadable(
            "nothing here can be read as a source",
            path="--from",
            found=reasons or f"{len(listing.files)} files, none with data",
            expected="files of CSV, JSON, Parquet, ORC or Avro, known by their endings, or tables",
            hint="name the folder that has them",
        )
    found = find_relationships(profiles)
    if ask is not None:
        right = tuple(each for each in found.weak if ask(each))
        rest = tuple(each for each in found.weak if each not in right)
        found = replace(found, declared=(*found.declared, *right), weak=rest)
    tree = propose_tree(profiles, found, _root(root, profiles))
    rooted = tuple(
        with_event_dates(profile) if profile.name == tree.root.table else profile
        for profile in profiles
    )
    declared = declare(rooted, found, tree, listing.files, folder_uri)
    declared = replace(declared, left_out=(*left_out, *declared.left_out))
    return Discovery(
        profiles=rooted,
        relationships=found,
        tree=tree,
        declarations=declared,
        files_listed=len(listing.files),
        files_opened=len(meter.files_opened),
        bytes_read=meter.bytes_read,
        tables_read=sum(len(content.tables) for _, content in databases),
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
