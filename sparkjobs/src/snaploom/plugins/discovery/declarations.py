"""Declarations of discovered tables, each with comments that state the evidence."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from snaploom.loading.nearmisses import counted
from snaploom.models import common, outputdataset
from snaploom.models.asof import AsOf, ChildSnapshot
from snaploom.models.datarelationship import (
    DataRelationship,
    DataRelationshipSpec,
    KeyComponent,
    KeyField,
    Normalization,
    Representation,
)
from snaploom.models.fieldtransformer import FieldTransformer
from snaploom.plugins.discovery import sourcetexts
from snaploom.plugins.discovery.datecolumns import event_columns, guess_of
from snaploom.plugins.discovery.dates import UNSIGNED, ColumnType, Family
from snaploom.plugins.discovery.foundfiles import FoundFile, LeftOut
from snaploom.plugins.discovery.jointree import Joined, ProposedTree, field_of, role_name
from snaploom.plugins.discovery.layout import TableFolder
from snaploom.plugins.discovery.names import words_of
from snaploom.plugins.discovery.parents import Relationships
from snaploom.plugins.discovery.profiles import DatabaseTable, SourceProfile
from snaploom.plugins.discovery.relationships import Relationship
from snaploom.policy.fileformats import format_of
from snaploom.types.schemas import path_text

CommentPath = tuple[str | int, ...]


@dataclass(frozen=True)
class Declared:
    """A resource, with its comments."""

    resource: common.Resource
    head: tuple[str, ...]
    comments: Mapping[CommentPath, str] = field(default_factory=dict)
    """Comments above parts of it, by their place."""
    marked: CommentPath = ()
    """A member of a list that stands in a comment, because the evidence is weak."""


@dataclass(frozen=True)
class Declarations:
    """All that is written."""

    sources: tuple[Declared, ...]
    relationships: tuple[Declared, ...]
    output: Declared
    left_out: tuple[LeftOut, ...]


def declare(
    profiles: Sequence[SourceProfile],
    found: Relationships,
    tree: ProposedTree,
    listed: Iterable[FoundFile],
    folder_uri: str,
) -> Declarations:
    """The declarations of discovered tables.

    `listed` has every file that was listed, and `folder_uri` a final `/`.
    """
    everything = list(listed)
    names = resource_names([profile.name for profile in profiles])
    sources = {
        profile.name: sourcetexts.declared_source(profile, names[profile.name], everything)
        for profile in profiles
    }
    joined = _NodeNames(tree, names)
    declared = [_source(sources[p.name], found) for p in profiles]
    roles = [
        Declared(
            sources[node.table].virtual(joined.of(place)),
            (f"{node.table} in the role of {node.field}",),
        )
        for place, node in enumerate(tree.nodes)
        if node.is_role
    ]
    by_name = {profile.name: profile for profile in profiles}
    written = _Written(tree, joined, by_name, names, sources)
    written.add_all(found)
    return Declarations(
        sources=(*(one for group in declared for one in group), *roles, *written.roles),
        relationships=tuple(written.relationships),
        output=_output(tree, joined, written, by_name, found, folder_uri),
        left_out=tree.left_out,
    )


def resource_names(tables: Iterable[str]) -> dict[str, str]:
    """Names of resources by those of tables, each once."""
    found: dict[str, str] = {}
    for table in tables:
        plain = "-".join(words_of(table)) or "source"
        options = [plain, *(f"{plain}-{number}" for number in range(2, len(found) + 3))]
        found[table] = next(option for option in options if option not in found.values())
    return found


class _NodeNames:
    """Names of DataSources of the nodes of a tree, and of fields beside them."""

    def __init__(self, tree: ProposedTree, names: Mapping[str, str]) -> None:
        self._taken = set(names.values())
        self._fields = {"data", *(node.field.lower() for node in tree.nodes)}
        self._names = [
            self.role(node.field) if node.is_role else names[node.table] for node in tree.nodes
        ]

    def of(self, place: int) -> str:
        """The name of one node's DataSource."""
        return self._names[place]

    def role(self, field: str) -> str:
        """A new name for the DataSource of a role."""
        plain = field.replace("_", "-")
        options = [plain, f"{plain}-role", *(f"{plain}-{n}" for n in range(2, 999))]
        name = next(option for option in options if option not in self._taken)
        self._taken.add(name)
        return name

    def field(self, wanted: str) -> str:
        """A new field of the output."""
        options = [wanted, *(f"{wanted}_{n}" for n in range(2, 999))]
        name = next(option for option in options if option.lower() not in self._fields)
        self._fields.add(name.lower())
        return name


