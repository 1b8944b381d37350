"""Keys that `run.spark.sparkConf` may hold, and the form of their values.

Spark's configuration loads classes, reads and writes files, opens ports, names servers, changes how
SQL is read, and shapes pods. So keys are allowed by name: each was judged once, by what Spark 4.3
does with it, and what is not listed is refused until somebody judges it, or an administrator adds
it to the list `sparkConf`. Values are judged as well: most are numbers, sizes, times and words,
which no class name, path or address is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.policy.addresses import OF_ADMINISTRATOR, refusal_of_host
from snaploom.policy.variables import variable_reason

KEY = re.compile(r"spark(\.[A-Za-z0-9_-]+)+")
"""Keys reach `spark-submit` as `key=value`: one with `=` would be another key there."""

_SUBSTITUTED = re.compile(r"\$\{(env|system|spark|hadoopconf):|\$\{spark\.")
"""Spark replaces these in values by variables of the submitter's process."""

OWN_FIELD: Mapping[str, str] = {
    "spark.driver.cores": "driver.cores",
    "spark.driver.memory": "driver.memory",
    "spark.dynamicAllocation.enabled": "dynamicAllocation.enabled",
    "spark.dynamicAllocation.initialExecutors": "dynamicAllocation.initialExecutors",
    "spark.dynamicAllocation.maxExecutors": "dynamicAllocation.maxExecutors",
    "spark.dynamicAllocation.minExecutors": "dynamicAllocation.minExecutors",
    "spark.executor.cores": "executor.cores",
    "spark.executor.instances": "executor.instances",
    "spark.executor.memory": "executor.memory",
    "spark.kubernetes.authenticate.driver.serviceAccountName": "serviceAccountName",
    "spark.kubernetes.container.image": "image",
    "spark.kubernetes.container.image.pullPolicy": "imagePullPolicy",
    "spark.kubernetes.container.image.pullSecrets": "imagePullSecrets",
}
"""Settings that are fields under `run.spark`: the field would win without a word."""

_EXECUTOR_VARIABLE = "spark.executorEnv."
_S3A = "spark.hadoop.fs.s3a."
_BUCKET = re.compile(r"bucket\.[a-z0-9][a-z0-9-]{1,62}\.")

_PLAIN = re.compile(r"[-+]?\w*+(\.\d\w*+)?", re.ASCII)
_ZONE = re.compile(r"[A-Za-z0-9_+:-][A-Za-z0-9_+/:-]{0,63}")
_WORDS = re.compile(r"[A-Za-z0-9_, -]*")
_TEXT = re.compile(r".*", re.DOTALL)
_JAVA = re.compile(
    r"(\s*("
    r"-XX:[+-](Use(G1|Parallel|Serial|Z|Shenandoah)GC|UseStringDeduplication|UseCompressedOops"
    r"|UseContainerSupport|AlwaysPreTouch|ParallelRefProcEnabled|DisableExplicitGC"
    r"|ExitOnOutOfMemoryError|CrashOnOutOfMemoryError|ZGenerational|UseNUMA|UseLargePages)"
    r"|-XX:[A-Z][A-Za-z0-9]*=\d+(\.\d+)?[kmgtKMGT]?"
    r"|-Xss\d+[kmgKMG]"
    r"|-Duser\.timezone=[A-Za-z0-9_+/-]+"
    r"|-Dfile\.encoding=UTF-8"
    r")(?=\s|$))*\s*"
)
_SERIALIZERS = re.compile(r"org\.apache\.spark\.serializer\.(Kryo|Java)Serializer")
_CODECS = re.compile(r"lz4|lzf|snappy|zstd")
_PROVIDERS = frozenset(
    {
        "com.amazonaws.auth.EnvironmentVariableCredentialsProvider",
        "com.amazonaws.auth.WebIdentityTokenCredentialsProvider",
        "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider",
        "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
        "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider",
        "org.apache.hadoop.fs.s3a.auth.IAMInstanceCredentialsProvider",
        "software.amazon.awssdk.auth.credentials.AnonymousCredentialsProvider",
        "software.amazon.awssdk.auth.credentials.ContainerCredentialsProvider",
        "software.amazon.awssdk.auth.credentials.EnvironmentVariableCredentialsProvider",
        "software.amazon.awssdk.auth.credentials.InstanceProfileCredentialsProvider",
        "software.amazon.awssdk.auth.credentials.WebIdentityTokenFileCredentialsProvider",
    }
)
"""Those that come with Hadoop and Amazon's client, and start no program: a profile may name one."""
_ENDPOINT = re.compile(r"(?:https?://)?(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:\d{1,5})?/?")


