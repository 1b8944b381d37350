"""Declarations compared with earlier ones and with published history; pure."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from snaploom.errors import ArgumentInvalid, FolderNotOurs, SnaploomError, StorageError
from snaploom.files.objectstore import ObjectStore
from snaploom.files.stores import open_store
from snaploom.models.common import CheckMode, EpochNanos, format_instant
from snaploom.models.outputdataset import SnapshotAutoDelete
from snaploom.output import history
from snaploom.output.folder import is_unused, open_folder
from snaploom.output.state import EMPTY, FolderState
from snaploom.output.versions import Time, VersionChoice
from snaploom.plan.bundle import Bundle
from snaploom.plan.differences import (
    MOST_SAMPLES,
    Area,
    Difference,
    declared_differences,
    history_differences,
    tree_differences,
)
from snaploom.plan.history import (
    PublishedModel,
    Structure,
    continued,
    difference,
    model_of_structure,
    structure_of,
)
from snaploom.plan.intervals import settings_of
from snaploom.plan.plan import RunPlan, plan_offline
from snaploom.plan.retention import HeldSnapshot, removals_of_run

# Requests to compare published data; without Spark.

SAMPLES = 5
"""Rows of each kind that are shown where nothing else is asked for."""


@dataclass(frozen=True)
class DataDiffRequest:
    """Two versions of snapshots of one output, and how much of their rows to show."""

    bundle: Bundle
    before: VersionChoice
    after: VersionChoice
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

    Versions are a time, `TIME@NUMBER` or `TIME@dry-run`.

    Raises:
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
        history.refuse_empty(EMPTY, store.uri)
    folder = open_folder(store)
    state = folder.log.read()
    history.refuse_empty(state, store.uri)
    for number, side in enumerate(sides):
        if not side.is_dry_run:
            side.record(folder, state, f"{argument}[{number}]")
    return DataDiffRequest(bundle, sides[0], sides[1], samples)


# Compares declarations with earlier ones and with published history; pure.

_SHOWN = 5
"""Snapshot times in a message."""


@dataclass(frozen=True)
class Comparison:
    """All that would be otherwise."""

    output: str
    differences: tuple[Difference, ...]
    warnings: tuple[str, ...] = ()
    """Parts that could not be compared."""
    tree: PublishedModel | None = None
    """The join trees before and after in one; None where there is nothing to compare with."""

    @property
    def is_refused(self) -> bool:
        """Whether a run would refuse any of it."""
        return any(one.is_refused for one in self.differences)

    @property
    def document(self) -> JsonValue:
        return {
            "output": self.output,
            "same": not self.differences,
            "refused": self.is_refused,
            "differences": [one.document for one in self.differences],
            "warnings": list(self.warnings),
        }


def compare(
    after: Bundle,
    before: Bundle | None,
    now: EpochNanos,
    preview: Callable[[], RunPlan] | None = None,
) -> Comparison:
    """Compare declarations with others, and with what is published.

    Without `before`, `after` is compared only with what is published. `preview` is called only
    where retention, played through at `now`, could delete something.

    Raises:
        StorageError, FolderNotOurs: what is published cannot be read, and there is nothing else to
            compare with; otherwise that is a warning.
    """
    warnings: tuple[str, ...] = ()
    try:
        state = _published(after)
    except (StorageError, FolderNotOurs) as error:
        if before is None:
            raise
        state, warnings = EMPTY, (f"what is published cannot be read: {error.message}",)
    plan = plan_offline(after)
    found: list[Difference] = []
    tree: PublishedModel | None = None
    if before is not None:
        found.extend(declared_differences(before, after))
        old = plan_offline(before)
        structure, root = structure_of(old.tree), old.tree.root.source
        found.extend(_plans(structure, old.hash, root, plan))
        tree = _tree(after, "other declarations", root, structure, plan)
    elif state.timeline:
        newest = state.live[state.timeline[-1].time]
        model = next(m for m in state.models if m.model_hash == newest.model_hash)
        published = history.structure_of(model.nodes)
        root = next((node.source for node in model.nodes), "")
        found.extend(_plans(published, newest.plan_hash, root, plan))
        tree = _tree(after, format_instant(newest.time), root, published, plan)
    else:
        found.append(
            Difference(
                Area.HISTORY,
                "snapshots",
                "",
                "everything that is due",
                "nothing is published yet",
            )
        )
    if state.seq:
        found.extend(_of_history(after, state, plan))
        refused = any(one.is_refused for one in found)
        forecast, unknown = _deletions(after, state, now, None if refused else preview)
        found.extend(forecast)
        warnings = (*warnings, *unknown)
    return Comparison(after.output.name, tuple(found), warnings, tree)


def _tree(
    after: Bundle, before: str, root: str, structure: Structure, plan: RunPlan
) -> PublishedModel:
    """The trees before and after in one; `before` names what stands for the first."""
    title = f"OutputDataset/{after.output.name}"
    return difference(
        model_of_structure(title, before, root, structure),
        model_of_structure(
            title, "these declarations", plan.tree.root.source, structure_of(plan.tree)
        ),
    )


def _published(bundle: Bundle) -> FolderState:
    store = open_store(bundle.output.spec.output_folder.folder_uri, create=False)
    return EMPTY if is_unused(store) else open_folder(store).log.read()


def _plans(before: Structure, old_hash: str, old_root: str, plan: RunPlan) -> Iterator[Difference]:
    trees = tree_differences(before, structure_of(plan.tree))
    root = plan.tree.root.source
    if old_root != root:
        yield Difference(Area.PLAN, "the root", old_root, root, "every row is another one")
    yield from trees
    if old_hash != plan.hash:
        effect = "snapshots woven from now on may have other rows; published ones stay until they "
        yield Difference(Area.PLAN, "hash", old_hash[:12], plan.hash[:12], f"{effect}are restated")


def _of_history(after: Bundle, state: FolderState, plan: RunPlan) -> Iterator[Difference]:
    output = after.output
    fixed = history.fixed_in(state)
    asked = history.asked_by(output, fixed)
    accepted = output.spec.run.accept_root_change
    for name in history.changed_settings(fixed, asked, accept_root_change=accepted):
        way = (
            "move it by 'snaploom migrate'"
            if history.can_move(name, fixed)
            else "publish to a new folder"
        )
        effect = f"refused: fixed by the first publication; {way}"
        path = history.SETTING_PATHS[name]
        yield Difference(Area.HISTORY, path, fixed[name], asked[name], effect, is_refused=True)
    published = continued(history.structure_of(version.nodes) for version in state.models)
    refuses = output.spec.output_folder.incompatible_schema is CheckMode.FAIL
    yield from history_differences(published, structure_of(plan.tree), is_refused=refuses)


def _deletions(
    after: Bundle, state: FolderState, now: EpochNanos, preview: Callable[[], RunPlan] | None
) -> tuple[tuple[Difference, ...], tuple[str, ...]]:
    """Snapshots that the next run would delete, or the reason why they are unknown.

    A run deletes behind its publications, so that it depends on what it publishes: its own plan
    shows. Without a look at the sources, one newer snapshot is taken to be published.
    """
    rules = after.output.spec.output_folder.snapshot_auto_delete
    held = [HeldSnapshot(version.time, version.created_at) for version in state.timeline]
    if not held or rules == SnapshotAutoDelete():
        return (), ()
    if preview is not None:
        try:
            gone, when = preview().removing, "by the next run, behind what it publishes"
        except SnaploomError as error:
            return (), (f"what a run would delete is not known: {error.message}",)
    else:
        periods = settings_of(after.output.spec.data_model.root_data_source.snapshot_filter)
        newer = EpochNanos(max(now, held[-1].time + 1))
        gone = removals_of_run([newer], [newer], rules, held, now, periods.intervals)
        when = "once one newer snapshot is published; more may go with more of them (see `plan`)"
    if not gone:
        return (), ()
    times = sorted(format_instant(removal.time) for removal in gone)
    shown = ", ".join(times[:_SHOWN]) + (", ..." if times[_SHOWN:] else "")
    effect = f"{len(times)} of {len(held)} snapshots would be deleted {when}"
    subject = "spec.outputFolder.snapshotAutoDelete"
    return (Difference(Area.HISTORY, subject, shown, "", effect),), ()
