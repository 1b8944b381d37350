"""Output folders: absolute, readable, of one output each, and the outputs that read others."""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from typing import NamedTuple

from snaploom.models.allowances import Allowances
from snaploom.models.asof import ChildSnapshot
from snaploom.models.common import NANOS_PER_SECOND, CheckMode, EpochNanos, Resource
from snaploom.models.datasource import DataSource
from snaploom.models.findings import Finding
from snaploom.models.outputdataset import DataCompression, DataFormat, OutputDataset
from snaploom.plan.bundle import Bundle
from snaploom.plan.times import minus_bounded
from snaploom.policy import addresses
from snaploom.policy.fields import Findings, texts_with, zone_findings
from snaploom.policy.references import ReadGraph, reads_of
from snaploom.sources.prefix import normal_uri
from snaploom.sources.registry import declared

# Servers in the URIs of files: none that a machine or a cloud gives to itself.

_URI = re.compile(r"\s*+([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)")
_URI_MARK = "://"
_PORT = re.compile(r":[0-9]*$")


def place_findings(resource: Resource, allow: Allowances) -> tuple[Finding, ...]:
    """An error for every URI that leads to a metadata service or to no address of a server.

    The list `endpoints` of `allow` may name hosts that are Azure's under another name.
    """
    rules = addresses.EndpointRules(entries=allow.endpoints)
    return tuple(
        resource.finding(
            "SL190",
            path,
            f"this server is not connected to: {why}",
            found=host,
            expected="a place of files",
            hint="name the bucket, or the server of the files by its host name",
        )
        for path, text in texts_with(resource, _URI_MARK)
        for host, why in _refused(text, rules)
    )


def _refused(text: str, rules: addresses.EndpointRules) -> Iterator[tuple[str, str]]:
    found = _URI.match(text)
    kind = None if found is None else addresses.store_kind(found[1])
    if found is None or (kind is not None and kind.has_buckets):
        return
    for host in found[2].rpartition("@")[2].split(","):
        plain = addresses.plain_host(_PORT.sub("", host) if _has_port(host) else host)
        why = _refusal_of(plain)
        if not why and kind is not None and kind.hosts and not plain.endswith(kind.hosts):
            why = "" if rules.names(plain, 443) else f"it is no host of {kind.name}'s stores"
        if why:
            yield host, why


def _has_port(host: str) -> bool:
    """Whether a colon begins a port: an IPv6 address has more than one, or brackets."""
    return host.count(":") == 1 or "]:" in host


def _refusal_of(host: str) -> str:
    if "." in host and host in addresses.METADATA_NAMES:
        return "it is a metadata service"
    address = addresses.literal_address(host)
    return (
        ""
        if address is None
        else addresses.refusal_of_address(address, addresses.OF_ADMINISTRATOR, host, 0)
    )


# The folder of an output: an absolute folder of its own, in a form that can be read.

FOLDER = "spec.outputFolder"
"""Path of the checked field."""
_JARS = "jars"
"""Part of the names of all settings by which Spark is given jars."""
_ABSOLUTE = re.compile(r"/|file:/|[A-Za-z][A-Za-z0-9+.-]*://[^/]")


def folder_findings(output: OutputDataset) -> Findings:
    """Everything that is wrong with one output's folder by itself."""
    folder = output.spec.output_folder
    partitioned = folder.snapshot_format.hive_partitioned
    zone = partitioned.output_timezone if partitioned else "UTC"
    return (
        *_absolute(output, f"{FOLDER}.folderUri", output.spec.output_folder.folder_uri),
        *_checkpoints(output),
        *zone_findings(zone, output, f"{FOLDER}.snapshotFormat.hivePartitioned.outputTimezone"),
        *_readable(output),
        *_table(output),
    )