def _source(source: sourcetexts.DeclaredSource, found: Relationships) -> list[Declared]:
    profile = source.profile
    resources = source.resources()
    head = [_origin_text(profile), *_snapshot_text(profile)]
    key = found.primary.get(profile.name)
    if key is not None:
        columns = ", ".join(key.columns)
        seen = f"unique in {key.rows:,} rows of {counted(profile.snapshots_read, 'snapshot')}"
        head.append(f"key: {columns} ({'declared by the database' if key.is_declared else seen})")
    head.extend(profile.notes)
    if profile.is_untyped:
        head.append("no schemaFields, since files differ in columns, and no header names them")
    result = [Declared(resources[0], tuple(head))]
    for other in resources[1:]:
        if isinstance(other, FieldTransformer):
            why = f"values of {profile.name}: texts for no value are NULL in these columns only"
            result.append(Declared(other, (why,)))
            continue
        why = (
            "the date stands in the path in a form that needs a query"
            if profile.snapshot_column is None
            else f"the day of {profile.snapshot_column.name} takes a query"
        )
        result.append(Declared(other, (f"{source.physical_name} by time: {why}",)))
    return result


def _snapshot_text(profile: SourceProfile) -> list[str]:
    """The column with the snapshots and its evidence, or those that could be it."""
    found, guess = profile.snapshot_column, guess_of(profile)
    guessed = [] if guess is None else [guess.text]
    if found is not None:
        times = found.dates.times
        return [
            *guessed,
            f"snapshots: by {found.name}, {times[0]:%Y-%m-%d} to {times[-1]:%Y-%m-%d} in the data "
            f"read ({found.evidence})",
        ]
    others = [] if profile.times else [column.name for column in event_columns(profile)]
    return [*guessed, *([f"could be divided by: {', '.join(others)}"] if others else [])]


def _origin_text(profile: SourceProfile) -> str:
    origin = profile.origin
    read = f"{profile.rows_read:,} rows read"
    if profile.rows > profile.rows_read:
        read = f"{profile.rows_read:,} of {profile.rows:,} rows read"
    if isinstance(origin, DatabaseTable):
        return f"a table of {origin.address.uri}; {read}"
    if isinstance(origin, TableFolder):
        called = format_of(origin.data_format).table
        return f"a table of {called}, whose library Spark needs (how-to/tables.md); {read}"
    files = "1 file" if len(origin.files) == 1 else f"{len(origin.files):,} files"
    times = origin.snapshots
    if not times:
        return f"{files}, no date in their names; {read}"
    span = f"{times[0]:%Y-%m-%d}" + (f" to {times[-1]:%Y-%m-%d}" if len(times) > 1 else "")
    count = "1 snapshot" if len(times) == 1 else f"{len(times):,} snapshots"
    return f"{files}, {count}, {span}; {read}"


