"""From URIs to the text of declarations: short YAML with comments."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf

import yaml
from pydantic import JsonValue

from snaploom.confidential import visible
from snaploom.errors import ArgumentInvalid, SourceNotReadable
from snaploom.loading.nearmisses import did_you_mean, listing
from snaploom.models.common import Resource
from snaploom.models.datasource import JdbcDriver
from snaploom.models.kinds import TextDumper
from snaploom.plugins.discovery import datecolumns, foundfiles
from snaploom.plugins.discovery.databasefiles import database_files, read_database_file, with_tables
from snaploom.plugins.discovery.dates import Family
from snaploom.plugins.discovery.declarations import CommentPath, Declarations, Declared, declare
from snaploom.plugins.discovery.foundfiles import LIKE_NAME
from snaploom.plugins.discovery.jointree import ProposedTree, propose_tree
from snaploom.plugins.discovery.keys import lists_days, with_shared_ranges
from snaploom.plugins.discovery.layout import layouts_of, table_folders
from snaploom.plugins.discovery.parents import (
    Relationships,
    ends_of,
    find_relationships,
    percent,
    source_of,
)
from snaploom.plugins.discovery.profiles import (
    ColumnProfile,
    ReadDatabase,
    SourceProfile,
    database_address,
    is_database,
    no_databases,
)
from snaploom.plugins.discovery.relationships import Relationship, Verdict, judge
from snaploom.plugins.discovery.samples import profiles_of
from snaploom.plugins.discovery.scratch import distinct_keys
from snaploom.plugins.discovery.typedfiles import Meter
from snaploom.types.merge import explains_more, explanations

# Declarations as short YAML with comments: flow style where it fits on a line, else blocks.

WIDTH = 110
"""Characters of a line up to which a list or map stays on it."""
MOST_LEFT_OUT = 40
"""Lines about parts left out; more are counted."""
_BLOCKS = frozenset({"spec", "schemaFields", "otherDataSources", "dataRelationships"})
"""Fields whose members stand on lines of their own, except a single one."""


def files_of(found: Declarations, about: Sequence[str]) -> dict[str, str]:
    """The text of each file, by its name.

    `about` has lines about the reading, for the beginning.
    """
    files = {
        "sources.yaml": _file(found.sources, [*about, *_left_out(found.left_out)]),
        "relationships.yaml": _file(
            found.relationships, ["Which columns mean the same entity, best evidence first."]
        ),
        "output.yaml": _file([found.output], []),
    }
    if not found.relationships:  # a file without a resource is a finding
        del files["relationships.yaml"]
    return files


def _file(declared: Iterable[Declared], about: Sequence[str]) -> str:
    head = "".join(f"{_comment(line)}\n" for line in about)
    texts = [resource_text(one) for one in declared]
    shown = [text for text in texts if text]
    return head + ("---\n" if head and shown else "") + "---\n".join(shown)


def _left_out(left_out: Sequence[foundfiles.LeftOut]) -> list[str]:
    if not left_out:
        return []
    lines = [f"  {each.what}: {each.why}" for each in left_out[:MOST_LEFT_OUT]]
    if len(left_out) > MOST_LEFT_OUT:
        lines.append(f"  and {len(left_out) - MOST_LEFT_OUT:,} more")
    return ["Left out:", *lines]


def resource_text(declared: Declared) -> str:
    """One resource as YAML, each comment in front of its subject."""
    lines = [_comment(line) for line in declared.head]
    body: list[str] = []
    for key, value in document_of(declared.resource).items():
        body.extend(_entry(key, value, 0, (key,), declared))
    return "\n".join([*lines, *body]) + "\n"


def document_of(resource: Resource) -> dict[str, JsonValue]:
    """A resource as plain data, with the fields given and without defaults."""
    given: dict[str, JsonValue] = resource.model_dump(
        mode="json", by_alias=True, exclude_none=True, exclude_unset=True, exclude={"status"}
    )
    return {"apiVersion": resource.api_version, "kind": resource.kind, **given}


def _comment(line: str) -> str:
    return f"# {visible(line)}".rstrip()


def _entry(
    key: str, value: JsonValue, indent: int, path: CommentPath, declared: Declared
) -> list[str]:
    pad = " " * indent
    above = [pad + _comment(declared.comments[path])] if path in declared.comments else []
    if not isinstance(value, dict | list) or _is_flow(key, value, indent, path, declared):
        return [*above, f"{pad}{_flow(key)}: {_flow(value)}"]
    lines = [*above, f"{pad}{_flow(key)}:"]
    if isinstance(value, dict):
        for name, inner in value.items():
            lines.extend(_entry(name, inner, indent + 2, (*path, name), declared))
        return lines
    for index, inner in enumerate(value):
        lines.extend(_item(inner, indent + 2, (*path, index), declared))
    return lines


def _item(value: JsonValue, indent: int, path: CommentPath, declared: Declared) -> list[str]:
    pad = " " * indent
    above = [pad + _comment(declared.comments[path])] if path in declared.comments else []
    if path == declared.marked:  # on one line, however long: one mark is removed
        return [*above, f"{pad}# - {_flow(value)}"]
    if not isinstance(value, dict) or not value or _fits(value, WIDTH - indent - 2):
        return [*above, f"{pad}- {_flow(value)}"]
    lines: list[str] = []
    for name, inner in value.items():
        lines.extend(_entry(name, inner, indent + 2, (*path, name), declared))
    lines[0] = f"{pad}- {lines[0].lstrip()}"
    return [*above, *lines]


def _is_flow(
    key: str, value: JsonValue, indent: int, path: CommentPath, declared: Declared
) -> bool:
    places = (*declared.comments, declared.marked)
    has_comments = any(place[: len(path)] == path and place != path for place in places)
    is_block = path[-1] in _BLOCKS and isinstance(value, dict | list) and len(value) > 1
    if has_comments or is_block or path[-1] == "spec":
        return False
    return _fits(value, WIDTH - indent - len(f"{_flow(key)}: "))


def _fits(value: JsonValue, width: int) -> bool:
    """Whether a value in flow style fits; large ones are not written to find that out."""
    waiting, length = [value], 0
    while waiting and length <= width:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += [*one, *one.values()]
        elif isinstance(one, list):
            waiting += one
        else:
            length += len(str(one))
    return length <= width and len(_flow(value)) <= width


def _flow(value: JsonValue) -> str:
    text: str = yaml.dump(
        value, Dumper=TextDumper, default_flow_style=True, width=10**9, allow_unicode=True,
        sort_keys=False,
    )  # fmt: skip
    return text.removesuffix("\n").removesuffix("\n...")


# From URIs to the text of declarations.


@dataclass(frozen=True)
class Discovery:
    """The discovered tables and their declarations."""

    profiles: tuple[SourceProfile, ...]
    relationships: Relationships
    tree: ProposedTree
    declarations: Declarations
    files_listed: int
    files_opened: int
    bytes_read: int
    tables_read: int
    """Of databases."""
    guesses: tuple[foundfiles.Guess, ...] = ()
    """Choices that the data leave open, and that nobody confirmed."""

    @property
    def about(self) -> str:
        """The tables read, for people."""
        parts = []
        if self.files_listed:
            parts.append(
                f"Read: {self.bytes_read:,} bytes of {self.files_opened:,} of "
                f"{self.files_listed:,} files; "
                f"of each source at most {foundfiles.SOURCE_BYTES >> 20} MiB."
            )
        if self.tables_read:
            parts.append(
                f"Read: {self.tables_read:,} tables; of each at most {foundfiles.DATABASE_ROWS:,} "
                f"rows from a server, and {foundfiles.FILE_VALUES:,} values from a file."
            )
        return " ".join(parts)

    @cached_property
    def files(self) -> dict[str, str]:
        """The text of each file that is written, by its name."""
        about = [
            f"Written by `snaploom init --from`. {self.about}",
            "What stands in comments is the evidence of a guess.",
        ]
        return files_of(self.declarations, about)


def discover(
    uris: Sequence[str],
    folder_uri: str,
    root: str | None = None,
    ask: foundfiles.Ask = foundfiles.nobody,
    read_database: ReadDatabase = no_databases,
    *,
    only: Sequence[str] = (),
    without: Sequence[str] = (),
    depth: int = foundfiles.DEEPEST_JOIN,
) -> Discovery:
    """Discover the tables of some places, and declare them.

    Args:
        uris: folders, files and databases.
        folder_uri: of the folder for the declarations, with a final `/`.
        root: the table whose rows the output has; None to choose one.
        ask: asks a person where the evidence is close; without, guesses are stated.
        read_database: reads a database.
        only: sources to declare; empty for all.
        without: sources to leave out.
        depth: most joins between the root and a source.

    Raises:
        ArgumentInvalid: a URI that cannot be declared, or no such root.
        SourceNotReadable: there is nothing, or nothing that can be read.
        StorageError: a store cannot be asked.
        SourceError: a database cannot be read.
    """
    addresses = [database_address(uri) for uri in uris if is_database(uri)]
    listing = foundfiles.list_files(uri for uri in uris if not is_database(uri))
    in_files = database_files(listing.files)
    files = [file for file in listing.files if file.uri not in in_files]
    meter = Meter()
    layouts, others = layouts_of(files, ask)
    layouts, no_tables = with_tables(layouts, meter)
    databases = [
        (address, read_database_file(address) if is_file else read_database(address))
        for address in (*addresses, *in_files.values())
        for is_file in [address.driver is JdbcDriver.DUCKDB]
    ]
    tables = [(address, content.tables) for address, content in databases]
    profiles, unread = profiles_of(layouts, meter, table_folders(files), tables)
    of_databases = (each for _, content in databases for each in content.left_out)
    left_out = (*listing.left_out, *others, *no_tables, *of_databases, *unread)
    if not profiles:
        reasons = "; ".join(f"{each.what}: {each.why}" for each in left_out[:5])
        raise SourceNotReadable(
            "nothing here can be read as a source",
            path="--from",
            found=reasons or f"{len(listing.files)} files, none with data",
            expected="files of CSV, JSON, Parquet, ORC, Avro, Arrow, Excel or SQLite, known by "
            "endings, or tables",
            hint="correct these, or name the folder that has others",
        )
    profiles, unwanted = _wanted(profiles, only, without)
    profiles = with_shared_ranges(profiles)
    left_out += unwanted
    wanted_root = None if root is None else named(root, profiles, "--root")
    found = find_relationships(profiles, ask)
    tree = propose_tree(profiles, found, wanted_root, depth)
    guesses = found.guesses
    if root is None and tree.close_root is not None:
        options = (tree.root.table, tree.close_root)
        question = foundfiles.Question(
            "Each row of the output is one of which source?", options, 0, inf
        )
        (answer,) = ask([question])
        if answer is None:
            guesses = (_root_guess(tree.root.table, tree.close_root), *guesses)
        else:
            tree = propose_tree(profiles, found, options[answer], depth)
    by_key = found.declared
    found, unanswered = _with_as_of(profiles, found, tree, ask)
    guesses = (*guesses, *unanswered)
    if found.declared != by_key:
        tree = propose_tree(profiles, found, tree.root.table, depth)
    dated = (
        datecolumns.with_event_dates(profile) if profile.name == tree.root.table else profile
        for profile in profiles
    )
    rooted = tuple(datecolumns.with_answer(profile, ask) for profile in dated)
    declared = declare(rooted, found, tree, listing.files, folder_uri)
    declared = replace(declared, left_out=(*left_out, *found.stopped, *declared.left_out))
    return Discovery(
        profiles=rooted,
        relationships=found,
        tree=tree,
        declarations=declared,
        files_listed=len(listing.files),
        files_opened=len(meter.files_opened),
        bytes_read=meter.bytes_read,
        tables_read=sum(len(content.tables) for _, content in databases),
        guesses=(*filter(None, map(datecolumns.guess_of, rooted)), *guesses),
    )


def _with_as_of(
    profiles: Sequence[SourceProfile], found: Relationships, tree: ProposedTree, ask: foundfiles.Ask
) -> tuple[Relationships, tuple[foundfiles.Guess, ...]]:
    """The relationships with joins as of a time: those that a person wants, the others marked."""
    grouped: set[int] = set()
    names: dict[str, None] = {}
    for place, node in enumerate(tree.nodes):
        if node.group_by or node.parent in grouped:
            grouped.add(place)
        else:
            names[node.table] = None
    by_name = {profile.name: profile for profile in profiles}
    others = [each for each in profiles if each.name not in names]
    ones = datecolumns.as_of_relationships(
        [by_name[name] for name in names], others, found.declared
    )
    answers = ask([_as_of_question(one, by_name) for one in ones])
    chosen = [one for one, answer in zip(ones, answers, strict=True) if answer == 0]
    open_ = [one for one, answer in zip(ones, answers, strict=True) if answer is None]
    shown = {" and ".join(sorted((one.source, one.target))) for one in (*chosen, *open_)}
    found = replace(
        found,
        declared=(*found.declared, *chosen),
        weak=(*found.weak, *open_),
        stopped=tuple(each for each in found.stopped if each.what not in shown),
    )
    return found, tuple(map(_as_of_guess, open_))


def _as_of_question(
    one: Relationship, profiles: Mapping[str, SourceProfile]
) -> foundfiles.Question:
    rows, columns = profiles[one.child].rows, len(profiles[one.parent].columns)
    asked = f"Does each row of {one.child} get the row of {one.parent} that held at its time?"
    return foundfiles.Question(asked, (f"yes: {one.evidence}", "no"), 1, float(rows * columns))


def _as_of_guess(one: Relationship) -> foundfiles.Guess:
    what = f"{one.parent} as of each row's time in {one.child}"
    change = "in relationships.yaml remove the mark of one line"
    return foundfiles.Guess(what, "no join", (), one.evidence, change)


def _root_guess(chosen: str, other: str) -> foundfiles.Guess:
    what, evidence = "each row of the output is one of", "from both as many sources are reached"
    return foundfiles.Guess(what, chosen, (other,), evidence, change=f"--root {other}")


def _wanted(
    profiles: Sequence[SourceProfile], only: Sequence[str], without: Sequence[str]
) -> tuple[tuple[SourceProfile, ...], tuple[foundfiles.LeftOut, ...]]:
    """The sources that are asked for, and those that are not."""
    kept = {named(name, profiles, "--only") for name in only} or {p.name for p in profiles}
    kept -= {named(name, profiles, "--not") for name in without}
    if not kept:
        raise ArgumentInvalid(
            "no source is left",
            path="--not",
            found=", ".join(without),
            expected="at least one source that is not named",
            hint="name fewer",
        )
    others = sorted(profile.name for profile in profiles if profile.name not in kept)
    left_out = foundfiles.LeftOut(", ".join(others), "not asked for (--only, --not)")
    kept_profiles = tuple(profile for profile in profiles if profile.name in kept)
    return kept_profiles, (left_out,) if others else ()


def named(name: str, profiles: Sequence[SourceProfile], option: str) -> str:
    """The source that a person means, who need not know about capitals and hyphens.

    Raises:
        ArgumentInvalid: there is none of this name.
    """
    names = {profile.name.casefold().replace("-", "_"): profile.name for profile in profiles}
    wanted = name.casefold().replace("-", "_")
    if wanted not in names:
        each = " ".join(f"{option} {one.strip()}" for one in name.split(",") if one.strip())
        several = f"write {each}" if "," in name else ""
        raise ArgumentInvalid(
            "there is no source of this name",
            path=option,
            found=name,
            expected=", ".join(sorted(names.values())),
            hint=several or did_you_mean(name, names.values()) or "name one of them",
        )
    return names[wanted]


# Candidates of a column, and what stops each: `--explain TABLE.COLUMN`.

MOST_CANDIDATES = 6
"""Candidates that are shown, likeliest first."""
MOST_SPELLED = 100_000
"""Distinct values up to which spellings are compared: each takes some microseconds."""
_WORTH_A_LINE = 0.5
"""Share of values from which a column is a candidate whatever its name is."""


def explained(found: Discovery, wanted: str) -> Iterator[str]:
    """Lines about what a column may refer to: `TABLE.COLUMN`, or one pair, `TABLE.COLUMN=OTHER.ID`.

    Raises:
        ArgumentInvalid: there is no such column.
    """
    name, _, other = wanted.partition("=")
    child, column = _column(found.profiles, name)
    yield _facts(child, column)
    if other:
        parent, target = _column(found.profiles, other)
        yield _facts(parent, target)
        yield from _lines(found, judge(child, column, parent, target, found.relationships.primary))
        return
    for one in found.relationships.declared:
        if one.child == child.name and column.name in one.child_columns:
            yield f"declared: {one.evidence}"
    verdicts = (
        judge(child, column, parent, target, found.relationships.primary)
        for parent in found.profiles
        for target in parent.columns
        if ((column.may_be_key and target.may_be_key) or lists_days(parent, target))
        and (child, column) != (parent, target)
    )
    likely = (
        v for v in verdicts
        if v.found.likeness >= LIKE_NAME or v.found.included.share >= _WORTH_A_LINE
    )  # fmt: skip
    shown = sorted(likely, key=lambda v: (not v.is_strong, v.found.order))
    if not shown:
        yield "no column of another source has a like name, or half of its values"
    for verdict in shown[:MOST_CANDIDATES]:
        yield from _lines(found, verdict)
    if len(shown) > MOST_CANDIDATES:
        yield f"and {len(shown) - MOST_CANDIDATES:,} more; name one, as in {name}=TABLE.COLUMN"


def _column(profiles: Sequence[SourceProfile], name: str) -> tuple[SourceProfile, ColumnProfile]:
    meant = name.strip().casefold()
    mine = [p for p in profiles if f"{meant}.".startswith(f"{p.name}.".casefold())] or profiles
    known = {f"{p.name}.{c.name}": (p, c) for p in mine for c in p.columns}
    found = next((known[each] for each in known if each.casefold() == meant), None)
    if found is None:
        raise ArgumentInvalid(
            "there is no column of this name",
            path="--explain",
            found=name,
            expected="TABLE.COLUMN, with a source of " + ", ".join(sorted(p.name for p in profiles))
            if mine is profiles
            else listing(tuple(known)),
            hint=did_you_mean(name, known) or "look into sources.yaml for names",
        )
    return found


def _facts(source: SourceProfile, column: ColumnProfile) -> str:
    kind = {Family.WHOLE: "whole numbers", Family.TEXT: "texts"}.get(column.type.family)
    kind = kind or ("dates" if column.type.family is Family.DATE else "values that are no keys")
    read = f"all {source.rows:,} rows" if source.rows <= column.rows else (
        f"{column.rows:,} of {source.rows:,} rows"
    )  # fmt: skip
    unique = ", each once" if column.is_unique else ""
    return (
        f"{source.name}.{column.name}: {kind}, {column.values.distinct:,} different ones{unique}, "
        f"{column.nulls:,} NULL; {read} were read"
    )


def _lines(found: Discovery, verdict: Verdict) -> Iterator[str]:
    one = verdict.found
    yield f"{one.target}: {percent(one.included.share)} of the values are there; " + (
        f"they are {percent(one.used)} of its keys; likeness of names {one.likeness:.2f}"
    )
    yield f"  {_outcome(found, verdict)}"
    spelling = _spelling(*(
        _column(found.profiles, f"{table}.{columns[0]}")[1]
        for table, columns in ((one.child, one.child_columns), (one.parent, one.parent_columns))
    ))  # fmt: skip
    if spelling:
        yield f"  {spelling}"


def _spelling(column: ColumnProfile, target: ColumnProfile) -> str:
    """The share of values that is there under each normalisation; empty where all are as written.

    Of more values than `MOST_SPELLED` it is not asked.
    """
    mine, theirs = (distinct_keys(each.values, MOST_SPELLED) or () for each in (column, target))
    each = list(explanations(mine, theirs))
    if not each:
        return ""
    helping = [one for one in each if one.share > one.as_written and len(one.steps) == 1]
    best = explains_more(mine, theirs)
    helping += [best] if best is not None and best not in helping else []
    better = [f"{percent(one.share)} with {', '.join(one.steps)}" for one in helping]
    others = "no more with others" if better else "no more with any normalize"
    return f"spelling: {percent(each[0].as_written)} as written, {', '.join([*better, others])}"


def _outcome(found: Discovery, verdict: Verdict) -> str:
    one, all_ = verdict.found, found.relationships
    if any(ends_of(one) == ends_of(other) for other in all_.declared):
        return "declared"
    if not verdict.is_strong:
        return f"stopped: {verdict.stopped}"
    taken = next((r for r in all_.declared if source_of(r) == source_of(one)), None)
    if taken is not None:
        return f"stopped: {taken.target} is likelier"
    if any(ends_of(one) == ends_of(other) for other in all_.weak):
        return "not declared: too close to another candidate; it stands in relationships.yaml"
    if any(ends_of(r) == ends_of(one)[::-1] for r in all_.declared):
        return "stopped: the other column refers to this one"
    return "stopped: the evidence is not clear enough"