def _absolute(output: OutputDataset, path: str, uri: str) -> Iterator[Finding]:
    if not _ABSOLUTE.match(uri) or {".", ".."} & set(uri.split("/")):
        yield output.finding(
            "SL173",
            path,
            "the folder must be absolute, without `.` and `..`",
            found=uri,
            expected="/folder/ or scheme://bucket/folder/",
        )


def _checkpoints(output: OutputDataset) -> Iterator[Finding]:
    uri = output.spec.run.checkpoint_uri
    if uri is None:
        return
    path = "spec.run.checkpointUri"
    wrong = tuple(_absolute(output, path, uri))
    yield from wrong
    if wrong:
        return
    own = comparable_folder(output.spec.output_folder.folder_uri)
    place = comparable_folder(uri)
    if place.startswith(own) or own.startswith(place):
        yield output.finding(
            "SL174",
            path,
            "checkpoints would lie in the output's folder, or around it",
            found=uri,
            expected="a folder apart from the output's",
        )


def _readable(output: OutputDataset) -> Iterator[Finding]:
    folder = output.spec.output_folder
    if (folder.data_format, folder.new_compression) == (
        DataFormat.JSONL,
        DataCompression.SNAPPY,
    ):
        yield output.finding(
            "SL178",
            f"{FOLDER}.dataCompression",
            "JSON Lines compressed with SNAPPY can be read by few tools outside Hadoop and Spark",
            found="SNAPPY (default)" if folder.data_compression is None else "SNAPPY",
            expected="GZIP or NONE",
        )


def _table(output: OutputDataset) -> Iterator[Finding]:
    folder = output.spec.output_folder
    if not folder.data_format.is_table:
        return
    is_delta = folder.data_format is DataFormat.DELTA
    if not is_delta and not brings(output, "iceberg"):
        yield output.finding(
            "SL149",
            f"{FOLDER}.dataFormat",
            "publishing needs Iceberg's library on Spark's class path, which only a run can see",
            found="ICEBERG, and no jar of Iceberg in run.spark.sparkConf",
            expected="iceberg-spark-runtime for the Spark that is used",
        )
    if folder.incompatible_schema is CheckMode.WARN:
        yield output.finding(
            "SL184",
            f"{FOLDER}.incompatibleSchema",
            "a table has one schema, so that no snapshot can break with it",
            found="WARN",
            expected="FAIL",
        )
    if folder.register_table is not None:
        yield output.finding(
            "SL184",
            f"{FOLDER}.registerTable",
            "a table is not registered as a table of files beside it",
            found=folder.register_table.name,
            expected="an output without it",
            hint="read the table at `<folderUri>data`"
            if is_delta
            else "name a catalog's table by outputFolder.table in a new folder, or read the table "
            "at `<folderUri>iceberg`",
        )


def brings(output: OutputDataset, library: str) -> bool:
    """Whether the run's own Spark configuration names a jar of a library."""
    spark = output.spec.run.spark
    settings = {} if spark is None else spark.spark_conf
    return any(library in value.lower() for key, value in settings.items() if _JARS in key)


def comparable_folder(uri: str) -> str:
    """The URI of a folder in one of the spellings that lead to it, with `/` at its end."""
    scheme, separator, rest = normal_uri(uri).rpartition("://")
    return scheme + separator + re.sub(r"/+", "/", f"{rest}/")


# Outputs that would publish to the same place: the later one gets the finding (rule P14).


def folder_of(output: OutputDataset) -> str:
    """The folder that an output publishes into, as it can be compared with others."""
    return comparable_folder(output.spec.output_folder.folder_uri)


_TableKey = tuple[str, frozenset[tuple[str, str]]]
"""A table, and the settings of its catalog in a run's configuration."""


def places_of(output: OutputDataset) -> frozenset[str]:
    """The folder of an output, and its table of a catalog if it has one, as they are compared.

    Each ends with `/`.
    """
    table = output.spec.output_folder.table
    return frozenset({folder_of(output), *(() if table is None else (table.place,))})