@dataclass(frozen=True)
class Allowed:
    """Settings that were judged together."""

    title: str
    reason: str
    """Reason why they are harmless."""
    keys: tuple[str, ...]
    """Their names; one that ends in `.` stands for all below it."""
    form: re.Pattern[str] = _PLAIN
    expected: str = "a number, a size, a time or a word"
    """The same for people."""


ALLOWED: tuple[Allowed, ...] = (
    Allowed(
        "Memory",
        "they divide the memory of the run's own pods",
        (
            "spark.driver.maxResultSize",
            "spark.driver.memoryOverhead",
            "spark.driver.memoryOverheadFactor",
            "spark.driver.minMemoryOverhead",
            "spark.executor.memoryOverhead",
            "spark.executor.memoryOverheadFactor",
            "spark.executor.minMemoryOverhead",
            "spark.executor.pyspark.memory",
            "spark.kryoserializer.buffer",
            "spark.kryoserializer.buffer.max",
            "spark.memory.fraction",
            "spark.memory.offHeap.enabled",
            "spark.memory.offHeap.size",
            "spark.memory.storageFraction",
            "spark.python.worker.reuse",
        ),
    ),
    Allowed(
        "Scheduling",
        "they order the tasks of the run itself",
        (
            "spark.cleaner.periodicGC.interval",
            "spark.decommission.enabled",
            "spark.default.parallelism",
            "spark.dynamicAllocation.cachedExecutorIdleTimeout",
            "spark.dynamicAllocation.executorAllocationRatio",
            "spark.dynamicAllocation.executorIdleTimeout",
            "spark.dynamicAllocation.schedulerBacklogTimeout",
            "spark.dynamicAllocation.shuffleTracking.enabled",
            "spark.dynamicAllocation.shuffleTracking.timeout",
            "spark.dynamicAllocation.sustainedSchedulerBacklogTimeout",
            "spark.excludeOnFailure.enabled",
            "spark.excludeOnFailure.timeout",
            "spark.executor.heartbeatInterval",
            "spark.locality.wait",
            "spark.locality.wait.node",
            "spark.locality.wait.process",
            "spark.locality.wait.rack",
            "spark.network.timeout",
            "spark.rpc.askTimeout",
            "spark.rpc.lookupTimeout",
            "spark.rpc.message.maxSize",
            "spark.scheduler.listenerbus.eventqueue.capacity",
            "spark.scheduler.maxRegisteredResourcesWaitingTime",
            "spark.scheduler.minRegisteredResourcesRatio",
            "spark.scheduler.mode",
            "spark.speculation",
            "spark.speculation.interval",
            "spark.speculation.minTaskRuntime",
            "spark.speculation.multiplier",
            "spark.speculation.quantile",
            "spark.stage.maxConsecutiveAttempts",
            "spark.storage.decommission.enabled",
            "spark.storage.decommission.rddBlocks.enabled",
            "spark.storage.decommission.shuffleBlocks.enabled",
            "spark.task.cpus",
            "spark.task.maxFailures",
            "spark.ui.showConsoleProgress",
        ),
    ),
    Allowed(
        "Pool",
        "the name of a queue inside the run itself",
        ("spark.scheduler.pool",),
        _TEXT,
        "text",
    ),
    Allowed(
        "Shuffle and blocks",
        "they size the exchange of rows between the run's own pods",
        (
            "spark.broadcast.blockSize",
            "spark.broadcast.compress",
            "spark.io.compression.lz4.blockSize",
            "spark.io.compression.zstd.bufferSize",
            "spark.io.compression.zstd.level",
            "spark.rdd.compress",
            "spark.reducer.maxBlocksInFlightPerAddress",
            "spark.reducer.maxReqsInFlight",
            "spark.reducer.maxSizeInFlight",
            "spark.shuffle.compress",
            "spark.shuffle.file.buffer",
            "spark.shuffle.io.connectionTimeout",
            "spark.shuffle.io.maxRetries",
            "spark.shuffle.io.numConnectionsPerPeer",
            "spark.shuffle.io.retryWait",
            "spark.shuffle.registration.maxAttempts",
            "spark.shuffle.registration.timeout",
            "spark.shuffle.sort.bypassMergeThreshold",
            "spark.shuffle.spill.compress",
        ),
    ),
    Allowed(
        "Compression between pods",
        "one of Spark's own; any other text would be a class to load",
        ("spark.io.compression.codec",),
        _CODECS,
        "lz4, lzf, snappy or zstd",
    ),
    Allowed(
        "Serializer",
        "one of Spark's own; any other text would be a class to load",
        ("spark.serializer",),
        _SERIALIZERS,
        "org.apache.spark.serializer.KryoSerializer or JavaSerializer",
    ),
    Allowed(
        "Java",
        "collectors, sizes and zone of the run's own Java; agents, files, commands and other "
        "properties are none of these",
        ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"),
        _JAVA,
        "options of the garbage collector (-XX), -Xss, -Duser.timezone, -Dfile.encoding=UTF-8",
    ),
    Allowed(
        "Joins and plans",
        "they choose between plans that give the same rows",
        (
            "spark.sql.adaptive.advisoryPartitionSizeInBytes",
            "spark.sql.adaptive.autoBroadcastJoinThreshold",
            "spark.sql.adaptive.coalescePartitions.enabled",
            "spark.sql.adaptive.coalescePartitions.initialPartitionNum",
            "spark.sql.adaptive.coalescePartitions.minPartitionSize",
            "spark.sql.adaptive.coalescePartitions.parallelismFirst",
            "spark.sql.adaptive.enabled",
            "spark.sql.adaptive.localShuffleReader.enabled",
            "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold",
            "spark.sql.adaptive.optimizeSkewsInRebalancePartitions.enabled",
            "spark.sql.adaptive.skewJoin.enabled",
            "spark.sql.adaptive.skewJoin.skewedPartitionFactor",
            "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes",
            "spark.sql.autoBroadcastJoinThreshold",
            "spark.sql.broadcastTimeout",
            "spark.sql.cbo.enabled",
            "spark.sql.cbo.joinReorder.enabled",
            "spark.sql.codegen.factoryMode",
            "spark.sql.codegen.hugeMethodLimit",
            "spark.sql.codegen.maxFields",
            "spark.sql.codegen.wholeStage",
            "spark.sql.execution.arrow.maxRecordsPerBatch",
            "spark.sql.execution.arrow.pyspark.enabled",
            "spark.sql.inMemoryColumnarStorage.batchSize",
            "spark.sql.inMemoryColumnarStorage.compressed",
            "spark.sql.join.preferSortMergeJoin",
            "spark.sql.optimizer.dynamicPartitionPruning.enabled",
            "spark.sql.optimizer.maxIterations",
            "spark.sql.optimizer.runtime.bloomFilter.enabled",
            "spark.sql.shuffle.partitions",
            "spark.sql.sources.bucketing.enabled",
            "spark.sql.statistics.fallBackToHdfs",
            "spark.sql.statistics.histogram.enabled",
        ),
    ),
    Allowed(
        "Files",
        "they decide how files that a declaration names are split, read and written",
        (
            "spark.hadoop.parquet.block.size",
            "spark.hadoop.parquet.dictionary.page.size",
            "spark.hadoop.parquet.enable.dictionary",
            "spark.hadoop.parquet.page.row.count.limit",
            "spark.hadoop.parquet.page.size",
            "spark.sql.avro.compression.codec",
            "spark.sql.avro.datetimeRebaseModeInRead",
            "spark.sql.avro.datetimeRebaseModeInWrite",
            "spark.sql.avro.deflate.level",
            "spark.sql.columnNameOfCorruptRecord",
            "spark.sql.csv.filterPushdown.enabled",
            "spark.sql.csv.parser.columnPruning.enabled",
            "spark.sql.files.ignoreCorruptFiles",
            "spark.sql.files.ignoreMissingFiles",
            "spark.sql.files.maxPartitionBytes",
            "spark.sql.files.maxPartitionNum",
            "spark.sql.files.maxRecordsPerFile",
            "spark.sql.files.minPartitionNum",
            "spark.sql.files.openCostInBytes",
            "spark.sql.json.enablePartialResults",
            "spark.sql.json.filterPushdown.enabled",
            "spark.sql.legacy.timeParserPolicy",
            "spark.sql.orc.columnarReaderBatchSize",
            "spark.sql.orc.compression.codec",
            "spark.sql.orc.enableVectorizedReader",
            "spark.sql.orc.filterPushdown",
            "spark.sql.orc.impl",
            "spark.sql.orc.mergeSchema",
            "spark.sql.parquet.aggregatePushdown",
            "spark.sql.parquet.binaryAsString",
            "spark.sql.parquet.columnarReaderBatchSize",
            "spark.sql.parquet.compression.codec",
            "spark.sql.parquet.datetimeRebaseModeInRead",
            "spark.sql.parquet.datetimeRebaseModeInWrite",
            "spark.sql.parquet.enableNestedColumnVectorizedReader",
            "spark.sql.parquet.enableVectorizedReader",
            "spark.sql.parquet.fieldId.read.enabled",
            "spark.sql.parquet.filterPushdown",
            "spark.sql.parquet.inferTimestampNTZ.enabled",
            "spark.sql.parquet.int96AsTimestamp",
            "spark.sql.parquet.int96RebaseModeInRead",
            "spark.sql.parquet.int96RebaseModeInWrite",
            "spark.sql.parquet.int96TimestampConversion",
            "spark.sql.parquet.mergeSchema",
            "spark.sql.parquet.outputTimestampType",
            "spark.sql.parquet.recordLevelFilter.enabled",
            "spark.sql.sources.parallelPartitionDiscovery.parallelism",
            "spark.sql.sources.parallelPartitionDiscovery.threshold",
            "spark.sql.sources.partitionColumnTypeInference.enabled",
            "spark.sql.timestampType",
        ),
    ),
    Allowed(
        "Readers by version",
        "names of Spark's own formats",
        ("spark.sql.sources.useV1SourceList",),
        _WORDS,
        "names of formats",
    ),
    Allowed(
        "Zone",
        "the zone in which texts become times",
        ("spark.sql.session.timeZone",),
        _ZONE,
        "the name of a zone",
    ),
    Allowed(
        "Catalog",
        "Spark's own or Hive's; the image or the administrator decides which Hive",
        ("spark.sql.catalogImplementation",),
        re.compile(r"hive|in-memory"),
        "hive or in-memory",
    ),
    Allowed(
        "Skipping indexes",
        "they switch the use of indexes on and off, and bound it",
        (
            "spark.snaploom.skipping.enabled",
            "spark.snaploom.skipping.evaluateOnly",
            "spark.snaploom.skipping.join.enabled",
            "spark.snaploom.skipping.join.keys",
            "spark.snaploom.skipping.usage",
        ),
    ),
    Allowed(
        "Pods",
        "they size the run's own pods and pace their creation",
        (
            "spark.kubernetes.allocation.batch.delay",
            "spark.kubernetes.allocation.batch.size",
            "spark.kubernetes.allocation.driver.readinessTimeout",
            "spark.kubernetes.allocation.executor.timeout",
            "spark.kubernetes.allocation.maxPendingPods",
            "spark.kubernetes.allocation.maximum",
            "spark.kubernetes.appKillPodDeletionGracePeriod",
            "spark.kubernetes.driver.annotateExitException",
            "spark.kubernetes.driver.limit.cores",
            "spark.kubernetes.driver.request.cores",
            "spark.kubernetes.dynamicAllocation.deleteGracePeriod",
            "spark.kubernetes.executor.apiPollingInterval",
            "spark.kubernetes.executor.checkAllContainers",
            "spark.kubernetes.executor.deleteOnTermination",
            "spark.kubernetes.executor.deletedExecutorsCacheTimeout",
            "spark.kubernetes.executor.enableApiPolling",
            "spark.kubernetes.executor.enableApiWatcher",
            "spark.kubernetes.executor.enablePollingWithResourceVersion",
            "spark.kubernetes.executor.eventProcessingInterval",
            "spark.kubernetes.executor.limit.cores",
            "spark.kubernetes.executor.minTasksPerExecutorBeforeRolling",
            "spark.kubernetes.executor.missingPodDetectDelta",
            "spark.kubernetes.executor.podDeletionCost",
            "spark.kubernetes.executor.request.cores",
            "spark.kubernetes.executor.rollInterval",
            "spark.kubernetes.executor.rollPolicy",
            "spark.kubernetes.executor.terminationGracePeriodSeconds",
            "spark.kubernetes.executor.useDriverPodIP",
            "spark.kubernetes.local.dirs.tmpfs",
            "spark.kubernetes.memoryOverheadFactor",
        ),
    ),
    Allowed(
        "Object stores: how",
        "they pace and size the requests of Hadoop's S3 client",
        tuple(
            f"{_S3A}{name}"
            for name in (
                "attempts.maximum",
                "block.size",
                "change.detection.mode",
                "committer.magic.enabled",
                "committer.name",
                "committer.threads",
                "connection.establish.timeout",
                "connection.maximum",
                "connection.request.timeout",
                "connection.ssl.enabled",
                "connection.timeout",
                "connection.ttl",
                "endpoint.fips",
                "experimental.input.fadvise",
                "fast.upload.active.blocks",
                "fast.upload.buffer",
                "list.version",
                "max.total.tasks",
                "multipart.purge",
                "multipart.size",
                "multipart.threshold",
                "paging.maximum",
                "path.style.access",
                "readahead.range",
                "retry.interval",
                "retry.limit",
                "retry.throttle.interval",
                "retry.throttle.limit",
                "select.enabled",
                "threads.keepalivetime",
                "threads.max",
            )
        ),
    ),
    Allowed(
        "Object stores: region",
        "the name of a region",
        (f"{_S3A}endpoint.region",),
        re.compile(r"[a-z0-9-]{1,64}"),
        "the name of a region",
    ),
    Allowed(
        "Object stores: where",
        "a declaration names the bucket, and this the server that has it; metadata services and "
        "link-local addresses are refused",
        (f"{_S3A}endpoint",),
        _ENDPOINT,
        "a host, or http(s)://HOST:PORT, which is neither a metadata service nor link-local",
    ),
    Allowed(
        "Object stores: who",
        "where the keys come from; the keys themselves come from a Secret",
        (f"{_S3A}aws.credentials.provider",),
        re.compile(rf"\s*({'|'.join(map(re.escape, sorted(_PROVIDERS)))})(\s*,\s*"
                   rf"({'|'.join(map(re.escape, sorted(_PROVIDERS)))}))*\s*"),
        "providers that come with Hadoop and Amazon's client, other than profiles",
    ),
)  # fmt: skip
"""Every setting that is allowed without the list `sparkConf` of an administrator."""