class _Written:
    """Relationships as they are written, and what the output needs for them."""

    def __init__(
        self,
        tree: ProposedTree,
        joined: _NodeNames,
        profiles: Mapping[str, SourceProfile],
        names: Mapping[str, str],
        sources: Mapping[str, sourcetexts.DeclaredSource],
    ) -> None:
        self._tree = tree
        self._joined = joined
        self._profiles = profiles
        self._names = names
        self._sources = sources
        self._places = {n.table: place for place, n in reversed(list(enumerate(tree.nodes)))}
        self._waiting: set[str] = set()
        self.relationships: list[Declared] = []
        self.used: list[str] = []
        """Names of those that the output names."""
        self.roles: list[Declared] = []
        """Sources of roles that only weak relationships need."""
        self.others: list[outputdataset.OtherDataSource] = []
        """Sources that the output has as soon as a weak relationship is uncommented."""

    def add_all(self, found: Relationships) -> None:
        """Write relationships of the tree, then those that it does not use, then weak ones."""
        tree, joined, names = self._tree, self._joined, self._names
        by_tree: list[Relationship] = []
        for place, node in enumerate(tree.nodes):
            one = node.relationship
            if one is None:
                continue
            by_tree.append(one)
            ends = {
                node.table: joined.of(place), tree.nodes[node.parent].table: joined.of(node.parent)
            }  # fmt: skip
            child, parent = ends[one.child], ends[one.parent]
            if one.child == one.parent:
                child, parent = joined.of(node.parent), joined.of(place)
            self.used.append(self._add(one, child, parent, ()))
        rest = [one for one in found.declared if one not in by_tree]
        for one in rest:
            if one.child != one.parent:
                text = "not used by the output below"
                self._add(one, names[one.child], names[one.parent], (text,))
        for one in rest:
            if one.child == one.parent:
                self._add_weak(one, "not used by the output")
        for one in found.weak:
            self._add_weak(one)

    def _add(
        self, one: Relationship, child: str, parent: str, notes: tuple[str, ...], marked: str = ""
    ) -> str:
        taken = {each.resource.name for each in self.relationships}
        column = "-".join(words_of(one.child_columns[-1]))
        options = [f"{child}-{parent}", f"{child}-{column}", f"{child}-{column}-{parent}"]
        options += [f"{child}-{parent}-{number}" for number in range(2, 99)]
        name = next(option for option in options if option not in taken)
        resource = _relationship(one, name, child, parent, self._profiles, marked)
        place: CommentPath = ("spec", "representations", 1) if marked else ()
        self.relationships.append(Declared(resource, (one.evidence, *notes), marked=place))
        return name

    def _add_weak(self, one: Relationship, doubt: str = "weak evidence") -> None:
        """Write a relationship of which one side is in a comment, and all that it takes to join.

        By the side that is there it joins nothing, and the output does without the source. As soon
        as the comment is no comment any more it is joined.
        """
        names, places = self._names, self._places
        reached = one.child if one.child in places else one.parent if one.parent in places else ""
        if not reached:
            note = f"{doubt}: remove the mark if it is right; the output has neither source"
            self._add(one, names[one.child], names[one.parent], (note,), marked=names[one.child])
            return
        other = one.parent if reached == one.child else one.child
        source, field = names[other], field_of(other)
        if other in places or other in self._waiting:
            role = role_name(one, other, self._profiles[one.child].prefix)[0]
            field = self._joined.field(role)
            source = self._joined.role(field)
            head = (f"{other} in the role of {field}, if the relationship is right",)
            self.roles.append(Declared(self._sources[other].virtual(source), head))
        else:
            field = self._joined.field(field)
        self._waiting.add(other)
        group_by = () if other == one.parent or one.is_one_to_one else one.child_columns
        mine = self._joined.of(places[reached])
        ends = (mine, source) if reached == one.child else (source, mine)
        many = f"; {one.rows_per_key:,.0f} rows a key: an array" if group_by else ""
        doubt = doubt if one.as_of is None else "one row as of a time (asOf)"
        note = f"{doubt}: remove the mark if it is right; the output then has {field}{many}"
        self.used.append(self._add(one, *ends, (note,), marked=mine))
        root = self._profiles[self._tree.root.table]
        window = sourcetexts.window_of(root.times, self._profiles[other].times)
        self.others.append(_other(source, field, group_by, window, one.as_of, is_waiting=True))


def _other(
    source: str,
    field: str,
    group_by: Sequence[str],
    window: sourcetexts.Window,
    as_of: AsOf | None,
    *,
    is_waiting: bool = False,
) -> outputdataset.OtherDataSource:
    given: dict[str, object] = {"data_source": source, "field_name": field}
    if as_of is not None:
        given["as_of"] = as_of
    if is_waiting:
        given["path_missing_mode"] = common.PathMissingMode.CONTINUE_IGNORE
    if group_by:
        columns = tuple(path_text((column,)) for column in group_by)
        given["transformations"] = outputdataset.Transformations(
            group_by=outputdataset.GroupBy(field_names=columns)
        )
    snapshot: dict[str, object] = {}
    if window.before != common.TimeOffset():
        snapshot["time_before"] = window.before
    if window.after != common.TimeOffset():
        snapshot["time_after"] = window.after
    if window.may_miss:
        snapshot["snapshot_missing_mode"] = common.MissingMode.CONTINUE_WARN
    if snapshot:
        given["snapshot"] = ChildSnapshot.model_validate(snapshot)
    return outputdataset.OtherDataSource.model_validate(given)


def _relationship(
    one: Relationship,
    name: str,
    child: str,
    parent: str,
    profiles: Mapping[str, SourceProfile],
    marked: str,
) -> DataRelationship:
    mine = [profiles[one.child].type_of(c) for c in one.child_columns]
    theirs = [profiles[one.parent].type_of(c) for c in one.parent_columns]
    casts = [_cast(a, b) for a, b in zip(mine, theirs, strict=True)]

    def representation(
        source: str, columns: Sequence[str], types: Sequence[ColumnType]
    ) -> Representation:
        components = (
            _component(column, kind, cast, one.normalize)
            for column, kind, cast in zip(columns, types, casts, strict=True)
        )
        return Representation(data_sources=(source,), join_key=tuple(components))

    ends: tuple[Representation, ...] = (
        representation(child, one.child_columns, mine),
        representation(parent, one.parent_columns, theirs),
    )
    if marked:
        ends = ends if marked == parent else (ends[1], ends[0])
    elif ends[0].join_key == ends[1].join_key:
        ends = (Representation(data_sources=(child, parent), join_key=ends[0].join_key),)
    return DataRelationship(
        metadata=common.ObjectMeta(name=name), spec=DataRelationshipSpec(representations=ends)
    )