def overlap(output: OutputDataset, other: OutputDataset) -> Findings:
    """The faults of an output whose folder is, lies in, or holds another's, or whose table is."""
    found = (_shared_folder(output, other), _shared_table(output, other))
    return tuple(finding for finding in found if finding is not None)


def _shared_table(output: OutputDataset, other: OutputDataset) -> Finding | None:
    table = output.spec.output_folder.table
    # Runs that configure a catalog differently may mean two catalogs by one name.
    if table is None or _table_key(output) != _table_key(other):
        return None
    return output.finding(
        "SL174",
        f"{FOLDER}.table",
        f"{other.identity} publishes to the same table",
        found=f"{table}, which is also that of {other.identity}",
        expected="a table of its own for every OutputDataset",
    )


def _table_key(output: OutputDataset) -> _TableKey:
    table, spark = output.spec.output_folder.table, output.spec.run.spark
    if table is None:
        return "", frozenset()
    name = f"spark.sql.catalog.{table.catalog}"
    settings = {} if spark is None else spark.spark_conf
    chosen = (pair for pair in settings.items() if f"{pair[0]}.".startswith(f"{name}."))
    return str(table), frozenset(chosen)


def _shared_folder(output: OutputDataset, other: OutputDataset) -> Finding | None:
    mine, theirs = folder_of(output), folder_of(other)
    if mine == theirs:
        message = f"{other.identity} publishes to the same folder"
    elif mine.startswith(theirs):
        message = f"the folder lies in the folder of {other.identity}"
    elif theirs.startswith(mine):
        message = f"the folder of {other.identity} lies in this folder"
    else:
        return None
    return output.finding(
        "SL174",
        f"{FOLDER}.folderUri",
        message,
        found=f"{output.spec.output_folder.folder_uri}, and "
        f"{other.spec.output_folder.folder_uri} of {other.identity}",
        expected="a folder of its own for every OutputDataset",
    )


def overlap_findings(outputs: Iterable[OutputDataset]) -> tuple[Finding, ...]:
    """A finding for every output whose folder or table overlaps with that of one before it.

    The first of all that do is named. It takes as long as sorting does, however many there are.
    """
    placed = sorted(map(_place, outputs), key=lambda each: (each.folder, each.output.identity))
    pairs = zip(placed, _foremost(placed), strict=True)
    found = [
        _shared_folder(each.output, first.output) for each, first in pairs if first.rank < each.rank
    ]
    owners: dict[_TableKey, OutputDataset] = {}
    for each in sorted(placed, key=lambda each: each.rank):
        owner = owners.setdefault(_table_key(each.output), each.output)
        if owner is not each.output:
            found.append(_shared_table(each.output, owner))
    return tuple(finding for finding in found if finding is not None)


class _Placed(NamedTuple):
    folder: str
    rank: tuple[str, str, str]
    """Order of precedence; times are text of one form, so that they are compared as such."""
    output: OutputDataset


def _place(output: OutputDataset) -> _Placed:
    folder, created = folder_of(output), output.metadata.creation_timestamp
    return _Placed(folder, (created or "", folder, output.identity), output)


def _first(one: _Placed, other: _Placed) -> _Placed:
    return min(one, other, key=lambda each: each.rank)


def _foremost(placed: list[_Placed]) -> list[_Placed]:
    """Of each output and all that overlap with it, the one that came first.

    They are sorted by their folders, so that one within a folder follows it.
    """
    above: list[int] = []
    """Positions of the folders that contain the last one, the outermost first."""
    outer = list(placed)
    """Of each, and the folders that it lies in, the first."""
    inner = list(placed)
    """Of each, and the folders that lie in it, the first."""
    for number, each in enumerate(placed):
        while above and not each.folder.startswith(placed[above[-1]].folder):
            _leave(above, inner)
        if above:
            outer[number] = _first(outer[above[-1]], each)
        above.append(number)
    while above:
        _leave(above, inner)
    return list(map(_first, outer, inner))


