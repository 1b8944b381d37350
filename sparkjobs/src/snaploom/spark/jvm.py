"""The JVM of a session: its settings and Hadoop client, files that this reaches, Java of ours."""

import logging
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from typing import cast
from weakref import WeakKeyDictionary

from py4j.java_collections import JavaArray
from py4j.java_gateway import JavaGateway, JavaObject, JavaPackage, JVMView
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from snaploom.files.listed import ListedFile
from snaploom.policy.acceleration import PLUGIN, PLUGINS
from snaploom.policy.addresses import S3, hadoop_uri, kind_of

_log = logging.getLogger(__name__)


# The JVM behind a session of Spark.

_CONNECT = "pyspark.sql.connect"

_PACKAGES = (
    "java.lang",
    "java.util",
    "org.apache.hadoop.fs",
    "org.apache.spark.sql.classic",
    "py4j.reflection",
    "scala",
)


def is_connect(session: object) -> bool:
    """Whether a session is one of Spark Connect, which has no JVM in this process."""
    modules = [kind.__module__ for kind in type(session).__mro__]
    return any(module == _CONNECT or module.startswith(f"{_CONNECT}.") for module in modules)


def jvm_of(session: SparkSession) -> JVMView:
    """The JVM of a session that is at work."""
    gateway = session.sparkContext._gateway
    assert gateway is not None  # set once a session exists
    return with_packages(gateway.jvm)


def with_packages(jvm: JVMView) -> JVMView:
    """A JVM's view that knows packages by itself.

    Of each name py4j asks the JVM whether it is a class, which then searches all jars, under each
    import where the name is the first one: 0.5 ms of processor time for `org`, 0.8 ms for a class
    below `org.apache.spark.sql.classic` (Spark 4.3; 0.01 ms when the packages are known).
    """
    for name in _PACKAGES:
        above: JVMView | JavaPackage = jvm
        parts = name.split(".")
        for n, part in enumerate(parts, start=1):
            known = vars(above)
            if part not in known:
                known[part] = JavaPackage(".".join(parts[:n]), jvm._gateway_client, jvm._id)
            above = known[part]
    return jvm


# An accelerated session, and its scans.

_NATIVE_SCANS = "spark.comet.scan.enabled"


def is_native(spark: SparkSession) -> bool:
    """Whether a session hands its plans to the accelerator, as far as they are whole."""
    return PLUGIN in (spark.conf.get(PLUGINS, "") or "")


def scans_natively(spark: SparkSession) -> bool:
    """Whether Parquet is read by the accelerator."""
    return is_native(spark) and spark.conf.get(_NATIVE_SCANS, "true") == "true"


def scan_by_spark(spark: SparkSession) -> None:
    """Have Spark read Parquet from now on, and the accelerator go on with what it has read."""
    spark.conf.set(_NATIVE_SCANS, "false")
    spark.conf.set("spark.comet.convert.parquet.enabled", "true")


def session_with(session: SparkSession, name: str) -> SparkSession:
    """A session like another one with a setting that is `true`; the other is left as it is."""
    like = session.newSession()
    for key, value in session.conf.getAll.items():
        if like.conf.isModifiable(key):
            like.conf.set(key, value)
    like.conf.set(name, "true")
    return like


# Python's workers, which Spark starts by a name where nobody chose an interpreter.

WORKER_PYTHON = "PYSPARK_PYTHON"
"""Environment variable that names the interpreter of Python workers."""
WORKER_SETTING = "spark.pyspark.python"
_LOCAL_MASTER = re.compile(r"local(\[|-cluster|$)")


def worker_python(settings: Mapping[str, str]) -> str:
    """The interpreter of workers on this machine: the chosen one, or else this process's."""
    return os.environ.get(WORKER_PYTHON) or settings.get(WORKER_SETTING) or sys.executable


@contextmanager
def chosen_python(spark: SparkSession) -> Iterator[None]:
    """Have functions that are made in the block run by `worker_python`, where workers are here.

    PySpark takes the interpreter from the environment as its context starts, and the setting from
    no one: else workers are whatever `python3` is, which need not have Snaploom.
    """
    context = spark.sparkContext
    before = context.pythonExec
    if _LOCAL_MASTER.match(context.master or ""):
        context.pythonExec = worker_python(dict(context.getConf().getAll()))
    try:
        yield
    finally:
        context.pythonExec = before


# Hadoop's client in Spark's JVM, configured as one session, or as the session to come.


@dataclass(frozen=True)
class HadoopClient:
    """Hadoop's classes, and the configuration with which its file systems are opened."""

    gateway: JavaGateway
    configuration: Callable[[], JavaObject]
    """Gives a new `org.apache.hadoop.conf.Configuration`."""

    @property
    def jvm(self) -> JVMView:
        return with_packages(self.gateway.jvm)


def client_of(spark: SparkSession) -> HadoopClient:
    """Client of a session, with its settings."""
    jvm_of(spark)
    gateway = spark.sparkContext._gateway
    assert gateway is not None  # `jvm_of` has it
    return HadoopClient(gateway, lambda: spark._jsparkSession.sessionState().newHadoopConf())