def _component(
    column: str, kind: ColumnType, cast: common.DataType | None, steps: tuple[Normalization, ...]
) -> KeyComponent:
    names = (KeyField(field_name=path_text((column,)), data_type=kind.data_type),)
    given: dict[str, object] = {} if cast is None else {"cast_data_type": cast}
    if steps and kind.family is Family.TEXT:  # numbers are spelt in one way
        given["normalize"] = steps
    return KeyComponent.model_validate({"fields_": names, **given})


def _cast(one: ColumnType, other: ColumnType) -> common.DataType | None:
    """The type in which both sides are compared; None for text."""
    if one.family is not other.family:
        return None
    if UNSIGNED in (one, other):
        return None if one == other else UNSIGNED.data_type
    return {
        Family.WHOLE: common.DataType(long=common.Empty()),
        Family.DATE: common.DataType(date=common.Empty()),
        Family.TIME: common.DataType(timestamp=common.Empty()),
    }.get(one.family)


def _output(
    tree: ProposedTree,
    joined: _NodeNames,
    written: _Written,
    profiles: Mapping[str, SourceProfile],
    found: Relationships,
    folder_uri: str,
) -> Declared:
    root = profiles[tree.root.table]
    interval = sourcetexts.interval_of(root.times, root.unit)
    start = interval.start
    comments: dict[CommentPath, str] = {}
    others: list[outputdataset.OtherDataSource] = []
    for place, node in list(enumerate(tree.nodes))[1:]:
        window = sourcetexts.window_of(root.times, profiles[node.table].times)
        comments["spec", "dataModel", "otherDataSources", len(others)] = _join_text(
            node, tree.nodes[node.parent], window.reason
        )
        as_of = None if node.relationship is None else node.relationship.as_of
        others.append(_other(joined.of(place), node.field, node.group_by, window, as_of))
    if written.others:
        comments["spec", "dataModel", "otherDataSources", len(others)] = (
            "joined as soon as their marks in relationships.yaml are removed"
        )
        others += written.others
    key = found.primary.get(root.name)
    is_whole = key is not None and (key.is_declared or root.rows_read == root.rows)
    rooted = outputdataset.RootDataSource(
        data_source=joined.of(0),
        root_key=tuple(path_text((c,)) for c in key.columns) if key and is_whole else (),
        snapshot_filter=outputdataset.SnapshotFilter(
            from_interval=outputdataset.FromInterval(
                interval_start_date=common.LocalDateTime(
                    year=start.year, month=start.month, day=start.day, hour=start.hour,
                    minute=start.minute, second=0, nano=0, timezone="UTC",
                ),
                interval_length=interval.length,
            )
        ),
    )  # fmt: skip
    model: dict[str, object] = {"root_data_source": rooted}
    if others:
        model["other_data_sources"] = tuple(others)
        model["data_relationships"] = tuple(
            outputdataset.UsedRelationship(name=name) for name in written.used
        )
    path: CommentPath = ("spec", "dataModel", "rootDataSource")
    if key is not None and not is_whole:
        columns_text = ", ".join(path_text((column,)) for column in key.columns)
        comments[path] = f"to have its key checked, add `rootKey: [{columns_text}]`"
    comments[*path, "snapshotFilter"] = interval.reason + (
        "; rows from before it need an earlier one"
        if root.snapshot_column is not None and root.rows > root.rows_read
        else ""
    )
    output = outputdataset.OutputDataset(
        metadata=common.ObjectMeta(name=f"{joined.of(0)}-wide"),
        spec=outputdataset.OutputDatasetSpec(
            data_model=outputdataset.DataModel.model_validate(model),
            output_folder=outputdataset.OutputFolder(
                folder_uri=f"{folder_uri}wide/",
                snapshot_format=outputdataset.SnapshotFormat(
                    hive_partitioned=outputdataset.HivePartitioned()
                ),
            ),
        ),
    )
    head = [f"Each row is one of {root.name}, with what it refers to beside it."]
    if tree.other_roots:
        others_text = ", ".join(tree.other_roots)
        head.append(f"Other roots that were considered (`--root NAME`): {others_text}")
    return Declared(output, tuple(head), comments)


def _join_text(node: Joined, parent: Joined, window: str) -> str:
    one = node.relationship
    assert one is not None  # only the root has none
    columns = ", ".join(one.child_columns)
    place = f"{node.table} of {parent.field}, by {columns}"
    many = f"; {one.rows_per_key:,.1f} rows a key: an array" if node.group_by else ""
    if one.as_of is not None:
        many = f"; {one.rows_per_key:,.1f} rows a key: {one.as_of.text}"
    return place + many + (f"; {window}" if window else "")
