"""The only place that builds a SparkSession."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from snaploom.errors import ArgumentInvalid, SnaploomError
from snaploom.files.cloud import s3_endpoint
from snaploom.files.listed import ListedFile, SparkNeeded
from snaploom.files.objectstore import ObjectStore
from snaploom.files.stores import open_store
from snaploom.localfiles import private_folder
from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.run import RunSettings, spark_memory
from snaploom.policy import acceleration
from snaploom.policy.pods import hint_of, refusals
from snaploom.run.joblog import silence_py4j
from snaploom.run.session.accelerator import refuse_session_without, refuse_unfit
from snaploom.run.session.classarchive import OF_HADOOP, SUBMITTED, spark_home
from snaploom.run.session.jvm import start_context, translated_start
from snaploom.sources.files.hadoop import HadoopFiles
from snaploom.spark import jvm
from snaploom.spark.failures import translate
from snaploom.spark.gate import ALLOW_SETTING
from snaploom.spark.hadoopstore import hadoop_stores

# Translates Spark's exceptions to Snaploom's errors; other exceptions pass through.

SPARK_FAILURES = (PySparkException, Py4JError, OSError)
"""Everything that a call into Spark raises; an OSError when its JVM is gone."""


class SparkStopped(SnaploomError):
    """Spark was shut down under a run, as `spark-submit` does when it is terminated."""


@contextmanager
def translated(resource: str | None = None) -> Iterator[None]:
    """Raise what Spark raises as an error of Snaploom."""
    try:
        yield
    except SPARK_FAILURES as failure:
        raise translate(failure, resource=resource) from failure


# Configures Hadoop's S3 client from the environment, so that Spark uses the same server.

_PREFIX = "spark.hadoop.fs.s3a."
CLASSIC = "classic"
"""Implementation that reads objects. Hadoop's own choice from 3.5 on keeps in memory what it knows
of an object, for all readers: one that is replaced is asked for as the old one, which S3
refuses."""
_OF_A_ROLE = "software.amazon.awssdk.auth.credentials.WebIdentityTokenFileCredentialsProvider"


def s3a_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Settings of a session, from the variables that `snaploom.files.cloud` goes by."""
    settings = {"input.stream.type": CLASSIC}
    endpoint = s3_endpoint(environment)
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    if endpoint is not None:
        settings["endpoint"] = endpoint
        settings["path.style.access"] = "true"
        # Without one, the client asks Amazon in which region the bucket is.
        region = region or "us-east-1"
    if region:
        settings["endpoint.region"] = region
    if environment.get("AWS_WEB_IDENTITY_TOKEN_FILE") and not environment.get("AWS_ACCESS_KEY_ID"):
        settings["aws.credentials.provider"] = _OF_A_ROLE
    return {f"{_PREFIX}{name}": value for name, value in settings.items()}


# The only place that builds a SparkSession.

_DRIVER_MEMORY = "spark.driver.memory"

