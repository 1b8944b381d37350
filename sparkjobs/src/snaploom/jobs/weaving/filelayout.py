"""Files of a size, with rows brought together (`targetFileSizeMiB`, `clusterBy`).

Nobody knows beforehand how many bytes rows will have, and nothing may be sorted above the counters
that prove the joins (rule W25). So the rows are written as they are woven, counted and
checked, and then written once more as they shall lie: in files of the folder's format, whose size
is known, and by a job that nothing is counted in.
"""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from snaploom.engine.published import read_files, under_schema
from snaploom.engine.write import count_written, write_frame
from snaploom.errors import IndexNotPossible, PublicationError
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.outputfolder import DataCompression
from snaploom.skipping.advice.sortrequest import TARGET_FILE_SIZE, SortRequest
from snaploom.skipping.spark.builds.clusteredwrite import Clustering, balanced
from snaploom.skipping.spark.interfaces.sort import clustering_under, sorted_frame
from snaploom.storage import layout
from snaploom.storage.objectstore import ObjectInfo, ObjectStore

_WOVEN = "_work/woven/"
"""Where rows are before they are arranged: in staging, below a name that is no data."""


class Shaping:
    """How the files of one snapshot shall lie; nothing to do where the output declares none."""

    def __init__(
        self,
        spark: SparkSession,
        output: OutputDataset,
        compression: DataCompression,
        store: ObjectStore,
        schema: StructType,
    ) -> None:
        """Find the columns.

        Args:
            spark: writes.
            output: declares the layout.
            compression: of the files.
            store: of its folder.
            schema: of the woven rows.

        Raises:
            PublicationError: rows cannot be clustered by these columns.
        """
        self._spark = spark
        self._folder = output.spec.output_folder
        self._compression = compression
        self._store = store
        target = self._folder.target_file_size_mib
        self._target = TARGET_FILE_SIZE if target is None else target << 20
        self._is_wanted = target is not None or bool(self._folder.cluster_by)
        self._request = SortRequest(self._folder.cluster_by, target_file_size=self._target)
        self._clustering = self._resolved(output, schema) if self._folder.cluster_by else None

    def place(self, uri: str) -> str:
        """Where the woven rows are to be written first.

        Args:
            uri: folder in which the files shall lie in the end.
        """
        return f"{uri}{_WOVEN}" if self._is_wanted else uri

    def arrange(self, uri: str, schema: StructType, rows: int) -> None:
        """Let the files lie as they shall.

        Args:
            uri: the folder; what was woven is in its `place`.
            schema: of the files.
            rows: in them.

        Raises:
            PublicationError: not all rows are there afterwards.
        """
        if not self._is_wanted:
            return
        woven = self._woven(uri)
        size = sum(info.size for info in woven)
        wanted = balanced(size, self._target)
        if not rows or (self._clustering is None and len(woven) == wanted):
            for info in woven:
                name = info.key.rpartition("/")[2]
                self._store.move_if_absent(info.key, f"{self._key(uri)}{name}")
            return
        data_format = self._folder.data_format
        frame = read_files(self._spark, [self.place(uri)], data_format, schema)
        if self._clustering is None:
            frame = frame.repartition(wanted)
        else:
            frame = sorted_frame(frame, self._clustering, self._request, size, rows)
        arranged = under_schema(frame, schema)
        write_frame(
            arranged,
            uri,
            data_format,
            self._compression,
            column_metadata=self._folder.column_metadata,
            into_existing=True,
        )
        found = count_written(self._spark, uri, data_format, schema)
        if found != rows:
            raise PublicationError(
                "rows were lost or doubled while they were arranged in files",
                found=f"{found:,} rows",
                expected=f"{rows:,} rows",
                hint="run again; nothing was published",
            )

    def _resolved(self, output: OutputDataset, schema: StructType) -> Clustering:
        try:
            return clustering_under(self._spark, schema, self._request)
        except IndexNotPossible as error:
            raise PublicationError(
                f"rows cannot be clustered: {error.message}",
                resource=output.identity,
                path="spec.outputFolder.clusterBy",
                found=error.found,
                expected=error.expected,
                hint=error.hint,
            ) from error

    def _woven(self, uri: str) -> list[ObjectInfo]:
        listed = self._store.list(self._key(self.place(uri)))
        return [info for info in listed if layout.is_data_file(info.key.rpartition("/")[2])]

    def _key(self, uri: str) -> str:
        return uri.removeprefix(self._store.uri)
