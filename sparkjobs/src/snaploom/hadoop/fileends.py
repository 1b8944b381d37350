"""Reads ends of files in any store that Hadoop's client reaches, requesting these bytes only."""

from __future__ import annotations

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError

from snaploom.hadoop.client import HadoopClient
from snaploom.hadoop.filestatus import file_system_of
from snaploom.listing.listedfile import ListedFile
from snaploom.planning.hadoopuris import hadoop_uri


class FileEnds:
    """Reads the ends of files by one client, from several threads at once."""

    def __init__(self, client: HadoopClient) -> None:
        self._client = client
        self._jvm = client.jvm
        self._file_systems: dict[str, JavaObject] = {}

    def read(self, file: ListedFile, length: int) -> bytes:
        """Last bytes of a file, else `OSError`."""
        path = self._jvm.org.apache.hadoop.fs.Path(hadoop_uri(file.uri))
        try:
            # With its length and this read policy, S3's client asks for these bytes only.
            opened = (
                self._file_system(file.uri)
                .openFile(path)
                .opt("fs.option.openfile.length", str(file.length))
                .opt("fs.option.openfile.read.policy", "random")
            )
            stream = opened.build().get()
            try:
                stream.seek(file.length - length)
                return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
            finally:
                stream.close()
        except Py4JError as error:
            raise OSError(f"{file.uri} cannot be read: {error}") from error

    def _file_system(self, uri: str) -> JavaObject:
        store = uri.partition("://")[2].partition("/")[0]
        if store not in self._file_systems:
            self._file_systems[store] = file_system_of(self._client, uri)
        return self._file_systems[store]
