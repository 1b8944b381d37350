"""Hostile output folders: a good one with one thing changed as an enemy would."""

import copy
import gzip
import json
import os
import random
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.hostile.folderoperations import SCHEMA

from snaploom.output.layout import content_hash

ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\nforged line\u202e"
"""What would write to a terminal."""
HUGE = 1 << 40
"""Bytes of a file that has none on disk: a terabyte."""
CANARY_MODULE = "snaploom_canary"
CHECKPOINT, MARKER = "metadata/checkpoint/", "snaploom.json"


@dataclass(frozen=True)
class Mutation:
    """One change of a good folder."""

    name: str
    apply: Callable[[Path], None]


@dataclass(frozen=True)
class Outside:
    """What no command may change or reach."""

    canaries: Path
    """A folder of files that look like ours: among them are old ones."""
    address: str
    """Host and port of a listener."""


def mutations(good: Path, outside: Outside, seed: int) -> Iterator[Mutation]:
    """Every kind of change at every file and folder, and then values of documents, for ever."""
    chance = random.Random(seed)
    files = sorted(str(p.relative_to(good)) for p in good.rglob("*") if p.is_file())
    folders = sorted(str(p.relative_to(good)) for p in good.rglob("*") if p.is_dir())
    fixed = [*_of_files(files, outside, chance), *_of_folders(folders, outside), *_special(outside)]
    chance.shuffle(fixed)
    yield from fixed
    documents = [file for file in files if file.startswith("metadata/") or file == MARKER]
    while True:
        yield _value(chance, good, chance.choice(documents), outside)
        if chance.random() < 0.25:
            yield _flipped(chance, chance.choice(files))


def _of_files(files: Sequence[str], outside: Outside, chance: random.Random) -> Iterator[Mutation]:
    canary = outside.canaries / "precious.parquet"
    for file in files:
        yield Mutation(f"link {file}", lambda root, f=file: _linked(root / f, canary))  # type: ignore[misc]
        yield Mutation(f"pipe {file}", lambda root, f=file: _made(root / f, os.mkfifo))  # type: ignore[misc]
        yield Mutation(f"huge {file}", lambda root, f=file: os.truncate(root / f, HUGE))  # type: ignore[misc]
        yield _truncated(chance, file)
        yield _flipped(chance, file)
    for file in chance.sample(files, 5):
        yield Mutation(f"socket {file}", lambda root, f=file: _made(root / f, _socket))  # type: ignore[misc]
        yield Mutation(f"device {file}", lambda root, f=file: _made(root / f, _device))  # type: ignore[misc]
        yield Mutation(f"folder {file}", lambda root, f=file: _made(root / f, os.mkdir))  # type: ignore[misc]
        yield Mutation(f"bomb {file}", lambda root, f=file: _bomb(root / f))  # type: ignore[misc]
        yield Mutation(f"nested {file}", lambda root, f=file: _write(root / f, b"[" * 200_000))  # type: ignore[misc]
        yield Mutation(f"brackets {file}", lambda root, f=file: _write(root / f, b"[],[]" * 10**6))  # type: ignore[misc]


def _of_folders(folders: Sequence[str], outside: Outside) -> Iterator[Mutation]:
    for folder in (*folders, ".snaploom-tmp", "data/.staging", "iceberg", "commits"):
        yield Mutation(
            f"link {folder}/",
            lambda root, f=folder: _linked(root / f, outside.canaries),  # type: ignore[misc]
        )


def _special(outside: Outside) -> Iterator[Mutation]:
    yield Mutation("deep folders", lambda root: os.makedirs(root / "data" / "/".join("a" * 150)))
    yield Mutation("name of escapes", lambda root: _write(root / "data" / f"x{ESCAPES}", b"x"))
    yield Mutation("name of markup", lambda root: _write(root / "data" / "[link=x]y[", b"x"))
    yield Mutation(
        "name that is no text", lambda root: _write(root / os.fsdecode(b"data/\xff\xfe"), b"x")
    )
    yield Mutation("no marker", lambda root: os.unlink(root / MARKER))
    yield Mutation("extra entries", lambda root: _again(root, 60))
    yield Mutation("class in a schema", lambda root: with_schema(root, foreign_type(outside)))
    yield Mutation("deep schema", lambda root: with_schema(root, _deep_schema()))
    yield Mutation("schema of numbers", lambda root: with_schema(root, "[1, 2]"))
    yield Mutation("no schema", lambda root: with_schema(root, '"x"'))
    for name, forged in _forged(outside):
        yield Mutation(f"forged {name}", lambda root, f=forged: append(root, f))  # type: ignore[misc]
    yield Mutation("lost manifest", _lost_manifest)
    yield Mutation("names of escapes in a lost manifest", _lost_with_escapes)


