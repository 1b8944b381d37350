"""What contradicts what exists already, and is refused for it: circles, folders, fixed settings.

Everything else that depends on others may be put right by a later change of theirs, so that it is
a warning (ruling D13): otherwise `kubectl apply` of several files would depend on their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from snaploom.models.allowances import NO_ALLOWANCES
from snaploom.models.codes import make_finding
from snaploom.models.datasource import DataSource
from snaploom.models.finding import Finding, Severity
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.report import ManifestPointer
from snaploom.models.resource import Resource
from snaploom.planning.dependence import dependence_findings
from snaploom.planning.sqlgate.facts import judge
from snaploom.planning.validation.outputfolder import comparable_folder
from snaploom.planning.validation.overlaps import folder_of, overlap
from snaploom.planning.validation.scope import scope_of
from snaploom.planning.validation.virtual import cycle_findings
from snaploom.storage.fixedsettings import (
    SETTING_PATHS,
    changed_settings,
    fixed_by,
    folder_identity,
    folder_settings,
)
from snaploom_operator.admission.surroundings import Surroundings

FIXED_REASON = "ImmutableSettingChanged"
"""Reason of a run that preflight refuses for the same (`snaploom.errors`)."""


def contradictions(
    resource: Resource, before: Resource | None, around: Surroundings
) -> tuple[Finding, ...]:
    """Every error in which a resource stands against what exists.

    Args:
        resource: as it is to be.
        before: as it is; None for a new one.
        around: what else there is.
    """
    match resource:
        case DataSource():
            return _circle(resource, around.near)
        case OutputDataset():
            return (
                # Whoever came first: what is asked for now is to blame for it.
                *(f for other in around.overlapping if (f := overlap(resource, other))),
                *_circle_of_outputs(resource, around),
                *_fixed(resource, before),
            )
    return ()


def _circle(source: DataSource, near: Iterable[Resource]) -> tuple[Finding, ...]:
    """The circle of virtual sources that it closes; told about it, wherever the circle begins."""
    sources = {item.name: item for item in near if isinstance(item, DataSource)}
    if not _reaches_itself(source, sources):
        return ()
    scope = scope_of(
        [source, *sources.values()], frozenset(), Severity.WARNING, NO_ALLOWANCES, judge
    )
    return tuple(
        finding.model_copy(
            update={
                "resource": source.identity,
                "path": f"spec.{DataSource.variant_of(source.spec)}",
            }
        )
        for finding in cycle_findings(scope)
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


def _circle_of_outputs(output: OutputDataset, around: Surroundings) -> tuple[Finding, ...]:
    """The circle that it closes of outputs that read what each other publishes."""
    outputs = {each.name: each for each in (*around.upstream, output)}
    sources = {item.name: item for item in around.near if isinstance(item, DataSource)}
    sources |= {source.name: source for source in around.upstream_sources}
    return dependence_findings((output,), outputs, sources)


def _fixed(output: OutputDataset, before: Resource | None) -> tuple[Finding, ...]:
    """Settings that the folder has fixed, as the last run saw it (ruling D12)."""
    manifest = manifest_of(output, before)
    if manifest is None:
        return ()
    asked = fixed_by(folder_settings(output), folder_identity(output))
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
    """What is known of the folder that an output publishes to; None of one that it never did to."""
    if not isinstance(before, OutputDataset) or before.status is None:
        return None
    manifest = before.status.manifest
    if manifest is None or comparable_folder(manifest.uri) != folder_of(output):
        return None
    return manifest
