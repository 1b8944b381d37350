"""Folders of HDFS, and of every file system that Spark's Hadoop client knows, as object stores.

Put-if-absent is a finished temporary file that is renamed without overwriting: one operation of
HDFS's name node, which refuses it when the name is taken. `FileSystem.rename` will not do, for it
moves *into* a directory of that name; `FileContext.rename` renames. On other systems it
is as atomic as their own rename is: the self-test sees that they refuse, not that they always do.

Everything goes through the JVM of the Spark session, with its configuration, credentials included.
Names are taken literally; HDFS itself has none with a colon.
"""

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from snaploom import errors
from snaploom.files import objectstore
from snaploom.files.listed import ListedFile
from snaploom.files.stores import StoreOpener, UnsupportedStore
from snaploom.models.common import NANOS_PER_MICROSECOND, EpochNanos
from snaploom.policy.addresses import hadoop_uri
from snaploom.spark.jvm import HadoopClient, client_of, describe

RACES_WITH_PRUNING = 20
"""Number of attempts to create a directory when others remove it for being empty; two processes
that collide need one or two rounds."""

_CLOSING = ("dfs.client.block.write.locateFollowingBlock.initial.delay.ms", "20")
"""A file is closed when the name node knows of its last block, which takes a few milliseconds;
by default the client waits 400 before it asks again: at every entry of the log."""

_NANOS_PER_MILLI = 1000 * NANOS_PER_MICROSECOND
_ABSENT = ("java.io.FileNotFoundException", "org.apache.hadoop.fs.ParentNotDirectoryException")
_TAKEN = "org.apache.hadoop.fs.FileAlreadyExistsException"
_REFUSALS = (
    "org.apache.hadoop.security.AccessControlException",
    "org.apache.hadoop.hdfs.protocol.DSQuotaExceededException",
    "org.apache.hadoop.hdfs.protocol.NSQuotaExceededException",
    "org.apache.hadoop.hdfs.server.namenode.SafeModeException",
)


def hadoop_stores(spark: SparkSession | None = None) -> StoreOpener:
    """Opener for `open_store` of folders known to Hadoop only; None for the running session."""

    def opener(uri: str, create: bool) -> HadoopObjectStore:
        if spark is None and SparkContext._active_spark_context is None:
            raise UnsupportedStore(
                f"only Hadoop's client can open {uri}, and no Spark session runs",
                hint="start a Spark session first",
            )
        session = spark or SparkSession.Builder().getOrCreate()
        return HadoopObjectStore(client_of(session), uri, create=create)

    return opener


