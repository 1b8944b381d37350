"""Outputs as assets of Dagster: one asset an output, after the outputs that it reads.

An asset is materialized by `Project.run`: what is due is published, and what is published stays. A
run that fails is a failure of Dagster, with the Report as metadata; it is retried only where trying
again can help. Dagster reads annotations of functions, so that those here are no texts.
"""

from collections.abc import Callable, Iterable, Sequence

import dagster

from snaploom.errors import SnaploomError
from snaploom.project.project import Project, Source, load
from snaploom.project.results import Run, RunFailed

GROUP = "snaploom"
"""Group of the assets where nobody names another."""


def output_assets(
    project: Project | Source | Iterable[Source],
    *,
    outputs: Sequence[str] | None = None,
    group: str = GROUP,
    key_prefix: Sequence[str] = (),
) -> list[dagster.AssetsDefinition]:
    """An asset for each output.

    Args:
        project: declarations, or what `snaploom.load` takes.
        outputs: names of outputs; omitted, all.
        group: of the assets.
        key_prefix: what stands before the output's name in the key of its asset.

    Returns:
        The assets, for `dagster.Definitions(assets=...)`.

    Raises:
        InvalidDeclarations: something is wrong with the declarations.
    """
    loaded = project if isinstance(project, Project) else load(project)
    loaded.validate(raises=True)
    names = loaded.outputs if outputs is None else tuple(outputs)
    return [
        dagster.asset(
            key=_key(name, key_prefix),
            deps=[_key(read, key_prefix) for read in loaded.upstream(name)],
            group_name=group,
            kinds={"spark"},
            description=f"OutputDataset/{name}",
        )(_materializer(loaded, name))
        for name in names
    ]


def _key(name: str, prefix: Sequence[str]) -> dagster.AssetKey:
    return dagster.AssetKey([*prefix, name])


def _materializer(
    project: Project, name: str
) -> Callable[[dagster.AssetExecutionContext], dagster.MaterializeResult]:
    def materialize(context: dagster.AssetExecutionContext) -> dagster.MaterializeResult:
        try:
            run = project.run(name, progress=context.log.info)
        except RunFailed as error:
            raise _failure(error.runs[0].cause, error.runs[0]) from None
        except SnaploomError as error:
            raise dagster.Failure(str(error), allow_retries=error.retryable) from None
        for warning in run.warnings:
            context.log.warning(warning)
        return dagster.MaterializeResult(metadata=_metadata(run))

    return materialize


def _failure(cause: str, run: Run) -> dagster.Failure:
    return dagster.Failure(cause, metadata=_metadata(run), allow_retries=bool(run.report.retryable))


def _metadata(run: Run) -> dict[str, dagster.MetadataValue]:
    """What people see of a run in Dagster's catalogue."""
    newest = max((snapshot.time for snapshot in run.published), default="")
    found = {
        "snapshots": dagster.MetadataValue.int(len(run.published)),
        "dagster/row_count": dagster.MetadataValue.int(sum(one.rows for one in run.published)),
        "run_id": dagster.MetadataValue.text(run.report.run_id),
        "report": dagster.MetadataValue.json(run.report.dump()),
    }
    return found | ({"newest": dagster.MetadataValue.text(newest)} if newest else {})