# Java sources of ours, compiled inside Spark's JVM.

_LOADERS: WeakKeyDictionary[JavaGateway, dict[str, JavaObject]] = WeakKeyDictionary()
_LOCK = threading.Lock()


def compiled_class(
    gateway: JavaGateway, package: str, sources: Traversable, name: str
) -> JavaObject:
    """One of our classes (`java.lang.Class`), compiled from `sources` once in this JVM."""
    with _LOCK:
        loaders = _LOADERS.setdefault(gateway, {})
        if package not in loaders:
            jvm = gateway.jvm
            finder = jvm.org.codehaus.commons.compiler.util.resource.MapResourceFinder()
            for source in sorted(sources.iterdir(), key=str):
                finder.addResource(
                    f"{package.replace('.', '/')}/{source.name}", source.read_bytes()
                )
            parent = jvm.java.lang.Thread.currentThread().getContextClassLoader()
            loaders[package] = cast(
                JavaObject, jvm.org.codehaus.janino.JavaSourceClassLoader(parent, finder, "UTF-8")
            )
        loader = loaders[package]
    return cast(JavaObject, loader.loadClass(f"{package}.{name}"))


def new_instance(gateway: JavaGateway, java_class: JavaObject) -> JavaObject:
    """An object of a class by its constructor without arguments."""
    constructor = java_class.getConstructor(gateway.new_array(gateway.jvm.java.lang.Class, 0))
    nothing = gateway.new_array(gateway.jvm.java.lang.Object, 0)
    return cast(JavaObject, constructor.newInstance(nothing))


# Files as Hadoop's file systems describe them, as plain data.

_STATUS = re.compile(
    r"(?<!\w)\w++\{path=(?P<uri>[^;{}\n]+); isDirectory=(?P<folder>true|false)"
    r"(?:; length=(?P<length>\d+); replication=\d+; blocksize=\d+)?"
    r"; modification_time=(?P<modified>\d+);[^{}]*\}"
    r"(?: isEmptyDirectory=\w+ eTag=(?P<etag>\S+))?"
)
_ETAG = re.compile(r"\} isEmptyDirectory=\w+ eTag=(\S+)")


def open_path(client: HadoopClient, uri: str) -> tuple[JavaObject, JavaObject]:
    """A path, and its file system."""
    path = client.jvm.org.apache.hadoop.fs.Path(hadoop_uri(uri))
    return path, path.getFileSystem(client.configuration())


def readable_uri(spark: SparkSession, uri: str) -> str:
    """URI with which a session's own readers reach a place: `s3:` is `s3a:` to most of them."""
    own = client_of(spark).configuration().get(f"fs.{uri.partition(':')[0]}.impl")
    return hadoop_uri(uri) if own is None else uri


def qualified_uri(spark: SparkSession, path: str) -> str:
    """A path as Hadoop spells it, with its scheme and without a trailing slash."""
    client = client_of(spark)
    place = client.jvm.org.apache.hadoop.fs.Path(readable_uri(spark, path))
    return str(place.getFileSystem(client.configuration()).makeQualified(place).toString())


def describe(jvm: JVMView, statuses: JavaArray) -> Iterator[ListedFile]:
    """Statuses of Hadoop's file systems as plain data.

    Every question to the JVM costs about 0.1 ms, so thousands of statuses are asked for in one
    text. Its form is not promised, and a path may contain anything, the look of a status included:
    unless the text has exactly one of each mark a status, each is asked by itself.
    """
    text = str(jvm.scala.runtime.ScalaRunTime.stringOf(statuses))
    described = [s for s in _STATUS.finditer(text) if s["length"] or s["folder"] == "true"]
    if {len(described), text.count("{"), text.count("; isDirectory=")} == {len(statuses)}:
        for status in described:
            size, modified = int(status["length"] or 0), int(status["modified"])
            is_folder, etag = status["folder"] == "true", status["etag"] or ""
            yield ListedFile(status["uri"], size, modified, is_folder, _tag(etag))
        return
    for status in statuses:
        size, modified = int(status.getLen()), int(status.getModificationTime())
        uri, is_folder = str(status.getPath().toString()), bool(status.isDirectory())
        known = _ETAG.search(str(status.toString()).rpartition(";")[2])
        yield ListedFile(uri, size, modified, is_folder, _tag(known[1] if known else ""))


def _tag(known: str) -> str:
    return "" if known == "null" else known.strip('"')


# Reads ends of files in any store that Hadoop's client reaches, requesting these bytes only.


