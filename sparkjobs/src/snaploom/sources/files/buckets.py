"""Files of S3 buckets that a glob matches, without Hadoop's client.

Only globs and names that surely mean the same to it are answered here: no wildcards but `*` and
`?`, and no object whose name could be taken for another's. All others are Hadoop's, and so is every
failure: what Hadoop's client may do, such as read with other credentials, is tried by it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import translate
from functools import partial
from itertools import chain, islice
from typing import TypeVar

from snaploom.errors import SnaploomError
from snaploom.files.cloud import ObstoreObjectStore, open_s3
from snaploom.files.listed import ListedFile, SparkNeeded
from snaploom.files.objectstore import ObjectInfo, ObjectStore
from snaploom.models.common import NANOS_PER_MILLISECOND
from snaploom.policy.addresses import hadoop_uri
from snaploom.sources.files.globs import FOLDER_MARK

LISTED_AT_ONCE = 8
"""Folders that are listed at the same time, as `sources.files.hadoop` does: all of it waits."""

A_PAGE = 1000
"""Objects that S3 lists in one answer. Behind those that lie deeper, a folder's own may follow:
then it is asked for them only."""

_PLACE = re.compile(r"s3a://(?P<bucket>[a-z0-9][a-z0-9.-]*)/(?P<key>.*)", re.DOTALL)
_WILD = re.compile(r"[*?]")
_ONLY_HADOOP = re.compile(r"[{}\[\]\\]")
_IN_DOUBT = re.compile(r"[:\\\x00-\x1f\x7f]")
"""Names that Hadoop cannot list."""

T = TypeVar("T")


class BucketFiles:
    """`OtherFiles` of S3's buckets, with credentials and endpoint of the environment."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._buckets: dict[str, ObstoreObjectStore] = {}

    def matches(self, glob: str, resource: str) -> Sequence[ListedFile]:
        """Files and folders that a glob matches; `SparkNeeded` if Hadoop may differ."""
        bucket, steps = _steps(glob)
        return _asked(glob, lambda: self._matched(bucket, steps))

    def folders(self, glob: str, is_hidden: Callable[[str], bool]) -> Sequence[str]:
        """Folders with an object that a glob matches; one request each; see `OtherFiles.folders`.

        One page of each folder is asked for, however many there are.
        """
        bucket, steps = _steps(glob)
        return _asked(glob, lambda: self._folders(bucket, steps, is_hidden))

    def exists(self, uri: str) -> bool:
        """Whether there is an object or a folder at a URI; `SparkNeeded` if it cannot be asked."""
        bucket, key = _place(uri)
        store = self._bucket(bucket)
        return _asked(uri, lambda: store.head(key) is not None or any(store.list(f"{key}/")))

    def store(self, uri: str, create: bool) -> ObjectStore:
        """Store of a folder in a bucket; `SparkNeeded` for other places."""
        _place(uri)
        return open_s3(uri, self._environment)

    def end(self, file: ListedFile, length: int) -> bytes:
        """Last bytes of a file; `SparkNeeded` if they cannot be read."""
        bucket, key = _place(file.uri)
        store, start = self._bucket(bucket), file.length - length
        return _asked(file.uri, lambda: store.get_range(key, start, length))

    def _bucket(self, bucket: str) -> ObstoreObjectStore:
        if bucket not in self._buckets:
            self._buckets[bucket] = open_s3(f"s3a://{bucket}/", self._environment)
        return self._buckets[bucket]

    def _matched(self, bucket: str, steps: Sequence[str]) -> list[ListedFile]:
        opened = _Bucket(bucket, self._bucket(bucket))
        with ThreadPoolExecutor(LISTED_AT_ONCE) as pool:
            folders = self._above(opened, pool, steps)
            members = pool.map(partial(opened.members, steps[-1]), folders)
            return list(chain.from_iterable(members))

    def _folders(
        self, bucket: str, steps: Sequence[str], is_hidden: Callable[[str], bool]
    ) -> list[str]:
        opened = _Bucket(bucket, self._bucket(bucket))
        with ThreadPoolExecutor(LISTED_AT_ONCE) as pool:
            folders = self._above(opened, pool, steps)
            has_file = pool.map(partial(opened.has_file, steps[-1], is_hidden), folders)
            return [
                f"s3a://{bucket}/{folder}".removesuffix("/")
                for folder, has in zip(folders, has_file, strict=True)
                if has
            ]

    @staticmethod
    def _above(opened: _Bucket, pool: ThreadPoolExecutor, steps: Sequence[str]) -> list[str]:
        """Keys of the folders that all steps but the last one match, with `/` behind each."""
        folders = [""]
        for step in steps[:-1]:
            folders = list(chain.from_iterable(pool.map(partial(opened.folders, step), folders)))
        return folders


