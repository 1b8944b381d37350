"""Names known vulnerabilities of what is locked, without a network: `make audit ADVISORIES=path`.

`python .ci/audit.py ADVISORIES [BILL ...]`. ADVISORIES is a file of OSV's form, a folder of such
files, or an archive of such as OSV publishes for each ecosystem; BILL a bill of materials that
`.ci/images` wrote. Looked at are the locks of Python's packages, Go modules and jars of this
repository, and the components of the bills.

Ends with 0 when nothing is known, 1 when something is, and 2 when that could not be found out.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from packageurl import PackageURL
from pydantic import BaseModel, ValidationError
from univers.versions import (
    DebianVersion,
    GolangVersion,
    InvalidVersion,
    MavenVersion,
    PypiVersion,
    Version,
)

REPOSITORY = Path(__file__).parents[1]
ECOSYSTEMS: dict[str, tuple[str, type[Version]]] = {
    "PyPI": ("pypi", PypiVersion),
    "Go": ("golang", GolangVersion),
    "Maven": ("maven", MavenVersion),
    "Debian": ("deb", DebianVersion),
    "Ubuntu": ("deb", DebianVersion),
}
"""Type of package URL of an ecosystem, and the order of its versions."""
_LOCKED = re.compile(r"^(?P<name>[a-z0-9-]+)==(?P<version>[^ ;\\]+)", re.MULTILINE)
_MODULE = re.compile(r"^(?:require)?\s+(?P<name>\S+\.\S+) v(?P<version>\S+)", re.MULTILINE)
_REPLACED = re.compile(
    r"^(?:replace)?\s*(?P<old>\S+)(?: v\S+)? => (?P<name>\S+) v(?P<version>\S+)", re.MULTILINE
)
_JAR = re.compile(r"^\S+  (?P<name>.+?)-(?P<version>\d[^/\n]*)\.jar$", re.MULTILINE)


class Package(BaseModel):
    """What an advisory is about."""

    ecosystem: str
    name: str


class Event(BaseModel):
    """Where a range of versions begins or ends."""

    introduced: str | None = None
    fixed: str | None = None
    last_affected: str | None = None


class Range(BaseModel):
    """Versions in the order of an ecosystem; of `GIT`, commits."""

    type: str
    events: list[Event]


class Affected(BaseModel):
    """The versions of one package that are vulnerable."""

    package: Package | None = None
    versions: list[str] = []
    ranges: list[Range] = []


class Advisory(BaseModel):
    """A vulnerability in OSV's form, as far as it is used here."""

    id: str
    summary: str = ""
    aliases: list[str] = []
    withdrawn: str | None = None
    affected: list[Affected] = []


@dataclass(frozen=True)
class Held:
    """A package that is locked or in an image."""

    purl: PackageURL
    place: str

    @property
    def names(self) -> Iterator[tuple[str, str, str]]:
        """Type, name and version, as advisories may know it."""
        version = self.purl.version or ""
        if self.purl.type == "generic":  # a jar without its maker
            yield "maven", self.purl.name, version
        elif self.purl.type == "maven":
            yield "maven", f"{self.purl.namespace}:{self.purl.name}", version
        elif self.purl.type == "deb":  # by what it was built from
            source, _, built = str(self.purl.qualifiers.get("upstream", "")).partition("@")
            yield "deb", source or self.purl.name, built or version
        else:
            yield (
                self.purl.type,
                "/".join(filter(None, [self.purl.namespace, self.purl.name])),
                version,
            )


@dataclass(frozen=True)
class Found:
    """An advisory that a package meets."""

    advisory: Advisory
    held: Held
    fixed: tuple[str, ...]


def lines(all_found: Iterable[Found]) -> list[str]:
    """A line for each advisory and version: which, what, where, and what to do."""
    places: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for found in all_found:
        names = ", ".join([found.advisory.id, *sorted(found.advisory.aliases)])
        repair = (
            f"fixed in {', '.join(found.fixed)}" if found.fixed else "no fixed version is known"
        )
        what = f"{found.held.purl.name} {found.held.purl.version}"
        about = f"{found.advisory.summary or 'no summary'}; {repair}"
        places[names, what, about].add(found.held.place)
    return sorted(
        f"{names}: {what} ({', '.join(sorted(where))}): {about}"
        for (names, what, about), where in places.items()
    )


class CannotAudit(Exception):
    """The advisories, a lock or a bill cannot be read."""


def locked() -> Iterator[Held]:
    """What the files of this repository pin."""
    for path in sorted(REPOSITORY.glob(".ci/locks/*.txt")):
        yield from _held(path, "pypi", _LOCKED)
    for path in sorted(REPOSITORY.glob("tests/*/*/go.mod")):
        replaced = {match["old"] for match in _REPLACED.finditer(path.read_text("utf-8"))}
        yield from (
            each for each in _held(path, "golang", _MODULE) if each.purl.name not in replaced
        )
        yield from _held(path, "golang", _REPLACED)
    for path in sorted(REPOSITORY.glob("tests/support/components/*/SHA256SUMS")):
        yield from _held(path, "generic", _JAR)


def _held(path: Path, kind: str, pattern: re.Pattern[str]) -> Iterator[Held]:
    place = path.relative_to(REPOSITORY).as_posix()
    for match in pattern.finditer(path.read_text("utf-8")):
        yield Held(PackageURL(kind, None, match["name"], match["version"]), place)


