"""Accelerators of Spark: whether a run has one, and the settings that its session needs."""

from collections.abc import Mapping

from snaploom.errors import ArgumentInvalid
from snaploom.models.run import Accelerator, RunSettings, SparkSettings, memory_mebibytes

VARIABLE = "SNAPLOOM_ACCELERATOR"
"""Environment variable that chooses the accelerator of runs on a laptop."""
PLUGINS = "spark.plugins"
PLUGIN = "org.apache.spark.CometPlugin"
OFF_HEAP = "spark.memory.offHeap.size"
FALLBACK_REASONS = "fallback"
BATCH = "spark.comet.batchSize"
"""Rows at a time; a run chooses them by the width of its rows, unless they are set."""

_COMET: Mapping[str, str] = {
    PLUGINS: PLUGIN,
    "spark.shuffle.manager": ("org.apache.spark.sql.comet.execution.shuffle.CometShuffleManager"),
    "spark.memory.offHeap.enabled": "true",
    # Never a run that goes on without a word, where the native library does not load.
    "spark.comet.nativeLoadRequired": "true",
    "spark.comet.write.parquet.enabled": "true",
    "spark.comet.operator.DataWritingCommandExec.allowIncompatible": "true",
    # What is read of tables of Iceberg was not compared.
    "spark.comet.scan.icebergNative.enabled": "false",
    # NaN and both zeros are compared by Spark, as keys too.
    "spark.comet.exec.strictFloatingPoint": "true",
    "spark.sql.extendedExplainProviders": "org.apache.comet.ExtendedExplainInfo",
    "spark.comet.explain.format": FALLBACK_REASONS,
}

LAPTOP_MEMORY = "2g"
"""Heap of a laptop's Spark, which is driver and executor in one."""
_LEAST_MEBIBYTES = 1024
"""Native memory below which two tasks that sort at a time fail for want of it."""


def chosen(
    run: RunSettings, environment: Mapping[str, str], option: Accelerator | None = None
) -> RunSettings:
    """The settings of a run with its accelerator: of an option, the environment, or as declared.

    Raises:
        ArgumentInvalid: the environment names none.
    """
    option = option or _named(environment.get(VARIABLE, ""))
    if option is None:
        return run
    spark = run.spark or SparkSettings()
    return run.model_copy(update={"spark": spark.model_copy(update={"accelerator": option})})


def _named(name: str) -> Accelerator | None:
    try:
        return Accelerator(name.upper()) if name else None
    except ValueError:
        raise ArgumentInvalid(
            "there is no such accelerator",
            path=VARIABLE,
            found=name,
            expected=" or ".join(each.value for each in Accelerator),
            hint=f"correct the environment variable {VARIABLE}, or unset it",
        ) from None


def is_accelerated(spark: SparkSettings | None) -> bool:
    """Whether settings ask for an accelerator."""
    return spark is not None and spark.accelerator is Accelerator.COMET


def off_heap_mebibytes(memory: str) -> int:
    """The native memory of a process with tasks: as much again as its heap."""
    return max(_LEAST_MEBIBYTES, round(memory_mebibytes(memory)))


def accelerated_settings(spark: SparkSettings | None, memory: str | None = None) -> dict[str, str]:
    """Settings of an accelerated run in its session; none for other runs.

    `memory` is the heap of the processes that have tasks; omitted, that of the driver, which has
    them in local mode. `run.spark.sparkConf` wins over all of it.
    """
    if spark is None or not is_accelerated(spark):
        return {}
    driver = None if spark.driver is None else spark.driver.memory
    return {**_COMET, OFF_HEAP: f"{off_heap_mebibytes(memory or driver or LAPTOP_MEMORY)}m"}


def encrypted_shuffle(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings of an accelerated session where Spark encrypts its files on disks; else none.

    Comet's native shuffle writes rows as they are; its other one encrypts as Spark does (tried).
    """
    is_encrypted = settings.get("spark.io.encryption.enabled") == "true"
    is_native = PLUGIN in settings.get(PLUGINS, "")
    return {"spark.comet.shuffle.mode": "jvm"} if is_encrypted and is_native else {}


SETTINGS = (*_COMET, OFF_HEAP)
"""Names of the settings of an accelerated run."""