def _leave(above: list[int], inner: list[_Placed]) -> None:
    """Leave a folder, and record its foremost output in the folder around it."""
    left = above.pop()
    if above:
        inner[above[-1]] = _first(inner[above[-1]], inner[left])


# Outputs that an output reads: those whose folder or table its sources name.

_SPECIAL = re.compile(r"[*?\[\]{}\\]")
_CHOICE = re.compile(r"\{([^{}]*)\}")
_ESCAPED = re.compile(r"\\(.)")
_MOST_CHOICES = 256
"""Expansions of `{a,b}` that are compared; beyond, only the text before the first is."""


def upstream_outputs(bundle: Bundle, outputs: Iterable[OutputDataset]) -> tuple[OutputDataset, ...]:
    """The outputs whose published files an output reads, ordered by name.

    `outputs` are the candidates, without the output itself.
    """
    listed = tuple(outputs)
    sources = {source.name: source for source in bundle.data_sources}
    names = _Folders(listed, sources).read_by(bundle.output)
    found = (output for output in listed if output.name in names)
    others = (output for output in found if output.name != bundle.output.name)
    return tuple(sorted(others, key=lambda output: output.name))


def dependence_findings(
    judged: Iterable[OutputDataset],
    outputs: Mapping[str, OutputDataset],
    sources: Mapping[str, DataSource],
) -> tuple[Finding, ...]:
    """Findings about outputs that read themselves, directly or not, or what is deleted too early.

    Only `judged` get findings; `outputs` and `sources` are all of the namespace.
    """
    asked = tuple(judged)
    if not asked:
        return ()
    folders = _Folders(outputs.values(), sources)
    reads = ReadGraph({name: folders.read_by(output) for name, output in outputs.items()})
    circles = ((output, reads.circle(output.name)) for output in asked)
    return (
        *(_finding(output, circle) for output, circle in circles if circle),
        *(found for each in asked for found in _retention_findings(each, folders, outputs)),
    )


class _Folders:
    def __init__(self, outputs: Iterable[OutputDataset], sources: Mapping[str, DataSource]) -> None:
        self._sources, self._reads = sources, reads_of(sources)
        self._names: defaultdict[str, set[str]] = defaultdict(set)
        for output in outputs:
            for place in places_of(output):
                self._names[place].add(output.name)
        self._sorted = sorted(self._names)

    def read_by(self, output: OutputDataset) -> set[str]:
        return self.read_from(output.spec.data_model.sources)

    def read_from(self, names: Iterable[str]) -> set[str]:
        sources = self._reads.reached(names)
        globs = (glob for name in sources for glob in declared(self._sources[name]).globs)
        folders = {folder for glob in globs for folder in self._read_at(glob)}
        return {name for folder in folders for name in self._names[folder]}

    def _read_at(self, glob: str) -> Iterator[str]:
        for choice in _choices(glob):
            steps = comparable_folder(choice).split("/")
            for folder in self._near(choice):
                if _is_below(steps, folder.rstrip("/").split("/")):
                    yield folder

    def _near(self, glob: str) -> Iterator[str]:
        """Folders that begin as the glob does, and those that the glob's own folders lie in."""
        fixed = comparable_folder(_SPECIAL.split(glob, maxsplit=1)[0])
        end = fixed.find("/")
        while end >= 0:
            if fixed[: end + 1] in self._names:
                yield fixed[: end + 1]
            end = fixed.find("/", end + 1)
        begins = fixed.rstrip("/")
        for folder in islice(self._sorted, bisect_left(self._sorted, begins), None):
            if not folder.startswith(begins):
                break
            yield folder