class HadoopObjectStore:
    """Objects as files below one directory of a Hadoop file system."""

    def __init__(self, client: HadoopClient, uri: str, *, create: bool) -> None:
        """Open a directory, making it if asked.

        Raises:
            FolderNotOurs: a file is in its place.
        """
        self._gateway = client.gateway
        self._jvm = client.jvm
        try:
            path = self._jvm.org.apache.hadoop.fs.Path(hadoop_uri(uri).rstrip("/") + "/")
        except PySparkException as error:  # PySpark's form of an IllegalArgumentException
            raise UnsupportedStore(
                f"{uri} is not the URI of a folder",
                found=str(error).splitlines()[0],
                expected="scheme://host/folder/, file:///folder/, or a path from / on",
                hint="correct the URI; a relative path is found only where it is a folder",
            ) from None
        configuration = client.configuration()
        configuration.setIfUnset(*_CLOSING)
        try:
            self._files = path.getFileSystem(configuration)
            self._root = self._files.makeQualified(path)
            self._context = self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(
                self._root.toUri(), configuration
            )
        except Py4JJavaError as error:
            raise UnsupportedStore(
                f"Hadoop's client has no file system for {uri}",
                found=_sentence(error),
                expected="a scheme that Spark can read and write",
            ) from None
        except PySparkException as error:  # PySpark's form of an IllegalArgumentException
            raise errors.StorageError(
                f"{uri} cannot be reached",
                found=str(error).splitlines()[0],
                expected="a host that this machine knows",
                hint="check host and port, and Hadoop's configuration where it names them",
            ) from None
        self._uri = str(self._root.toString()).rstrip("/") + "/"
        with self._translated("", writing=create):
            if self._files.exists(self._root) and self._files.getFileStatus(self._root).isFile():
                raise errors.FolderNotOurs(
                    "a file is where the folder should be",
                    found=self._uri,
                    expected="a folder, or nothing yet",
                )
            if create:
                self._files.mkdirs(self._root)

    @property
    def uri(self) -> str:
        """URI of the folder, with the name node that answers for it."""
        return self._uri

    def put_if_absent(self, key: str, data: bytes) -> None:
        """Write a temporary file and rename it, which fails when the name is taken."""
        target = self._path(key)
        with self._temporary(data) as temporary, self._translated(key, writing=True):
            self._in_directory(target, lambda: self._rename(temporary, target, "NONE"))

    def put(self, key: str, data: bytes) -> None:
        """Write a temporary file and rename it over its name."""
        target = self._path(key)
        with self._temporary(data) as temporary, self._translated(key, writing=True):
            self._in_directory(target, lambda: self._rename(temporary, target, "OVERWRITE"))

    def get(self, key: str, limit: int | None = None) -> bytes:
        content = self._read(key, 0, None if limit is None else limit + 1)
        if limit is not None and len(content) > limit:
            raise objectstore.too_large(f"{self._uri}{key}", len(content), limit)
        return content

    def get_range(self, key: str, start: int, length: int) -> bytes:
        return self._read(key, start, length)

    def head(self, key: str) -> objectstore.ObjectInfo | None:
        path = self._path(key)
        try:
            with self._translated(key, writing=False):
                status = self._files.getFileStatus(path)
                if status.isDirectory():
                    return None
                return _info(key, int(status.getLen()), int(status.getModificationTime()))
        except errors.ObjectNotFound:
            return None

    def list(self, prefix: str) -> Iterator[objectstore.ObjectInfo]:
        """Walk directories, each listed by one request."""
        objectstore.check_prefix(prefix)
        waiting = [self._uri + prefix]
        while waiting:
            for found in self._listed(waiting.pop()):
                if found.folder:
                    waiting.append(f"{found.uri}/")
                else:
                    key = found.uri.removeprefix(self._uri)
                    yield _info(key, found.length, found.modified)

    def delete(self, keys: Iterable[str]) -> None:
        """Delete files, then the directories that this leaves empty."""
        parents: set[str] = set()
        for key in keys:
            path = self._path(key)
            with suppress(errors.ObjectNotFound), self._translated(key, writing=True):
                self._files.delete(path, False)
            parents.add(key.rpartition("/")[0])
        for parent in parents:
            self._remove_empty(parent)

    def move_if_absent(self, source: str, target: str) -> None:
        """Rename to the new name, which fails when it is taken."""
        origin, path = self._path(source), self._path(target)
        if self.head(source) is None:
            raise objectstore.absent(f"{self._uri}{source}")
        with self._translated(target, writing=True):
            self._in_directory(path, lambda: self._rename(origin, path, "NONE"))
        self._remove_empty(source.rpartition("/")[0])

    def prune(self, prefix: str) -> None:
        """Remove empty directories, deepest first."""
        objectstore.check_prefix(prefix)
        folders = [prefix]
        for folder in folders:  # it grows under way
            listed = self._listed(self._uri + folder)
            folders += [f"{f.uri.removeprefix(self._uri)}/" for f in listed if f.folder]
        for folder in reversed(folders):
            self._remove_if_empty(folder.rstrip("/"))
        self._remove_empty(prefix.rstrip("/").rpartition("/")[0])

    def _path(self, key: str) -> JavaObject:
        objectstore.check_key(key)
        # The three parts of a Path as they are: parsed from one text, a colon would make a scheme.
        root = self._root.toUri()
        path = f"{root.getPath().rstrip('/')}/{key}"
        return self._jvm.org.apache.hadoop.fs.Path(root.getScheme(), root.getAuthority(), path)

    def _read(self, key: str, start: int, length: int | None) -> bytes:
        path = self._path(key)
        io = self._jvm.org.apache.commons.io
        with self._translated(key, writing=False):
            stream = self._files.open(path)
            try:
                if start:
                    stream.seek(start)
                bounded = stream if length is None else io.input.BoundedInputStream(stream, length)
                return bytes(io.IOUtils.toByteArray(bounded))
            finally:
                stream.close()

    @contextmanager
    def _temporary(self, data: bytes) -> Iterator[JavaObject]:
        key = f"{objectstore.TEMPORARY_PREFIX}{secrets.token_hex(16)}"
        path = self._path(key)
        try:
            with self._translated(key, writing=True):
                self._in_directory(path, lambda: self._write_new(path, data))
            yield path
        finally:
            with suppress(Py4JError):
                self._files.delete(path, False)

    def _write_new(self, path: JavaObject, data: bytes) -> None:
        stream = self._files.create(path, False)
        try:
            stream.write(bytearray(data))
        finally:
            stream.close()

    def _rename(self, source: JavaObject, target: JavaObject, how: str) -> None:
        options = getattr(self._jvm.org.apache.hadoop.fs, "Options$Rename")
        array = self._gateway.new_array(options, 1)
        array[0] = getattr(options, how)
        self._context.rename(source, target, array)

    def _in_directory(self, path: JavaObject, operation: Callable[[], None]) -> None:
        """Make the parent as needed; again when another process prunes it in between."""
        for _ in range(RACES_WITH_PRUNING):
            try:
                operation()
            except Py4JJavaError as error:
                if not _is(error, *_ABSENT):
                    raise
                self._files.mkdirs(path.getParent())
            else:
                return
        operation()

    def _listed(self, folder: str) -> Sequence[ListedFile]:
        path = self._root if folder == self._uri else self._path(folder[len(self._uri) : -1])
        try:
            with self._translated(folder.removeprefix(self._uri), writing=False):
                listed = list(describe(self._jvm, self._files.listStatus(path)))
        except errors.ObjectNotFound:
            return []
        # A file of this name lists itself.
        return [found for found in listed if found.uri.startswith(folder)]

    def _remove_empty(self, key: str) -> None:
        # A directory with a leading dot is a place of work: Spark may be about to make one in it.
        while key and not key.rpartition("/")[2].startswith("."):
            if not self._remove_if_empty(key):
                return
            key = key.rpartition("/")[0]

    def _remove_if_empty(self, key: str) -> bool:
        if not key:
            return False
        path = self._path(key)
        try:
            # Not recursive: refused where there is anything in it.
            is_directory = bool(self._files.getFileStatus(path).isDirectory())
            return is_directory and bool(self._files.delete(path, False))
        except Py4JJavaError:
            return False

    @contextmanager
    def _translated(self, key: str, *, writing: bool) -> Iterator[None]:
        try:
            yield
        except Py4JJavaError as error:
            raise _failure(error, f"{self._uri}{key}", writing) from None
        except PySparkException as error:  # PySpark's form of an IllegalArgumentException
            reason = str(error).splitlines()[0]
            raise errors.StorageError(
                f"{self._uri}{key} cannot be used",
                found=reason,
                expected="a key that Hadoop takes",
                hint="rename the file, or check the URI",
            ) from None
        except Py4JError as error:
            raise errors.StorageError(
                f"Spark stopped while {self._uri}{key} was used",
                expected="a session of Spark that runs",
                hint="run again; what was published stays, and nothing is half published",
            ) from error


