"""Requests to compare published data; without Spark."""

from __future__ import annotations

from dataclasses import dataclass

from snaploom.errors import ArgumentInvalid
from snaploom.planning.bundle import Bundle
from snaploom.planning.rowchanges import MOST_SAMPLES
from snaploom.storage.folder import is_unused, open_folder
from snaploom.storage.history import refuse_empty
from snaploom.storage.objectstore import ObjectStore
from snaploom.storage.readchoice import Time
from snaploom.storage.state import EMPTY
from snaploom.storage.versionchoice import VersionChoice

SAMPLES = 5
"""Rows of each kind that are shown where nothing else is asked for."""


@dataclass(frozen=True)
class DataDiffRequest:
    """Two versions of snapshots of one output, and how much of their rows to show."""

    bundle: Bundle
    """The output, with everything that it refers to."""
    before: VersionChoice
    """The first."""
    after: VersionChoice
    """The second."""
    samples: int
    """Rows of each kind to show; 0 for none, so that no value of the data is printed."""


def data_diff_request(
    bundle: Bundle,
    store: ObjectStore,
    before: Time,
    after: Time,
    samples: object = SAMPLES,
    argument: str = "data",
) -> DataDiffRequest:
    """Check a request, before Spark is started.

    Args:
        bundle: the output.
        store: of its folder.
        before: a time, `TIME@NUMBER` or `TIME@dry-run`.
        after: the same.
        samples: rows of each kind to show.
        argument: of the two versions, for messages.

    Raises:
        ArgumentInvalid: the output has no `rootKey`, a version cannot be read or is not there, or
            `samples` is no number of rows.
        NothingPublished: the output has no published snapshot.
        ObjectNotFound: there is no such manifest, or files of a version are removed.
    """
    if not bundle.output.spec.data_model.root_data_source.root_key:
        raise ArgumentInvalid(
            "rows cannot be matched: the output declares no key of its rows",
            path=f"{bundle.output.identity} spec.dataModel.rootDataSource.rootKey",
            found="no rootKey",
            expected="columns of the root that identify a row",
            hint="declare rootKey; what is published need not be woven again",
        )
    if type(samples) is not int or not 0 <= samples <= MOST_SAMPLES:
        raise ArgumentInvalid(
            "this is not a number of rows to show",
            path="samples",
            found=repr(samples),
            expected=f"a whole number from 0 to {MOST_SAMPLES:,}",
            hint="give 0 to show no values at all",
        )
    sides = [
        VersionChoice.parse(version, f"{argument}[{number}]")
        for number, version in enumerate((before, after))
    ]
    if is_unused(store):
        refuse_empty(EMPTY, store.uri)
    folder = open_folder(store)
    state = folder.log.read()
    refuse_empty(state, store.uri)
    for number, side in enumerate(sides):
        if not side.is_dry_run:
            side.record(folder, state, f"{argument}[{number}]")
    return DataDiffRequest(bundle, sides[0], sides[1], samples)