def _retention_findings(
    output: OutputDataset, folders: _Folders, outputs: Mapping[str, OutputDataset]
) -> Iterator[Finding]:
    """Histories of sources that read another output, which deletes snapshots earlier."""
    for index, other in enumerate(output.spec.data_model.other_data_sources):
        if other.snapshot.history is None:
            continue
        for name in sorted(folders.read_from([other.data_source]) & outputs.keys()):
            why = _too_short(outputs[name], other.snapshot)
            if why:
                yield history_finding(output, index, why)


def history_finding(output: OutputDataset, index: int, why: str) -> Finding:
    """The finding about a source that has not the history that is asked for.

    `why` is the reason, a colon, and what to do.
    """
    other = output.spec.data_model.other_data_sources[index]
    length = other.snapshot.history
    message, _, hint = why.partition(": ")
    return output.finding(
        "SL168",
        f"spec.dataModel.otherDataSources[{index}].snapshot.history",
        f"DataSource/{other.data_source} has no such history: {message}",
        found=f"history {'' if length is None else length.text}",
        expected="a source that has a snapshot for each part of it, and keeps them",
        hint=hint,
    )


_SOME_DAY = EpochNanos(1_709_164_800 * NANOS_PER_SECOND)  # 29 February 2024


def _too_short(output: OutputDataset, rule: ChildSnapshot) -> str:
    """The reason why an output that is read deletes its snapshots too early, and a fix."""
    assert rule.history is not None  # only histories are asked about
    kept = output.spec.output_folder.snapshot_auto_delete
    at = "outputFolder.snapshotAutoDelete"
    for field, age in (
        ("maxSnapshotAge", kept.max_snapshot_age),
        ("maxSnapshotCreationAge", kept.max_snapshot_creation_age),
    ):
        spans = [minus_bounded(_SOME_DAY, each, "UTC") for each in (rule.history, age)]
        if not age.is_zero and spans[0] < spans[1]:
            return (
                f"{output.identity}, whose folder it reads, deletes snapshots after {age.text}: "
                f"lengthen {at}.{field} there, or shorten history"
            )
    unit, number = rule.parts
    if 0 <= kept.max_old_snapshots < number - 1:
        return (
            f"{output.identity}, whose folder it reads, keeps {kept.max_old_snapshots + 1} "
            f"snapshots, fewer than one for each {unit}: raise {at}.maxOldSnapshots there, or "
            "shorten history"
        )
    return ""


def _choices(glob: str) -> tuple[str, ...]:
    """The globs that `{a,b}` stands for; the fixed beginning, where they are too many."""
    found = [glob]
    while any(_CHOICE.search(each) for each in found):
        if len(found) > _MOST_CHOICES:
            return (f"{_SPECIAL.split(glob, maxsplit=1)[0]}*/**",)
        found = [
            each[: choice.start()] + text + each[choice.end() :] if choice else each
            for each in found
            for choice in (_CHOICE.search(each),)
            for text in (choice[1].split(",") if choice else ("",))
        ]
    return tuple(found)


def _is_below(glob: list[str], folder: list[str]) -> bool:
    """Whether files that a glob matches can lie in a folder; both as steps of a path."""
    for step, name in zip(glob, folder, strict=False):
        if step == "**":
            return True
        if not fnmatchcase(name, _ESCAPED.sub(r"[\1]", step).replace("[^", "[!")):
            return False
    return len(glob) > len(folder)


def _finding(output: OutputDataset, circle: Sequence[str]) -> Finding:
    itself = len(circle) == 2
    return output.finding(
        "SL181",
        "spec.dataModel",
        "the output reads its own snapshots"
        if itself
        else "outputs read each other's snapshots in a circle",
        found=" -> ".join(f"OutputDataset/{name}" for name in circle),
        expected="sources whose files do not come from this output",
    )


def read_first(bundles: Sequence[Bundle]) -> Mapping[str, frozenset[str]]:
    """By output, the others whose folders it reads."""
    outputs = [bundle.output for bundle in bundles]
    return {
        bundle.output.name: frozenset(read.name for read in upstream_outputs(bundle, outputs))
        for bundle in bundles
    }