def billed(path: Path) -> Iterator[Held]:
    """The components of a bill of materials (CycloneDX in JSON)."""
    try:
        for component in json.loads(path.read_text("utf-8"))["components"]:
            yield Held(PackageURL.from_string(component["purl"]), path.name)
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise CannotAudit(f"{path} is no bill of materials: {error}") from error


def advisories(path: Path) -> Iterator[Advisory]:
    """All that are in a file, folder or archive, and were not withdrawn."""
    for place, text in _texts(path):
        try:
            document = json.loads(text)
            for each in document if isinstance(document, list) else [document]:
                advisory = Advisory.model_validate(each)
                if advisory.withdrawn is None:
                    yield advisory
        except (ValueError, ValidationError) as error:
            raise CannotAudit(f"{place} holds no advisory in OSV's form: {error}") from error


def _texts(path: Path) -> Iterator[tuple[str, bytes]]:
    try:
        if path.is_dir():
            for each in sorted(path.rglob("*.json")):
                yield str(each), each.read_bytes()
        elif path.suffix == ".zip":
            with zipfile.ZipFile(path) as opened:
                for name in sorted(opened.namelist()):
                    if name.endswith(".json"):
                        yield f"{path}: {name}", opened.read(name)
        else:
            yield str(path), path.read_bytes()
    except (OSError, zipfile.BadZipFile) as error:
        raise CannotAudit(f"{path} cannot be read: {error}") from error


def audit(known: Iterable[Advisory], all_held: Iterable[Held]) -> Iterator[Found]:
    """What is known of what is held."""
    by_name: dict[tuple[str, str], list[tuple[Held, str]]] = defaultdict(list)
    for held in all_held:
        for kind, name, version in held.names:
            by_name[kind, name].append((held, version))
    for advisory in known:
        for affected in advisory.affected:
            for held, version, order in _concerned(affected, by_name):
                if is_affected(version, affected, order):
                    yield Found(advisory, held, _fixed(affected))


def _concerned(
    affected: Affected, by_name: dict[tuple[str, str], list[tuple[Held, str]]]
) -> Iterator[tuple[Held, str, type[Version]]]:
    """What is held of a package that an advisory is about."""
    if affected.package is None:
        return
    ecosystem, _, release = affected.package.ecosystem.partition(":")
    if ecosystem not in ECOSYSTEMS:
        return
    kind, order = ECOSYSTEMS[ecosystem]
    name = affected.package.name
    names = {re.sub(r"[-_.]+", "-", name).lower()} if kind == "pypi" else {name}
    if kind == "maven":
        names.add(name.rpartition(":")[2])
    for each in sorted(names):
        for held, version in by_name.get((kind, each), ()):
            if kind != "deb" or _is_of_release(held.purl, ecosystem, release):
                yield held, version, order


def _is_of_release(purl: PackageURL, ecosystem: str, release: str) -> bool:
    """Whether a package is one of a distribution's release; of all, where none is named."""
    has = str(purl.qualifiers.get("distro", "")).rpartition("-")[2]
    wanted = release.partition(":")[0]  # of `22.04:LTS`
    return purl.namespace == ecosystem.lower() and (not wanted or not has or wanted == has)


def is_affected(version: str, affected: Affected, order: type[Version]) -> bool:
    """Whether a version is vulnerable, by OSV's rules; one that has no order counts as such."""
    if version in affected.versions:
        return True
    try:
        mine = order(version)
        if any(mine == order(each) for each in affected.versions if order.is_valid(each)):
            return True
        return any(_is_in(mine, each, order) for each in affected.ranges if each.type != "GIT")
    except InvalidVersion:
        return True


def _is_in(version: Version, within: Range, order: type[Version]) -> bool:
    is_in = False
    for event in sorted(within.events, key=lambda event: _begin(event, order)):
        if event.introduced is not None:
            is_in = is_in or event.introduced == "0" or version >= order(event.introduced)
        elif event.fixed is not None:
            is_in = is_in and version < order(event.fixed)
        elif event.last_affected is not None:
            is_in = is_in and version <= order(event.last_affected)
    return is_in


def _begin(event: Event, order: type[Version]) -> tuple[bool, Version, int]:
    """The order of events; at one version a range ends by `fixed` before another begins."""
    named = event.introduced or event.fixed or event.last_affected or "0"
    place = 1 if event.introduced is not None else 0 if event.fixed is not None else 2
    return (named != "0", order(named), place)


def _fixed(affected: Affected) -> tuple[str, ...]:
    return tuple(
        event.fixed
        for each in affected.ranges
        if each.type != "GIT"
        for event in each.events
        if event.fixed is not None
    )


def main(arguments: list[str]) -> int:
    """Print what is known, a line each, and how much was looked at."""
    if not arguments or not arguments[0]:
        print(__doc__, file=sys.stderr)  # noqa: T201
        return 2
    try:
        held = [*locked(), *(each for bill in arguments[1:] for each in billed(Path(bill)))]
        known = list(advisories(Path(arguments[0])))
        if not known:
            raise CannotAudit(f"{arguments[0]} holds no advisories")
        found = lines(audit(known, held))
    except CannotAudit as error:
        print(f"Nothing was audited: {error}", file=sys.stderr)  # noqa: T201
        return 2
    for line in found:
        print(line)  # noqa: T201
    vulnerabilities = "vulnerability" if len(found) == 1 else "vulnerabilities"
    packages = len({each.purl for each in held})
    scope = "" if arguments[1:] else "; no bill of materials was given (BILLS=...): no images"
    print(f"{len(found)} known {vulnerabilities} of {packages} packages{scope}")  # noqa: T201
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