def _forged(outside: Outside) -> Iterator[tuple[str, dict[str, Any]]]:
    """Entries after the last one, that name what is not theirs."""
    time, partition = "2020-01-03T00:00:00Z", "day=2"
    for name in foreign_names(outside):
        file = {"path": name, "bytes": 1}
        ended = {
            "time": time, "partition": partition, "publishedSeq": 4, "rule": "x",
            "deletedAt": "1970-01-01T00:00:00Z", "files": [file],
        }  # fmt: skip
        yield f"tombstone of {name!r:.60}", {"action": "tombstone", "snapshots": [ended]}
        yield f"revocation of {name!r:.60}", {"action": "revoke", "runIds": [name]}
        yield f"claim of {name!r:.60}", {"action": "claim", "scope": name, "seconds": 10**30}


def foreign_names(outside: Outside) -> tuple[str, ...]:
    """Paths that lead out of a folder, or to a server."""
    canary = outside.canaries / "precious.parquet"
    return (
        "../canaries/precious.parquet",
        "data/day=2/../../../canaries/precious.parquet",
        str(canary),
        f"file://{canary}",
        f"http://{outside.address}/x",
        f"s3a://{outside.address}/x",
        "C:\\x",
        "data\\day=2\\x",
        "data/day=2/%2e%2e/%2e%2e/x",
        "data//x",
        "data/day=2/x\0y",
        f"data/day=2/{ESCAPES}",
        "data/day=2/" + "x" * 100_000,
        "snaploom.json",
        "metadata/manifest/00000000000000000001.json",
        "",
    )


def append(root: Path, forged: dict[str, Any]) -> None:
    """Write an entry after the last one."""
    entries = sorted((root / "metadata/manifest").iterdir())
    before, seq = json.loads(entries[-1].read_bytes()), len(entries) + 1
    head = {key: before[key] for key in ("format", "runId", "writtenAt", "toolVersion")}
    for one in forged.get("snapshots", ()):
        one["seq"] = seq
    document = json.dumps({**head, "seq": seq, **forged}).encode()
    (root / "metadata/manifest" / f"{seq:020d}.json").write_bytes(document)


def with_schema(root: Path, schema: str) -> None:
    """Let every snapshot name a schema whose hash is right."""
    name = content_hash(schema.encode())
    (root / f"metadata/schema/{name}.json").write_text(schema)
    old = content_hash(SCHEMA.encode()).encode()
    for path in (root / "metadata/manifest").iterdir():
        path.write_bytes(path.read_bytes().replace(old, name.encode()))
    for path in (root / "metadata/checkpoint").iterdir():
        path.write_bytes(sealed(path.read_bytes().partition(b"\n")[2].replace(old, name.encode())))


def foreign_type(outside: Outside) -> str:
    """A schema whose type is a class in a module of an enemy, which PySpark would import.

    The module makes a file when it is, if `Outside.canaries` is on Python's path.
    """
    module = outside.canaries / f"{CANARY_MODULE}.py"
    if outside.canaries.is_dir() and not module.exists():
        module.write_text("import pathlib\npathlib.Path(__file__).with_name('imported').touch()\n")
    udt = {
        "type": "udt", "pyClass": f"{CANARY_MODULE}.Type", "serializedClass": "",
        "sqlType": "long",
    }  # fmt: skip
    field = {"name": "a", "type": udt, "nullable": True, "metadata": {}}
    return json.dumps({"type": "struct", "fields": [field]})


def _deep_schema() -> str:
    inner = '"long"'
    for _ in range(3000):
        inner = f'{{"type":"array","elementType":{inner},"containsNull":true}}'
    field = f'{{"name":"a","type":{inner},"nullable":true,"metadata":{{}}}}'
    return f'{{"type":"struct","fields":[{field}]}}'


def sealed(content: bytes) -> bytes:
    """A checkpoint whose digest is right, from what follows its first line."""
    head = {"format": 1, "sha256": content_hash(content.removesuffix(b"\n"))}
    return json.dumps(head).encode() + b"\n" + content