@dataclass(frozen=True)
class _Bucket:
    """Matches single steps of a glob in one bucket; from several threads at once."""

    name: str
    store: ObstoreObjectStore

    def folders(self, step: str, above: str) -> list[str]:
        if not _WILD.search(step):
            return [f"{above}{step}/"]
        _, folders = self._listed(step, above)
        return [f"{above}{name}/" for name in folders]

    def members(self, step: str, above: str) -> list[ListedFile]:
        if _WILD.search(step):
            objects, folders = self._listed(step, above)
            return [*map(self._file, objects), *(self._folder(above, name) for name in folders)]
        found = self.store.head(f"{above}{step}")
        if found is not None:
            return [self._file(found)]
        is_folder = any(self.store.list(f"{above}{step}/"))
        return [self._folder(above, step)] if is_folder else []

    def has_file(self, step: str, is_hidden: Callable[[str], bool], above: str) -> bool:
        """Whether there is an object directly below a folder; stops at the first."""
        if _WILD.search(step):
            pattern = re.compile(translate(step))
            for info in islice(self.store.list(above), A_PAGE):
                name = info.key.removeprefix(above)
                if _IN_DOUBT.search(name):
                    raise SparkNeeded(f"s3a://{self.name}/{info.key}")
                is_matched = "/" not in name and pattern.fullmatch(name)
                if not is_matched or is_hidden(f"s3a://{self.name}/{info.key}"):
                    continue
                if info.size or not any(self.store.list(f"{info.key}/")):
                    return True
        files = (file for file in self.members(step, above) if not file.folder)
        return any(not is_hidden(file.uri) for file in files)

    def _listed(self, step: str, above: str) -> tuple[Sequence[ObjectInfo], Sequence[str]]:
        pattern = re.compile(translate(step))
        objects, folders = self.store.list_folder(above)
        below = {*folders}
        objects = [
            info
            for info in objects
            if not info.key.endswith(FOLDER_MARK)
            and (info.size or info.key.removeprefix(above) not in below)
        ]
        all_names = [*(info.key.removeprefix(above) for info in objects), *folders]
        if len({*all_names}) < len(all_names) or any(map(_IN_DOUBT.search, all_names)):
            raise SparkNeeded(f"s3a://{self.name}/{above}")
        matching = [info for info in objects if pattern.fullmatch(info.key.removeprefix(above))]
        return matching, [name for name in folders if pattern.fullmatch(name)]

    def _file(self, info: ObjectInfo) -> ListedFile:
        modified, tag = info.modified // NANOS_PER_MILLISECOND, (info.etag or "").strip('"')
        return ListedFile(f"s3a://{self.name}/{info.key}", info.size, modified, etag=tag)

    def _folder(self, above: str, name: str) -> ListedFile:
        return ListedFile(f"s3a://{self.name}/{above}{name}", 0, 0, folder=True)


def _steps(glob: str) -> tuple[str, list[str]]:
    bucket, key = _place(glob)
    steps = [step for step in key.split("/") if step]
    is_odd = _ONLY_HADOOP.search(key) or any(step in (".", "..") for step in steps)
    if is_odd or not steps:
        raise SparkNeeded(glob)
    return bucket, steps


def _place(uri: str) -> tuple[str, str]:
    place = _PLACE.fullmatch(hadoop_uri(uri))
    if place is None:
        raise SparkNeeded(uri)
    return place["bucket"], place["key"]


def _asked(place: str, question: Callable[[], T]) -> T:
    try:
        return question()
    except (SnaploomError, ValueError) as error:
        raise SparkNeeded(f"{place}: {error}") from error
