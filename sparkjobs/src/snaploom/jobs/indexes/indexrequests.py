"""Requests about skipping indexes: data only, so that nothing here needs Spark."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from pydantic import JsonValue

from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.run import RunSettings
from snaploom.models.skippingindex import RefreshMode
from snaploom.skipping.lifecycle.declaration import Declaration
from snaploom.skipping.lifecycle.description import Description
from snaploom.skipping.statements.declaration import StorePlace
from snaploom.skipping.statements.syntax import Properties, Subject


class IndexAction(StrEnum):
    """Action on an index."""

    CREATE = "CREATE"
    """Create it; nothing is indexed yet."""
    BUILD = "BUILD"
    """Create it unless it exists, and refresh it."""
    REFRESH = "REFRESH"
    """Bring it up to date."""
    APPLY = "APPLY"
    """Make it what a resource declares, and refresh it."""
    PLAN = "PLAN"
    """Show what APPLY would do."""
    IMPORT = "IMPORT"
    """Make it from a metadata store of others."""
    DELETE = "DELETE"
    """Drop it, and remove its files."""
    DESCRIBE = "DESCRIBE"
    """Describe it, its coverage of the target and its condition."""


@dataclass(frozen=True)
class IndexedPlace:
    """Indexed files, and the place of their index."""

    subject: Subject
    """Table or files."""
    store: StorePlace
    """Where the index is kept."""
    declaration: Declaration | None = None
    """Declaration by a resource; None without one."""
    settings: Properties = ()
    """Settings of the Spark session, which win over those of `run`."""
    run: RunSettings = field(default_factory=RunSettings)
    """How jobs run, from a resource."""
    allow: Allowances = NO_ALLOWANCES
    """Entries that declarations may use beyond the built-in lists."""

    @property
    def owner(self) -> str:
        """`SkippingIndex/name` of the resource; empty for none."""
        return "" if self.declaration is None else self.declaration.owner

    @property
    def label(self) -> str:
        """For people: the resource, or what is indexed."""
        return self.owner or self.subject.label


@dataclass(frozen=True)
class IndexRequest:
    """One thing to do."""

    action: IndexAction
    """The action."""
    place: IndexedPlace
    """About which index."""
    declaration: Declaration | None = None
    """The index to create."""
    mode: RefreshMode | None = None
    """Mode of a refresh; None for the declared one."""
    ignore_if_exists: bool = False
    """Whether an index that exists is no fault."""
    directory: str = ""
    """Folder of the metadata store to import; empty for the one that properties name."""
    is_trusted: bool = False
    """Whether the values of rows are believed, without comparing them with the files."""


@dataclass(frozen=True)
class IndexReport:
    """Result of a request."""

    label: str
    """For people: the resource, or what is indexed."""
    done: tuple[str, ...]
    """Changes, made or (PLAN) planned, in a few words each; empty without any."""
    description: Description
    """The index as it is now."""
    warnings: tuple[str, ...] = ()
    """Warnings for people; they stop nothing."""


@dataclass(frozen=True)
class Explained:
    """Effect of skipping on a query."""

    text: str
    """For people."""
    document: JsonValue
    """For programs: each relation of files in the query."""

    def __str__(self) -> str:
        return self.text