class FileEnds:
    """Reads parts of files by one client, from several threads at once."""

    def __init__(self, client: HadoopClient) -> None:
        self._client = client
        self._jvm = client.jvm
        self._file_systems: dict[str, JavaObject] = {}

    def read(self, file: ListedFile, length: int) -> bytes:
        """Last bytes of a file, else `OSError`."""
        return self.range(file, file.length - length, length)

    def range(self, file: ListedFile, start: int, length: int) -> bytes:
        """Bytes of a file from a place on, else `OSError`."""
        path = self._jvm.org.apache.hadoop.fs.Path(hadoop_uri(file.uri))
        try:
            # With its length and this read policy, S3's client asks for these bytes only.
            store = file.uri.partition("://")[2].partition("/")[0]
            if store not in self._file_systems:
                self._file_systems[store] = open_path(self._client, file.uri)[1]
            opened = (
                self._file_systems[store]
                .openFile(path)
                .opt("fs.option.openfile.length", str(file.length))
                .opt("fs.option.openfile.read.policy", "random")
            )
            stream = opened.build().get()
            try:
                stream.seek(start)
                read = self._jvm.org.apache.commons.io.IOUtils.toByteArray
                return bytes(read(stream, length))
            finally:
                stream.close()
        except Py4JError as error:
            raise OSError(f"{file.uri} cannot be read: {error}") from error


# Settings that the engine needs in the session it is given, each with its reason (rule W4).


@dataclass(frozen=True)
class SessionSetting:
    """One setting of the Spark session and why the engine needs it."""

    name: str
    value: str
    reason: str


SESSION_SETTINGS: tuple[SessionSetting, ...] = (
    SessionSetting(
        "spark.sql.caseSensitive",
        "false",
        "names are matched ignoring case everywhere",
    ),
    SessionSetting(
        "spark.sql.ansi.enabled",
        "true",
        "text of `query` runs under ANSI; keys are cast with try_cast, so that they become NULL",
    ),
    SessionSetting(
        "spark.sql.cbo.enabled",
        "true",
        "statistics choose join strategies; reordering touches inner joins only",
    ),
    SessionSetting(
        "spark.sql.runSQLOnFiles",
        "false",
        "a query of a virtual source reads its declared sources and nothing else",
    ),
    SessionSetting(
        "spark.sql.variable.substitute",
        "false",
        "`${env:NAME}` in a text is no variable of the environment, in quotes neither",
    ),
    SessionSetting(
        "spark.sql.sources.parallelPartitionDiscovery.parallelism",
        "64",
        "a snapshot is read file by file, and Spark would start one task for each to list it "
        "(2,000 files: 15 s instead of 5)",
    ),
    SessionSetting(
        "spark.sql.codegen.maxFields",
        "2000",
        "code generation stops at 100 leaf fields by default; nested rows pass that soon",
    ),
    SessionSetting(
        "spark.sql.codegen.cache.maxEntries",
        "1000",
        "one snapshot has several compiled parts a join; with the default of 100, thirty joins "
        "push each other out and are compiled again and again (measured: three times slower)",
    ),
)


# Commits of files by Spark's tasks on S3, which has no rename.

PROTOCOL = "org.apache.spark.internal.io.cloud.PathOutputCommitProtocol"
COMMITTERS: Mapping[str, str] = {
    "spark.sql.sources.commitProtocolClass": PROTOCOL,
    "spark.sql.parquet.output.committer.class": (
        "org.apache.spark.internal.io.cloud.BindingParquetOutputCommitter"
    ),
}
"""Settings by which each file system's own committer is asked for; others than S3A keep Spark's."""

WRITE_OPTIONS: Mapping[str, str] = {"fs.s3a.committer.name": "magic"}

WITHOUT_MODULE = (
    "files are uploaded to S3 and then copied by Spark's tasks, once more than needed: the module "
    "spark-hadoop-cloud is not on Spark's classpath"
)
"""The message of a write without the module."""


def committer_options(spark: SparkSession, uri: str) -> Mapping[str, str]:
    """Options of a write into a folder; the session gets the committers when it has their classes.

    The settings stay in the session: taken back, they could be missing to a write of another
    thread that is just planned.
    """
    if kind_of(uri) is not S3:
        return {}
    if not has_class(spark, PROTOCOL):
        _log.warning("%s", WITHOUT_MODULE)
        return {}
    for name, value in COMMITTERS.items():
        spark.conf.set(name, value)
    return WRITE_OPTIONS


def remove_marker(spark: SparkSession, uri: str) -> None:
    """Remove the empty object `<folder>/` by which S3A marks a folder that it was to write into.

    S3A never does, and nobody else can name it: every run would leave one for ever. The folder's
    files are not touched; a failure is only that the object stays.
    """
    if kind_of(uri) is not S3:
        return
    bucket, _, folder = uri.partition("://")[2].partition("/")
    try:
        files = open_path(client_of(spark), uri)[1]
        client = files.getS3AInternals().getAmazonS3Client("the mark of a staging folder")
        request = jvm_of(
            spark
        ).software.amazon.awssdk.services.s3.model.DeleteObjectRequest.builder()
        client.deleteObject(request.bucket(bucket).key(f"{folder.rstrip('/')}/").build())
    except (Py4JError, TypeError) as error:  # TypeError: a class that is not there
        _log.debug("%s keeps the mark of a folder: %s", uri, error)


def has_class(spark: SparkSession, name: str) -> bool:
    """Whether Spark's JVM finds a class."""
    loader = jvm_of(spark).java.lang.Thread.currentThread().getContextClassLoader()
    try:
        loader.loadClass(name)
    except Py4JError:
        return False
    return True
