"""The status of a resource, conditions aside, within limits of sizes."""

from snaploom.models.common import ResourceStatus
from snaploom.models.datarelationship import DataRelationship
from snaploom.models.datasource import DataSource
from snaploom.models.fieldtransformer import FieldTransformer, MetadataApplicator
from snaploom.models.kinds import KIND_BY_NAME
from snaploom.models.outputdataset import OutputDatasetStatus, PlannedJoin, PlanStatus
from snaploom.models.report import DataFinding, LatestSnapshot, ManifestPointer, Report, RunPhase
from snaploom.models.run import CurrentPhase, LastPhase, LastRun, RunAction
from snaploom.models.skippingindex import IndexState, SkippingIndexStatus
from snaploom_operator import decision
from snaploom_operator.cluster.port import CONFIG_MAPS
from snaploom_operator.conditions import fit_items, fit_text, fit_texts
from snaploom_operator.decide.runview import UNSUBMITTED, RunView, Step
from snaploom_operator.objects import is_pause
from snaploom_operator.submit.manifests import plan_config_map

Configuration = DataSource | DataRelationship | MetadataApplicator | FieldTransformer


def new_status(
    observed: decision.ObservedResource | decision.Unparsable, view: RunView | None, step: Step
) -> ResourceStatus:
    """The new status, with the conditions as observed."""
    if isinstance(observed, decision.Unparsable):
        status = observed.status or ResourceStatus()
        return status.model_copy(update={"observed_generation": observed.generation})
    resource = observed.resource
    changes: dict[str, object] = {"observed_generation": resource.metadata.generation}
    if isinstance(observed, decision.ObservedOutput):
        before = observed.resource.status or OutputDatasetStatus()
        changes |= _output_changes(observed, before, step)
        return before.model_copy(update=changes)
    if isinstance(observed, decision.ObservedIndex) and view is not None:
        return _index_status(view, observed.resource.status or SkippingIndexStatus(), step)
    if not isinstance(resource, Configuration):
        raise TypeError(f"nothing is known about the kind {resource.kind}")
    changes["used_by"] = observed.used_by
    if observed.last_seen is not None:
        changes["last_seen"] = observed.last_seen
    return (resource.status or KIND_BY_NAME[resource.kind].status()).model_copy(update=changes)


_RESTING = (IndexState.EMPTY, IndexState.ACTIVE, IndexState.FAILED, IndexState.DELETED)


def _index_status(view: RunView, before: SkippingIndexStatus, step: Step) -> SkippingIndexStatus:
    facts = step.report.index if step.report is not None else None
    reported = facts.state if facts is not None else None
    changes: dict[str, object] = {
        "observed_generation": view.owner.metadata.generation,
        **_run_changes(before, step),
        "state": _state(view, before, step, reported),
    }
    if facts is not None:
        changes["files"] = facts.files
        changes["bytes"] = facts.bytes
        changes["last_refreshed"] = facts.last_refreshed or before.last_refreshed
    return before.model_copy(update=changes)


def _state(
    view: RunView, before: SkippingIndexStatus, step: Step, reported: IndexState | None
) -> IndexState:
    if step.ended is not None:
        return _after(step.ended, reported)
    known = before.state or IndexState.EMPTY
    current = step.current
    if current is None or current.phase in UNSUBMITTED:
        return known
    if reported is not None:
        return reported
    if current.action is RunAction.DELETE:
        return IndexState.DELETING
    if current.phase is CurrentPhase.ENDING and known not in _RESTING:
        return known
    if before.last_refreshed is None:
        return IndexState.CREATING
    last = view.last
    if last is not None and last.phase is not LastPhase.SUCCEEDED:
        return IndexState.RECOVERING
    changes = current.trigger.declarations != view.realised
    return IndexState.UPDATING if changes else IndexState.REFRESHING


def _after(ended: LastRun, reported: IndexState | None) -> IndexState:
    if ended.phase is not LastPhase.SUCCEEDED:
        return IndexState.FAILED
    if reported is not None:
        return reported
    return IndexState.DELETED if ended.action is RunAction.DELETE else IndexState.ACTIVE


def plan_actions(
    observed: decision.ObservedOutput, shown: PlanStatus | None
) -> tuple[decision.Action, ...]:
    """Write the plan's ConfigMap if the status has only part of it; delete it if not needed.

    The hash in the observed status shows whether that plan was written, since actions come first.
    """
    resource, plan = observed.resource, observed.plan
    is_paused = is_pause(resource.metadata.annotations)
    if plan is None or is_paused or resource.metadata.deletion_timestamp is not None:
        return ()
    found = [each for each in observed.runs.config_maps if each.role == "plan"]
    if shown is None or len(shown.joins) == len(plan.tree.joins):
        namespace = resource.metadata.namespace or ""
        return tuple(decision.Delete(CONFIG_MAPS, namespace, each.name, each.uid) for each in found)
    written = resource.status.plan if resource.status is not None else None
    if found and written is not None and written.hash == plan.hash:
        return ()
    return (decision.Ensure(plan_config_map(resource, plan)),)


MOST_JOINS = 50
"""Joins in a status (rule R13)."""
_PLANNED_JOINS_BYTES = 7_000


