"""Cores, memory and number of driver and executors, with defaults for omitted settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from snaploom.models.run import (
    DriverSettings,
    DynamicAllocation,
    ExecutorSettings,
    SparkSettings,
    memory_mebibytes,
    spark_memory,
)

_CORES = 1
_MEMORY_DEFAULT = "1g"
_EXECUTORS = 1
_OVERHEAD_FACTOR = 0.4
"""By which Spark enlarges pods of a Python program."""
_DRIVER_OVERHEAD = 640
"""MiB that a driver needs beside its heap: some 230 for the classes, code and threads of its JVM,
240 for the Python program (measured in a pod of the flights example), and some for listings."""
_OVERHEAD_SETTINGS = (
    "spark.driver.memoryOverhead",
    "spark.driver.memoryOverheadFactor",
    "spark.driver.minMemoryOverhead",
    "spark.kubernetes.memoryOverheadFactor",
)


@dataclass(frozen=True)
class Sizes:
    """Driver and executors of one run."""

    driver_cores: int
    driver_memory: str
    """In Spark's own units, in which `g` is a GiB."""
    driver_overhead: str
    """Memory of the driver's pod beyond that; empty where Spark's own default suffices, or where
    settings choose it."""
    executor_cores: int
    executor_memory: str
    executors: int
    """Fixed number of executors; 0 for local mode."""
    allocation: DynamicAllocation | None
    """Dynamic allocation; None for a fixed number."""

    @property
    def local_master(self) -> str:
        """Spark's master in local mode; empty with executors."""
        is_local = self.allocation is None and self.executors == 0
        return f"local[{self.driver_cores}]" if is_local else ""


def sizes(spark: SparkSettings) -> Sizes:
    """The sizes of a run's settings.

    With dynamic allocation the fixed number is the initial one, within its bounds, unless that is
    given too. Without executors the driver runs Spark in local mode.
    """
    driver, executor = spark.driver or DriverSettings(), spark.executor or ExecutorSettings()
    count = _EXECUTORS if executor.instances is None else executor.instances
    allocation = spark.dynamic_allocation
    is_dynamic = allocation is not None and allocation.enabled
    driver_memory = driver.memory or _MEMORY_DEFAULT
    return Sizes(
        driver_cores=driver.cores or _CORES,
        driver_memory=spark_memory(driver_memory),
        driver_overhead=_driver_overhead(driver_memory, spark.spark_conf),
        executor_cores=executor.cores or _CORES,
        executor_memory=spark_memory(executor.memory or _MEMORY_DEFAULT),
        executors=count,
        allocation=_started(allocation, count) if allocation and is_dynamic else None,
    )


def _driver_overhead(memory: str, spark_conf: Mapping[str, str]) -> str:
    is_chosen = any(key in spark_conf for key in _OVERHEAD_SETTINGS)
    if is_chosen or memory_mebibytes(memory) * _OVERHEAD_FACTOR >= _DRIVER_OVERHEAD:
        return ""
    return f"{_DRIVER_OVERHEAD}m"


def _started(allocation: DynamicAllocation, count: int) -> DynamicAllocation:
    if allocation.initial_executors is not None:
        return allocation
    within = max(count, allocation.min_executors or 0)
    if allocation.max_executors is not None:
        within = min(within, allocation.max_executors)
    return allocation.model_copy(update={"initial_executors": within})