BEYOND: Mapping[str, str] = {
    "spark.app.": "the submitter names applications",
    "spark.archives": "it makes the submitter read files of its own",
    "spark.authenticate": "it is how the pods of a run know each other",
    "spark.driver.bindAddress": "the submitter sets it",
    "spark.driver.defaultJavaOptions": "it starts Java with anything, agents included",
    "spark.driver.extraClassPath": "it loads classes from anywhere",
    "spark.driver.extraLibraryPath": "it loads programs from anywhere",
    "spark.driver.host": "the submitter sets it",
    "spark.driver.port": "the submitter sets it",
    "spark.eventLog": "it writes the run's settings and plans anywhere",
    "spark.executor.defaultJavaOptions": "it starts Java with anything, agents included",
    "spark.executor.extraClassPath": "it loads classes from anywhere",
    "spark.executor.extraLibraryPath": "it loads programs from anywhere",
    "spark.extraListeners": "it loads classes by name",
    "spark.files": "it makes the submitter read files of its own",
    "spark.hadoop.fs.": "it can name a class, a file, a program or a key of a store",
    "spark.hadoop.hadoop.security.": "it opens files of the submitter",
    "spark.hadoop.hive.": "it can name classes and servers",
    "spark.hadoop.javax.jdo.": "it names a database, its driver and its password",
    "spark.home": "the image sets it",
    "spark.io.encryption": "it changes the storage of data that a run spills",
    "spark.jars": "it makes the submitter read files of its own; jars belong into the image",
    "spark.kerberos.": "it hands over files of the submitter",
    "spark.kryo": "it loads classes by name",
    "spark.kubernetes.": "it shapes pods, or acts with the rights of the submitter",
    "spark.master": "the submitter sets it",
    "spark.metrics": "it loads classes by name, and sends figures anywhere",
    "spark.network.crypto": "it is how the pods of a run speak to each other",
    "spark.plugins": "it loads classes by name",
    "spark.proxyUser": "it is another identity",
    "spark.pyspark": "it starts programs by name",
    "spark.python": "it starts programs by name",
    "spark.redaction": "it shows hidden values",
    "spark.remote": "it is another cluster",
    "spark.security.credentials.": "it hands over credentials of the submitter",
    "spark.shuffle.manager": "it loads classes by name",
    "spark.shuffle.service": "it is a server of the node",
    "spark.snaploom.skipping.kms": "it names a key service",
    "spark.snaploom.skipping.locations": "it names folders of indexes",
    "spark.sql.ansi": "it changes how SQL is read, after it was judged",
    "spark.sql.catalog": "it loads classes by name",
    "spark.sql.extensions": "it loads classes by name",
    "spark.sql.hive": "it loads classes by name",
    "spark.sql.legacy": "it changes how SQL is read, after it was judged",
    "spark.sql.parser": "it changes how SQL is read, after it was judged",
    "spark.sql.queryExecutionListeners": "it loads classes by name",
    "spark.sql.redaction": "it shows hidden values",
    "spark.sql.streaming": "it loads classes by name",
    "spark.sql.variable": "it changes how SQL is read, after it was judged",
    "spark.sql.warehouse.dir": "it writes anywhere",
    "spark.ssl": "it opens files of the submitter",
    "spark.submit.": "it controls the submitter",
    "spark.ui": "it opens a web page without a password",
    "spark.yarn.": "it is another cluster",
}  # fmt: skip
"""Prefixes of keys that are refused for a known reason; other keys have not been judged."""