LAPTOP_SETTINGS: Mapping[str, str] = {
    "spark.master": "local[*]",
    "spark.driver.bindAddress": "127.0.0.1",
    # Drivers of databases hand times over by way of Java's zone.
    "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
    "spark.driver.host": "127.0.0.1",
    _DRIVER_MEMORY: acceleration.LAPTOP_MEMORY,
    # Four tasks a core: enough to balance, far fewer than Spark's 200 for small data.
    "spark.sql.shuffle.partitions": str(4 * (os.cpu_count() or 2)),
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""Defaults of a laptop's session, which the resource's `run.spark` overrides."""

SAFE_WORKERS: Mapping[str, str] = {"spark.executorEnv.PYTHONSAFEPATH": "1"}
"""Python's workers import no modules of the folder that they are started in, which anybody may
have filled."""

RESULT_SETTINGS: Mapping[str, str] = {"spark.sql.session.timeZone": "UTC"}
"""Settings on which the result of a query depends unless `run.spark` overrides it: without it,
`to_date` of a timestamp would give another day on a machine elsewhere."""

EXECUTOR_JAVA = "spark.executor.extraJavaOptions"
"""Setting with the options that executors' Java is started with."""

SCHEDULING: Mapping[str, str] = {"spark.scheduler.mode": "FAIR"}
"""Outputs that are woven at a time have a pool each, of which Spark serves all alike; jobs of one
pool take turns as they would otherwise."""

WITHOUT_CALL_SITES: Mapping[str, str] = {"spark.python.sql.dataFrameDebugging.enabled": "false"}
"""PySpark would note for each column that an expression has which line of ours made it, in some
eight more calls to the JVM: a tenth of what planning many small queries takes (measured over the
tests of sources and builds), for paths in messages that do not help who reads them."""

_LOGS_PASSWORDS = "org.apache.spark.sql.execution.datasources.jdbc.connection"
"""Logger that prints the properties of each connection to a database, its password among them."""

_LOCAL = re.compile(r"local(\[|$)")
"""Masters with which Spark makes the secret of an application itself, and keeps it in memory."""


class SettingNotAllowed(SnaploomError):
    """A resource makes a setting of Spark that is on no list."""


def build_session(
    name: str,
    run: RunSettings,
    allow: Allowances = NO_ALLOWANCES,
    asked: Iterable[tuple[str, str]] = (),
    *,
    is_small: bool = False,
) -> SparkSession:
    """The session of this process, made when there is none, with the settings that we need.

    One that somebody else made keeps its settings: a sibling of it is given.

    Args:
        name: of the application.
        run: the resource's run settings; its Spark configuration wins over ours, except for the
            settings that correctness rests on.
        allow: entries allowed beyond the built-in lists.
        asked: settings of the process's caller, which win and are not judged.
        is_small: whether the process ends after little work; a JVM that is started is fitted to it.
    """
    existing = _existing()
    if existing is not None:
        refuse_stopped(existing)
        with translated_start():
            is_ours = existing.conf.get(ALLOW_SETTING, None) is not None
        refuse_session_without(existing, run.spark)
        if not is_ours:
            return sibling_session(existing, run, allow, asked)
    silence_py4j()
    _refuse_unlisted(run, allow)
    with translated_start():
        laptop = {} if _is_submitted() else {**LAPTOP_SETTINGS, **_temporary_folders()}
    settings = _settings({**SCHEDULING, **SAFE_WORKERS, **laptop}, run, allow, asked)
    if laptop and _LOCAL.match(settings["spark.master"]):
        # Other users of the machine reach the ports of Spark, which shows them blocks of rows.
        settings.setdefault("spark.authenticate", "true")
    with translated_start():
        all_settings = {**_submitted_settings(), **settings}
    refuse_unfit(all_settings, spark_home(os.environ))
    settings |= acceleration.encrypted_shuffle(all_settings)
    settings[EXECUTOR_JAVA] = in_utc(settings.get(EXECUTOR_JAVA) or _submitted(EXECUTOR_JAVA))
    if not _is_submitted():
        os.environ.setdefault(jvm.WORKER_PYTHON, jvm.worker_python(settings))
    if not _is_submitted() and SparkContext._active_spark_context is None:
        start_context(name, settings, is_small=is_small)
    builder = SparkSession.Builder().appName(name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    with translated_start():
        session = builder.getOrCreate()
        _keep_passwords_out_of_logs(session)
    return session


def _temporary_folders() -> dict[str, str]:
    folder = private_folder()
    return {
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        f"{OF_HADOOP}hadoop.tmp.dir": f"{folder}/hadoop",
    }


def client_before_context(run: RunSettings, allow: Allowances) -> jvm.HadoopClient:
    """Hadoop's client in the JVM of `spark-submit`, configured as `build_session` does it.

    No SparkContext is made, so that nothing is asked of a cluster.
    """
    silence_py4j()
    _refuse_unlisted(run, allow)
    with translated_start():
        SparkContext._ensure_initialized()
        gateway = SparkContext._gateway
        assert gateway is not None  # made by the line above
        conf = SparkConf().setAll(list(_settings(SCHEDULING, run, allow, ()).items()))
        hadoop = gateway.jvm.org.apache.spark.deploy.SparkHadoopUtil.get()
    return jvm.HadoopClient(gateway, lambda: hadoop.newConfiguration(conf._jconf))


def reading_session(name: str, run: RunSettings, allow: Allowances) -> SparkSession:
    """The session of this process as it is; one is made when there is none."""
    return _existing() or build_session(name, run, allow)


def _existing() -> SparkSession | None:
    is_at_work = SparkContext._active_spark_context is not None
    return SparkSession._instantiatedSession if is_at_work else None


def sibling_session(
    spark: SparkSession,
    run: RunSettings,
    allow: Allowances = NO_ALLOWANCES,
    asked: Iterable[tuple[str, str]] = (),
) -> SparkSession:
    """A session of the same application as another one, which keeps its settings.

    Settings that apply when an application starts, such as memory, do not change. Where stores are
    and how they are reached is taken over; what else the other session has set is not, since
    results could depend on it.

    `asked` are settings of the process's caller, which win and are not judged.
    """
    if jvm.is_connect(spark):
        raise ArgumentInvalid(
            "a Spark Connect session cannot plan, run or check: its driver is elsewhere",
            path="spark",
            found=f"a session of {type(spark).__module__}",
            expected="a classic session: SparkSession.builder.master(...).getOrCreate()",
            hint="work where Spark's driver is: `snaploom run`, a program of spark-submit, or a "
            "notebook with a classic session",
        )
    silence_py4j()
    _refuse_unlisted(run, allow)
    refuse_stopped(spark)
    refuse_session_without(spark, run.spark)
    with translated_start():
        session = spark.newSession()
        stores = {k: v for k, v in spark.conf.getAll.items() if not k.startswith("spark.")}
        for key, value in {**stores, **_settings({}, run, allow, asked)}.items():
            _set(session, key.removeprefix(OF_HADOOP), value)
        _keep_passwords_out_of_logs(session)
    return session


def refuse_stopped(spark: SparkSession) -> None:
    """Raise `SparkStopped` for a session that runs nothing any more."""
    try:
        java = spark.sparkContext._jsc
        is_stopped = java is None or bool(java.sc().isStopped())
    except SPARK_FAILURES:
        is_stopped = True
    if is_stopped:
        raise SparkStopped(
            "this Spark session was stopped, or its JVM has ended",
            path="spark",
            found="a session that runs nothing any more",
            expected="a session that is at work",
            hint="make a new one, by SparkSession.builder.getOrCreate() after spark.stop(), or in "
            "a new process where the JVM has ended; or leave it out, and Snaploom makes one",
        )


def _set(session: SparkSession, key: str, value: str) -> None:
    """Make a setting, unless it is one that is decided when Spark starts."""
    try:
        session.conf.set(key, value)
    except PySparkException as error:
        if not (error.getCondition() or "").startswith("CANNOT_MODIFY"):
            raise


def _settings(
    defaults: Mapping[str, str],
    run: RunSettings,
    allow: Allowances,
    asked: Iterable[tuple[str, str]],
) -> dict[str, str]:
    settings = {**RESULT_SETTINGS, **WITHOUT_CALL_SITES, **s3a_settings(os.environ), **defaults}
    settings.update(configured(run))
    settings.update(asked)
    settings.update({setting.name: setting.value for setting in jvm.SESSION_SETTINGS})
    settings[ALLOW_SETTING] = allow.dump_json()
    return settings


def _keep_passwords_out_of_logs(spark: SparkSession) -> None:
    """Leave out the lines of Spark's that print the password of a database, which DEBUG shows."""
    log4j = jvm.jvm_of(spark).org.apache.logging.log4j
    if log4j.LogManager.getLogger(_LOGS_PASSWORDS).isDebugEnabled():
        log4j.core.config.Configurator.setLevel(_LOGS_PASSWORDS, log4j.Level.INFO)


def _refuse_unlisted(run: RunSettings, allow: Allowances) -> None:
    """Stop where a resource would have Spark load something, or reach somewhere.

    Validation checks the same; but not every command validates, and a Bundle may come from
    anywhere.
    """
    for refused in refusals(run.spark, allow):
        raise SettingNotAllowed(
            refused.reason,
            path=refused.path,
            found=refused.found,
            expected="a setting that is on the list",
            hint=hint_of(refused),
        )


def in_utc(options: str) -> str:
    """Java's options with a zone, where they give none: machines elsewhere have others."""
    return options if "-Duser.timezone=" in options else f"{options} -Duser.timezone=UTC".strip()


def _submitted(setting: str) -> str:
    return _submitted_settings().get(setting, "")


def _submitted_settings() -> dict[str, str]:
    if not _is_submitted():
        return {}
    SparkContext._ensure_initialized()
    return dict(SparkConf().getAll())


def _is_submitted() -> bool:
    return SUBMITTED in os.environ


def result_settings(spark: SparkSession) -> dict[str, str]:
    """The settings that results depend on, as a session has them, for the Report (rule W4).

    Those of an accelerator are among them.
    """
    ours = acceleration.SETTINGS if jvm.is_native(spark) else ()
    names = (*(setting.name for setting in jvm.SESSION_SETTINGS), *RESULT_SETTINGS, *ours)
    return {name: _value(spark, name) for name in names}


def _value(spark: SparkSession, name: str) -> str:
    """A setting as it applies; empty where this Spark does not know it.

    Asked without a default: Spark judges that as a value of the setting.
    """
    try:
        return spark.conf.get(name) or ""
    except PySparkException:
        return ""


def configured(run: RunSettings) -> dict[str, str]:
    """The Spark configuration that a resource asks for."""
    if run.spark is None:
        return {}
    driver = None if run.spark.driver is None else run.spark.driver.memory
    executor = None if run.spark.executor is None else run.spark.executor.memory
    accelerated: dict[str, str] = {}
    if acceleration.PLUGIN not in _submitted(
        acceleration.PLUGINS
    ):  # else the operator has sized the run
        accelerated = acceleration.accelerated_settings(
            run.spark, executor if _is_submitted() else None
        )
    settings = {**accelerated, **run.spark.spark_conf}
    if driver is not None:
        settings[_DRIVER_MEMORY] = spark_memory(driver)
    return settings


# Opens folders of any scheme; `hdfs:` and others start Spark for its JVM (rule P6).


def open_place(
    uri: str,
    create: bool,
    run: RunSettings | None = None,
    allow: Allowances = NO_ALLOWANCES,
) -> ObjectStore:
    """The store of a folder; a session is started where only Hadoop's client knows the scheme.

    `create` makes a directory that does not exist; a session that runs is used as it is.
    """

    def by_hadoop(uri: str, create: bool) -> ObjectStore:
        if SparkContext._active_spark_context is None:
            build_session("snaploom", run or RunSettings(), allow)
        return hadoop_stores()(uri, create)

    return open_store(uri, create, by_hadoop)


# Files, by Hadoop's client in the JVM that `spark-submit` has started, before there is a session.


@dataclass(frozen=True)
class SubmittedFiles:
    """`OtherFiles` by Hadoop's client; a failure is no answer."""

    files: HadoopFiles

    def matches(self, glob: str, resource: str) -> Sequence[ListedFile]:
        with _left_to_the_session(glob):
            return self.files.matches(glob, resource)

    def folders(self, glob: str, is_hidden: Callable[[str], bool]) -> None:
        return self.files.folders(glob, is_hidden)

    def exists(self, uri: str) -> bool:
        with _left_to_the_session(uri):
            return self.files.exists(uri)

    def store(self, uri: str, create: bool) -> ObjectStore:
        with _left_to_the_session(uri):
            return self.files.store(uri, create)

    def end(self, file: ListedFile, length: int) -> bytes:
        return self.files.end(file, length)


def submitted_files(run: RunSettings, allow: Allowances) -> SubmittedFiles:
    """The files, as a session with these settings will see them.

    Raises:
        SparkNeeded: the settings are refused, or the JVM does not answer.
    """
    with _left_to_the_session("the JVM"):
        return SubmittedFiles(HadoopFiles(client_before_context(run, allow)))


@contextmanager
def _left_to_the_session(place: str) -> Iterator[None]:
    try:
        yield
    except (SnaploomError, Py4JError, PySparkException) as error:
        raise SparkNeeded(f"{place}: {error}") from error
