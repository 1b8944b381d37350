"""Outputs as tasks of Airflow 3: an operator, and the asset that each output is.

A task calls `Project.run`: what is due is published, and what is published stays. Its asset has an
event only where a snapshot was published, so that a DAG that is scheduled by the asset runs when
there is something new. A failure that cannot go away by itself is not retried.

A DAG file that has these tasks is parsed every half minute: declarations are read then, for the
assets, but neither data nor Spark is touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from airflow.sdk import Asset, BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from pydantic import JsonValue

from snaploom.models.allowances import NO_CHOICE
from snaploom.models.outputdataset import OutputDataset
from snaploom.plugins.orchestrators import GROUP, RunChoice, newest_of, rows_of, run_output
from snaploom.project.project import Project, Source, load

if TYPE_CHECKING:
    from airflow.sdk import Context

Paths = str | Sequence[str]
"""A YAML file, a folder with such files, or several of these."""


def output_asset(project: Project | Source | Iterable[Source], output: str) -> Asset:
    """The asset of an output, by the URI of its folder.

    Raises:
        ArgumentInvalid: there is no such output.
        InvalidDeclarations: something is wrong with the declarations.
    """
    loaded = project if isinstance(project, Project) else load(project)
    loaded.validate(raises=True)
    return _assets(loaded, [output])[0]


class SnaploomOperator(BaseOperator):  # type: ignore[misc]  # typed only where Airflow is installed
    """Publishes the snapshots of one output that are due.

    The task's outlet is the asset of the output, its inlets are those of the outputs that it reads,
    unless `inlets` or `outlets` are given, or a template stands where only a run knows the text.

    Args:
        project: a YAML file, a folder with such files, or several of these.
        output_dataset: its name.
        now: time to plan for, ISO 8601; omitted, the present.
        limit: snapshots to publish at most.
        keep_going: whether a snapshot that fails leaves the later ones their turn.
        strict: whether a root without any snapshot is a failure.
        env: an environment of the project file, `snaploom.yaml`.
        variables: values of variables, before those of the project file.
        allow: entries that declarations may use beyond the built-in lists, each `LIST=ENTRY`.
        **arguments: those of every operator, such as `task_id` and `retries`.

    Raises:
        ArgumentInvalid: there is no such output.
        InvalidDeclarations: something is wrong with the declarations.
    """

    template_fields: ClassVar[Sequence[str]] = (
        "project", "output_dataset", "now", "env", "variables",
    )  # fmt: skip
    ui_color = "#cfe3e8"

    def __init__(
        self,
        *,
        project: Paths,
        output_dataset: str,
        now: str | None = None,
        limit: int | None = None,
        keep_going: bool = False,
        strict: bool = False,
        env: str | None = None,
        variables: Mapping[str, str] = NO_CHOICE.values,
        allow: Sequence[str] = (),
        **arguments: object,
    ) -> None:
        has_assets = not {"inlets", "outlets"}.isdisjoint(arguments)
        texts = f"{project} {output_dataset} {env} {dict(variables)}"
        if not has_assets and "{{" not in texts and "{%" not in texts:
            loaded = load(project, allow=allow, env=env, variables=variables)
            loaded.validate(raises=True)
            arguments |= _inlets_and_outlets(loaded, output_dataset)
        super().__init__(**arguments)
        self.project = project
        self.output_dataset = output_dataset
        self.now = now
        self.limit = limit
        self.keep_going = keep_going
        self.strict = strict
        self.env = env
        self.variables = dict(variables)
        self.allow = tuple(allow)

    def execute(self, context: Context) -> dict[str, JsonValue]:
        """Publish the snapshots that are due.

        Returns:
            Summary of the publication, as the task's XCom.

        Raises:
            AirflowFailException: the run failed, and would fail again.
            AirflowException: it failed, and may succeed when it is tried again.
        """
        ended = run_output(
            self._load,
            self.output_dataset,
            info=self.log.info,
            warn=self.log.warning,
            choice=RunChoice(self.now, self.limit, self.keep_going, self.strict),
        )
        if ended.failure or ended.run is None:
            error = AirflowException if ended.is_retryable else AirflowFailException
            raise error(ended.failure)
        # The part of a Report that other tasks can use; the whole may be too long for a database.
        found: dict[str, JsonValue] = {
            "output": ended.run.output,
            "run_id": ended.run.report.run_id,
            "snapshots": [snapshot.time for snapshot in ended.run.published],
            "rows": rows_of(ended.run),
            "newest": newest_of(ended.run),
        }
        if ended.run.published:
            for asset in self.outlets:
                context["outlet_events"][asset].extra = found
        else:
            # Nothing is new: an event would start what waits for news.
            self.outlets: list[Asset] = []
        return found

    def _load(self) -> Project:
        return load(self.project, allow=self.allow, env=self.env, variables=self.variables)


def output_tasks(
    project: Paths,
    *,
    outputs: Sequence[str] | None = None,
    env: str | None = None,
    variables: Mapping[str, str] = NO_CHOICE.values,
    allow: Sequence[str] = (),
    **arguments: object,
) -> dict[str, SnaploomOperator]:
    """A task for each output in the DAG around, after those of the outputs that it reads.

    Args:
        project: a YAML file, a folder with such files, or several of these.
        outputs: names of outputs; omitted, all.
        env: an environment of the project file, `snaploom.yaml`.
        variables: values of variables, before those of the project file.
        allow: entries that declarations may use beyond the built-in lists, each `LIST=ENTRY`.
        **arguments: of every task, such as `retries` and `strict`.

    Returns:
        The tasks, by the names of their outputs.

    Raises:
        InvalidDeclarations: something is wrong with the declarations.
    """
    loaded = load(project, allow=allow, env=env, variables=variables)
    loaded.validate(raises=True)
    make: Callable[..., SnaploomOperator] = SnaploomOperator  # arguments are those of any operator
    tasks = {
        name: make(
            task_id=name,
            project=project,
            output_dataset=name,
            env=env,
            variables=variables,
            allow=allow,
            **_inlets_and_outlets(loaded, name),
            **arguments,
        )
        for name in (loaded.outputs if outputs is None else outputs)
    }
    for name, task in tasks.items():
        task.set_upstream([tasks[read] for read in loaded.upstream(name) if read in tasks])
    return tasks


def _inlets_and_outlets(project: Project, output: str) -> dict[str, list[Asset]]:
    return {
        "inlets": _assets(project, project.upstream(output)),
        "outlets": _assets(project, [output]),
    }


def _assets(project: Project, outputs: Sequence[str]) -> list[Asset]:
    """Assets by the URIs of folders, which no two outputs share, in any project."""
    for output in outputs:
        project.upstream(output)  # refuses a name of nothing
    folders = {
        each.name: each.spec.output_folder.folder_uri.rstrip("/")
        for each in project.resources
        if isinstance(each, OutputDataset)
    }
    return [Asset(folders[output], group=GROUP) for output in outputs]
