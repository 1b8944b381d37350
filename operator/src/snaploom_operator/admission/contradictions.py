"""Conflicts with existing resources that are denied: cycles, overlapping folders, fixed settings.

All other problems with other resources are warnings (rule R15), since a later change may solve
them: otherwise `kubectl apply` of several files would depend on their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from snaploom.models.codes import make_finding
from snaploom.models.datasource import DataSource
from snaploom.models.finding import Finding
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.report import ManifestPointer
from snaploom.models.resource import Resource
from snaploom.planning.dependence import dependence_findings
from snaploom.planning.sources.circles import cycle_findings
from snaploom.planning.validation.outputfolder import comparable_folder
from snaploom.planning.validation.overlaps import folder_of, overlap
from snaploom.storage.fixedsettings import (
    SETTING_PATHS,
    asked_by,
    changed_settings,
)
from snaploom_operator.admission.reviewcontext import ReviewContext

FIXED_REASON = "ImmutableSettingChanged"
"""Reason of a run that preflight refuses for the same (`snaploom.errors`)."""


def contradictions(
    resource: Resource, before: Resource | None, context: ReviewContext
) -> tuple[Finding, ...]:
    """Every conflict of a resource with existing ones.

    Args: resource: the submitted resource. before: the stored one; None for a new one. context: the
        related resources.
    """
    match resource:
        case DataSource():
            return _circle(resource, context.near)
        case OutputDataset():
            return (
                # The submitted output is reported, whichever of the two was created first.
                *(f for other in context.overlapping if (f := overlap(resource, other))),
                *_circle_of_outputs(resource, context),
                *_fixed(resource, before),
            )
    return ()


def _circle(source: DataSource, near: Iterable[Resource]) -> tuple[Finding, ...]:
    """The cycle of virtual sources that it closes, reported at this source."""
    sources = {item.name: item for item in near if isinstance(item, DataSource)}
    if not _reaches_itself(source, sources):
        return ()
    return tuple(
        finding.model_copy(
            update={
                "resource": source.identity,
                "path": f"spec.{DataSource.variant_of(source.spec)}",
            }
        )
        for finding in cycle_findings({**sources, source.name: source})
    )


def _reaches_itself(source: DataSource, sources: Mapping[str, DataSource]) -> bool:
    seen: set[str] = set()
    waiting = list(source.spec.reads)
    while waiting:
        name = waiting.pop()
        if name == source.name:
            return True
        if name in sources and name not in seen:
            seen.add(name)
            waiting.extend(sources[name].spec.reads)
    return False


def _circle_of_outputs(output: OutputDataset, context: ReviewContext) -> tuple[Finding, ...]:
    """The cycle of outputs that read each other's publications."""
    outputs = {each.name: each for each in (*context.upstream, output)}
    sources = {item.name: item for item in context.near if isinstance(item, DataSource)}
    sources |= {source.name: source for source in context.upstream_sources}
    return dependence_findings((output,), outputs, sources)


def _fixed(output: OutputDataset, before: Resource | None) -> tuple[Finding, ...]:
    """Changes of settings that are fixed in the folder's manifest (rule P15)."""
    manifest = manifest_of(output, before)
    if manifest is None:
        return ()
    asked = asked_by(output, manifest.fixed)
    changed = changed_settings(
        manifest.fixed, asked, accept_root_change=output.spec.run.accept_root_change
    )
    return tuple(
        make_finding(
            "SL192",
            f"{FIXED_REASON}: the first publication fixed this for ever",
            resource=output.identity,
            path=SETTING_PATHS[name],
            found=asked[name],
            expected=manifest.fixed[name],
            hint="restore it, or publish to a new folder"
            + ("; run.acceptRootChange allows another root" if name == "root" else ""),
        )
        for name in changed
        if name in asked
    )


def manifest_of(output: OutputDataset, before: Resource | None) -> ManifestPointer | None:
    """The manifest of an output's folder, from its status; None if it never published there."""
    if not isinstance(before, OutputDataset) or before.status is None:
        return None
    manifest = before.status.manifest
    if manifest is None or comparable_folder(manifest.uri) != folder_of(output):
        return None
    return manifest