def _output_changes(
    observed: decision.ObservedOutput, before: OutputDatasetStatus, step: Step
) -> dict[str, object]:
    changes = {**_run_changes(before, step), "plan": _plan_status(observed, before.plan)}
    if step.report is None:
        return changes
    return {**changes, **_published(before, step.report, is_over=step.ended is not None)}


def _run_changes(
    before: OutputDatasetStatus | SkippingIndexStatus, step: Step
) -> dict[str, object]:
    current = step.current
    if current is not None:
        texts = {"waiting_for": current.waiting_for, "progress": current.progress}
        fitting = {name: text and fit_text(text, _RUN_TEXT_BYTES) for name, text in texts.items()}
        current = current.model_copy(update=fitting)
    return {
        "current_run": current,
        "last_run": step.ended or before.last_run,
        "realised": _realised(before.realised, step.ended),
    }


def _realised(before: str | None, ended: LastRun | None) -> str | None:
    """Hash of the declarations of the last successful run."""
    if ended is None or ended.phase is not LastPhase.SUCCEEDED:
        return before
    return ended.trigger.declarations if ended.action is RunAction.RUN else None


def _plan_status(observed: decision.ObservedOutput, before: PlanStatus | None) -> PlanStatus | None:
    """The plan in the status: kept while declarations are missing, None if it is ambiguous."""
    plan = observed.plan
    if plan is None:
        return before
    if not plan.is_valid:
        return None
    joins = [
        PlannedJoin.model_validate(node, from_attributes=True)
        for node in plan.tree.joins[:MOST_JOINS]
    ]
    deepest = max((node.depth for node in plan.tree.joins), default=0)
    return PlanStatus(
        hash=plan.hash, max_depth=deepest, joins=fit_items(joins, _PLANNED_JOINS_BYTES)
    )


_SOURCES_BYTES = 3_000
_JOINS_BYTES = 2_000
_EXCLUDED_BYTES = 1_000
_WARNINGS_BYTES = 1_000
_SNAPSHOTS_BYTES = 3_200
_MESSAGE_BYTES = 100
_TEXT_BYTES = 300
_DATA_FINDINGS_BYTES = 3_000
_MOST_DATA_FINDINGS = 20
_MOST = 50
"""Entries of a list in a status (rule R13)."""
_RUN_TEXT_BYTES = 600


def _published(status: OutputDatasetStatus, report: Report, *, is_over: bool) -> dict[str, object]:
    """The changed fields by the snapshots of a report; none if the report is older.

    Until the run is over the pointer to the manifest stays: outputs that read this one run when it
    is done, and not after each of its snapshots.
    """
    if report.removed is not None and report.phase is RunPhase.SUCCEEDED:
        gone = ("latest_snapshot", "snapshot_count", "manifest")
        none = {"snapshots": (), "data_findings": ()}
        return {**dict.fromkeys(gone), **none}
    pointer, kept = report.manifest, status.manifest
    if pointer is None:
        return {}
    if kept is not None and pointer.uri == kept.uri and pointer.sequence < kept.sequence:
        return {}
    known = report.snapshot_count is not None
    latest = _bounded(report.newest) if report.newest is not None else None
    return {
        "latest_snapshot": latest if known or latest else status.latest_snapshot,
        "snapshots": fit_items(report.published[:_MOST], _SNAPSHOTS_BYTES)
        if known
        else status.snapshots,
        "snapshot_count": report.snapshot_count if known else status.snapshot_count,
        "manifest": _pointer(pointer) if is_over else kept,
        "data_findings": _data_findings(status, report) if is_over else status.data_findings,
    }


def _data_findings(status: OutputDatasetStatus, report: Report) -> tuple[DataFinding, ...]:
    """Those of a run; what snapshots showed stays until a run publishes again."""
    known = () if report.snapshots else status.data_findings
    found = (*(one for one in known if not one.is_of_listing), *report.data_findings)
    bounded = (
        one.without_values.model_copy(update={"fix": fit_text(one.fix, _TEXT_BYTES)})
        for one in found[:_MOST_DATA_FINDINGS]
    )
    return fit_items(bounded, _DATA_FINDINGS_BYTES)


def _bounded(newest: LatestSnapshot) -> LatestSnapshot:
    excluded = (
        each.model_copy(update={"message": fit_text(each.message, _MESSAGE_BYTES)})
        for each in newest.excluded[:_MOST]
    )
    return newest.model_copy(
        update={
            "partition": fit_text(newest.partition, _TEXT_BYTES),
            "sources": fit_items(newest.sources[:_MOST], _SOURCES_BYTES),
            "excluded": fit_items(excluded, _EXCLUDED_BYTES),
            "joins": fit_items(newest.joins[:_MOST], _JOINS_BYTES),
            "warnings": fit_texts(newest.warnings[:_MOST], _WARNINGS_BYTES, _TEXT_BYTES),
        }
    )


def _pointer(manifest: ManifestPointer) -> ManifestPointer:
    fixed = {key: text for key, text in manifest.fixed.items() if len(key) + len(text) <= 100}
    kept = dict(list(fixed.items())[:10])
    return manifest.model_copy(update={"fixed": kept})
