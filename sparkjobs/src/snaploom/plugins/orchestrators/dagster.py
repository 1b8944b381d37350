"""Outputs as assets of Dagster: one asset an output, after the outputs that it reads.

An asset is materialized by `Project.run`: what is due is published, and what is published stays. A
run that fails is a failure of Dagster, with the Report as metadata; it is retried only where trying
again can help. Dagster reads annotations of functions, so that those here are no texts.
"""

from collections.abc import Callable, Iterable, Sequence

import dagster

from snaploom.plugins.orchestrators import GROUP, newest_of, rows_of, run_output
from snaploom.project.project import Project, Source, load
from snaploom.project.results import Run


def output_assets(
    project: Project | Source | Iterable[Source],
    *,
    outputs: Sequence[str] | None = None,
    group: str = GROUP,
    key_prefix: Sequence[str] = (),
) -> list[dagster.AssetsDefinition]:
    """An asset for each output.

    Args:
        project: declarations, or an argument of `snaploom.load`.
        outputs: names of outputs; omitted, all.
        group: of the assets.
        key_prefix: parts before the output's name in the key of its asset.

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
        ended = run_output(lambda: project, name, info=context.log.info, warn=context.log.warning)
        metadata = {} if ended.run is None else _metadata(ended.run)
        if ended.failure:
            raise dagster.Failure(
                ended.failure, metadata=metadata, allow_retries=ended.is_retryable
            )
        return dagster.MaterializeResult(metadata=metadata)

    return materialize


def _metadata(run: Run) -> dict[str, dagster.MetadataValue]:
    newest = newest_of(run)
    found = {
        "snapshots": dagster.MetadataValue.int(len(run.published)),
        "dagster/row_count": dagster.MetadataValue.int(rows_of(run)),
        "run_id": dagster.MetadataValue.text(run.report.run_id),
        "report": dagster.MetadataValue.json(run.report.dump()),
    }
    return found | ({"newest": dagster.MetadataValue.text(newest)} if newest else {})
