"""What Spark notes of its stages and queries, asked of its own REST interface."""

from collections.abc import Sequence
from urllib.request import urlopen

from pydantic import BaseModel, ConfigDict, TypeAdapter
from pydantic.alias_generators import to_camel
from pyspark.sql import SparkSession

_MEDIAN, _MOST = 0, 1
"""Places of the two quantiles that are asked for."""


class _Answer(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, extra="ignore", frozen=True, populate_by_name=True
    )


class ShuffleReads(_Answer):
    """What the median task and the largest one read of a shuffle."""

    read_bytes: tuple[float, float]


class Tasks(_Answer):
    """The median task of a stage, and its largest."""

    executor_run_time: tuple[float, float]
    """Milliseconds."""
    peak_execution_memory: tuple[float, float]
    """Bytes."""
    shuffle_read_metrics: ShuffleReads


class Stage(_Answer):
    """One stage that has run."""

    stage_id: int
    num_tasks: int
    executor_run_time: int
    """Milliseconds, of all tasks."""
    executor_cpu_time: int
    """Nanoseconds, of all tasks."""
    shuffle_read_bytes: int
    shuffle_write_bytes: int
    memory_bytes_spilled: int
    """Size in memory of what was spilled."""
    disk_bytes_spilled: int
    """Size on disk of the same."""
    task_metrics_distributions: Tasks | None = None

    @property
    def hottest(self) -> float:
        """Run time of the longest task, held against the median one."""
        tasks = self.task_metrics_distributions
        if tasks is None or not tasks.executor_run_time[_MEDIAN]:
            return 1.0
        return tasks.executor_run_time[_MOST] / tasks.executor_run_time[_MEDIAN]

    @property
    def execution_memory(self) -> float:
        """Bytes of execution memory of the task that needed most."""
        tasks = self.task_metrics_distributions
        return tasks.peak_execution_memory[_MOST] if tasks else 0.0

    @property
    def largest_read(self) -> float:
        """Bytes of the task that read most of a shuffle."""
        tasks = self.task_metrics_distributions
        return tasks.shuffle_read_metrics.read_bytes[_MOST] if tasks else 0.0


class Metric(_Answer):
    """One metric of an operator, as Spark shows it."""

    name: str
    value: str


class Operator(_Answer):
    """One operator of a physical plan."""

    node_name: str
    whole_stage_codegen_id: int | None = None
    """Which generated code it is part of."""
    metrics: Sequence[Metric] = ()


class Query(_Answer):
    """One query, with its final plan."""

    id: int
    nodes: Sequence[Operator] = ()


_GENERATED = ("Project", "Filter", "Sort", "SortMergeJoin", "BroadcastHashJoin", "ShuffledHashJoin")
"""Operators that Spark has generated code for, if it does not fall back."""


class SparkStatus:
    """The status store of a running application whose web page is on."""

    def __init__(self, spark: SparkSession) -> None:
        """Find its address."""
        context = spark.sparkContext
        assert context.uiWebUrl is not None, "the session was built with its web page"
        port = context.uiWebUrl.rpartition(":")[2]
        self._url = f"http://127.0.0.1:{port}/api/v1/applications/{context.applicationId}"

    def stages(self, after: int = -1) -> list[Stage]:
        """The stages that have run, in their order.

        Args:
            after: number of a stage; only later ones are given.
        """
        text = self._get("stages?status=complete&withSummaries=true&quantiles=0.5,1.0")
        found = TypeAdapter(list[Stage]).validate_json(text)
        return sorted((s for s in found if s.stage_id > after), key=lambda stage: stage.stage_id)

    def largest_plan(self, after: int = -1) -> Query:
        """The query with most operators: that which wrote the rows.

        Args:
            after: number of a query; only later ones are looked at.
        """
        queries = [query for query in self._queries() if query.id > after]
        return max(queries, key=lambda query: len(query.nodes))

    def last_query(self) -> int:
        """Number of the newest query."""
        return max((query.id for query in self._queries()), default=-1)

    def _queries(self) -> list[Query]:
        text = self._get("sql?details=true&planDescription=false&length=1000")
        return TypeAdapter(list[Query]).validate_json(text)

    def _get(self, path: str) -> bytes:
        with urlopen(f"{self._url}/{path}") as answer:
            content: bytes = answer.read()
        return content


def interpreted(query: Query) -> int:
    """Operators of a plan that run without generated code, though Spark can generate it."""
    able = (node for node in query.nodes if node.node_name in _GENERATED)
    return sum(node.whole_stage_codegen_id is None for node in able)


def split_partitions(query: Query) -> int:
    """Partitions that Spark found skewed in a shuffle, and split."""
    return sum(
        int(metric.value.replace(",", ""))
        for node in query.nodes
        for metric in node.metrics
        if metric.name == "number of skewed partitions"
    )