def _info(key: str, length: int, modified: int) -> objectstore.ObjectInfo:
    return objectstore.ObjectInfo(key, length, EpochNanos(modified * _NANOS_PER_MILLI), None)


def _failure(error: Py4JJavaError, place: str, writing: bool) -> errors.SnaploomError:
    # HDFS forbids to look below a file, rather than to find nothing there.
    if _is(error, *_ABSENT) or "(is not a directory)" in str(error.java_exception):
        return objectstore.absent(place)
    if _is(error, _TAKEN):
        return objectstore.exists_already(place)
    if writing and _is(error, *_REFUSALS):
        return errors.FolderNotWritable(
            f"{place} refuses writes",
            found=_sentence(error),
            expected="a folder that this user may write to, with room for the data",
            hint="check permissions, quotas, and that the name node has left its safe mode",
        )
    verb = "writing" if writing else "reading"
    return errors.StorageError(
        f"{verb} {place} failed", found=_sentence(error), expected="a store that answers"
    )


def _is(error: Py4JJavaError, *names: str) -> bool:
    thrown = error.java_exception
    while thrown is not None:
        if str(thrown.getClass().getName()) in names:
            return True
        thrown = thrown.getCause()
    return False


def _sentence(error: Py4JJavaError) -> str:
    thrown = error.java_exception
    name = str(thrown.getClass().getSimpleName())
    message = str(thrown.getMessage() or "").splitlines()
    return f"{name}: {message[0][:300]}" if message else name