_FORMS: Mapping[str, Allowed] = {key: group for group in ALLOWED for key in group.keys}
_UNJUDGED = "its effect has not been judged"


def conf_reason(key: str, value: str, allow: Allowances = NO_ALLOWANCES) -> str:
    """Return why a setting is refused, without its value; empty if it is allowed."""
    if not KEY.fullmatch(key):
        return "keys begin with 'spark.' and have letters, digits, '_', '-' and points"
    if "\0" in value:
        return "the value has a NUL character, which no program can be given"
    if _SUBSTITUTED.search(value):
        return "the value names a variable, which would be read where the job is submitted"
    if key in OWN_FIELD:
        return f"it has a field of its own: run.spark.{OWN_FIELD[key]}"
    if is_listed(key, allow.spark_conf, "."):
        return ""
    if key.startswith(_EXECUTOR_VARIABLE):
        return variable_reason(key.removeprefix(_EXECUTOR_VARIABLE))
    group = _FORMS.get(_common(key))
    if group is None:
        return next((reason for start, reason in BEYOND.items() if _below(key, start)), _UNJUDGED)
    if not group.form.fullmatch(value) or (group.form is _ENDPOINT and _is_metadata_service(value)):
        return f"its value has another form than expected: {group.expected}"
    return ""


def can_be_added(key: str) -> bool:
    """Whether an administrator can allow a key by the list `sparkConf`."""
    return KEY.fullmatch(key) is not None and key not in OWN_FIELD


def is_listed(name: str, entries: tuple[str, ...], separator: str) -> bool:
    """Whether a name is one of these, or below one that ends in the separator."""
    return any(
        name == entry or (entry.endswith(separator) and name.startswith(entry)) for entry in entries
    )


def _common(key: str) -> str:
    if not key.startswith(_S3A):
        return key
    return _S3A + _BUCKET.sub("", key.removeprefix(_S3A), count=1)


def _below(key: str, start: str) -> bool:
    """Whether it is one of these, or below one: `spark.jars` goes with `spark.jars.packages`."""
    return key == start or key.startswith(start.rstrip(".") + ".")


def _is_metadata_service(endpoint: str) -> bool:
    found = _ENDPOINT.fullmatch(endpoint)
    assert found is not None
    port = int((found[2] or ":0")[1:])
    return bool(refusal_of_host(found[1], port, OF_ADMINISTRATOR))