def hostile_values(outside: Outside) -> Sequence[Any]:
    return (
        None, True, -1, 0, 10**18, 2**63, 10**400, -(10**400), 1.5, 1e308, "", "x" * 2_000_000,
        ESCAPES, [], {}, [[[]]], {"": {}}, "\ud800", "9999-12-31T23:59:59.999999999Z",
        "0001-01-01T00:00:00Z", "2020-13-45T99:99:99Z", "a" * 64, *foreign_names(outside),
    )  # fmt: skip


def _value(chance: random.Random, good: Path, file: str, outside: Outside) -> Mutation:
    """One value of a document becomes another; digests are put right."""
    content = (good / file).read_bytes()
    lines = content.split(b"\n")
    number = 1 if file.startswith((CHECKPOINT, "metadata/listing/")) else 0
    raw = json.loads(lines[number])
    places = list(_places(raw))
    place = chance.choice(places)
    value = copy.deepcopy(chance.choice(hostile_values(outside)))
    changed = _put(raw, place, value)
    kind = chance.random()
    text = json.dumps(changed).encode()
    if kind < 0.03:
        text = text.replace(b"{", b'{"format": 1, "format": 1, ', 1)
    elif kind < 0.06:
        text = text.replace(b"{", b'{"' + b"x" * 100 + b'": ' + b"[" * 5000 + b"]" * 5000 + b",", 1)
    lines[number] = text
    if number:
        content = b"\n".join(lines[1:])
        head = {"format": 1, "sha256": content_hash(content.removesuffix(b"\n"))}
        if file.startswith("metadata/listing/"):
            head = {"sha256": content_hash(lines[1])}
        lines[0] = json.dumps(head).encode()
    description = f"value {file} {'.'.join(map(str, place))} = {str(value)[:40]!r}"
    return Mutation(description, lambda root: _write(root / file, b"\n".join(lines)))


def _places(raw: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield place
    members = (
        raw.items() if isinstance(raw, dict) else enumerate(raw) if isinstance(raw, list) else ()
    )
    for key, value in members:
        yield from _places(value, (*place, key))


def _put(raw: Any, place: tuple[Any, ...], value: Any) -> Any:
    if not place:
        return value
    changed = copy.deepcopy(raw)
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return changed


def _truncated(chance: random.Random, file: str) -> Mutation:
    share = chance.random()
    return Mutation(
        f"truncated {file}",
        lambda root: os.truncate(root / file, int((root / file).stat().st_size * share)),
    )


def _flipped(chance: random.Random, file: str) -> Mutation:
    seed = chance.random()

    def flip(root: Path) -> None:
        own, path = random.Random(seed), root / file
        content = bytearray(path.read_bytes())
        for _ in range(own.randrange(1, 6) if content else 0):
            content[own.randrange(len(content))] ^= 1 << own.randrange(8)
        path.write_bytes(content)

    return Mutation(f"flipped {file} {seed}", flip)


def _linked(path: Path, target: Path) -> None:
    _moved_away(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def _made(path: Path, make: Callable[[Path], object]) -> None:
    _moved_away(path)
    make(path)


def _moved_away(path: Path) -> None:
    if path.exists():
        path.rename(path.parents[0] / f".was-{path.name}")


def _socket(path: Path) -> None:
    # Names of sockets are short, so that it is bound from its folder.
    before = os.getcwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind("s")
    finally:
        os.chdir(before)
    (path.parent / "s").rename(path)


def _device(path: Path) -> None:
    try:
        os.mknod(path, 0o600 | 0o020000, os.makedev(1, 5))  # /dev/zero, which never ends
    except PermissionError:
        os.mkfifo(path)


def _bomb(path: Path) -> None:
    """A kilobyte that unpacks to a hundred megabytes."""
    _write(path, gzip.compress(b"\0" * 10**8, 9))


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _again(root: Path, count: int) -> None:
    """Claims without end, and a checkpoint that claims even more."""
    for number in range(count):
        append(root, {"action": "claim", "scope": f"s{number}", "seconds": 1})


def _lost_manifest(root: Path) -> None:
    for folder in ("manifest", "checkpoint"):
        (root / "metadata" / folder).rename(root / f"was-{folder}")
    (root / "metadata/_latest").unlink()


def _lost_with_escapes(root: Path) -> None:
    _lost_manifest(root)
    place = next((root / "data").glob("day=3"))
    place.rename(place.with_name(f"day={ESCAPES}"))
    place = next((root / "data").glob("day=2"))
    place.rename(place.with_name("day=" + "9" * 100))
