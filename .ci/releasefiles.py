"""Files of a release: archives that depend on nothing but their content, notes, and the provenance.

    python .ci/releasefiles.py pack FOLDER PREFIX ARCHIVE
    python .ci/releasefiles.py index LAYOUT REFERENCE
    python .ci/releasefiles.py notes CHANGELOG VERSION
    python .ci/releasefiles.py provenance ARTIFACTS SOURCE COMMIT PART BASE

`.ci/release` calls it. SOURCE_DATE_EPOCH is the time of everything, in seconds.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import tarfile
from contextlib import ExitStack
from gzip import GzipFile
from pathlib import Path, PurePosixPath
from typing import IO

BUILD_TYPE = "urn:snaploom:make-release:1"
"""Names how a release is built: by `.ci/release` of its commit."""
BUILDER = "urn:snaploom:builder:unattested"
"""Names who built: the caller of `make release`, whom nobody has attested."""
MATERIALS = (
    ".ci/locks/*.txt",
    "tests/support/components/*/SHA256SUMS",
    "tests/support/components/*/go.sum",
)
"""Lists of what is fetched for a build, each with the sums of all of it."""
_INDEX = "application/vnd.oci.image.index.v1+json"
_HEADING = re.compile(r"^## (?P<version>\S+)(?: - (?P<date>\d{4}-\d\d-\d\d))?$", re.MULTILINE)


class Unfit(Exception):
    """What is given cannot be released; the message states why."""


def pack(folder: Path, prefix: PurePosixPath, archive: Path, moment: int) -> None:
    """Pack a folder; compressed where the name of the archive ends in gz.

    Order, times, owners and modes do not depend on the machine.

    Args:
        folder: what to pack.
        prefix: folder inside of the archive.
        archive: the file to write.
        moment: the time of all files, in seconds since 1970.
    """
    with ExitStack() as stack:
        stream: IO[bytes] = stack.enter_context(archive.open("wb"))
        if archive.suffix in (".gz", ".tgz"):
            stream = stack.enter_context(GzipFile("", "wb", fileobj=stream, mtime=0))
        tar = stack.enter_context(tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT))
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                _add(tar, path, (prefix / path.relative_to(folder)).as_posix(), moment)


def _add(tar: tarfile.TarFile, path: Path, name: str, moment: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = path.stat().st_size
    entry.mtime = moment
    entry.mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
    with path.open("rb") as opened:
        tar.addfile(entry, opened)


def index(layout: Path, reference: str) -> None:
    """Make the images of a folder (OCI layout), one for each architecture, a single one of all."""
    top = layout / "index.json"
    images = []
    for found in json.loads(top.read_text("utf-8"))["manifests"]:
        config = json.loads(_blob(layout, found["digest"]).read_text("utf-8"))["config"]
        platform = json.loads(_blob(layout, config["digest"]).read_text("utf-8"))
        kept = {key: found[key] for key in ("mediaType", "digest", "size")}
        images.append({**kept, "platform": {key: platform[key] for key in ("architecture", "os")}})
    images.sort(key=lambda image: str(image["platform"]["architecture"]))
    whole = {"schemaVersion": 2, "mediaType": _INDEX, "manifests": images}
    text = json.dumps(whole).encode()
    digest = f"sha256:{hashlib.sha256(text).hexdigest()}"
    _blob(layout, digest).write_bytes(text)
    named = {"org.opencontainers.image.ref.name": reference}
    described = {"mediaType": _INDEX, "digest": digest, "size": len(text), "annotations": named}
    top.write_text(json.dumps({"schemaVersion": 2, "manifests": [described]}), "utf-8")


def _blob(layout: Path, digest: str) -> Path:
    return layout / "blobs" / digest.replace(":", "/")


def notes(changelog: str, version: str) -> str:
    """The section of the changelog about a version; about what is unreleased for one in work.

    Raises:
        Unfit: there is no such section, or it has no date.
    """
    is_final = re.fullmatch(r"[\d.]+", version) is not None
    wanted = version if is_final else "Unreleased"
    headings = list(_HEADING.finditer(changelog))
    for number, heading in enumerate(headings):
        if heading["version"] != wanted:
            continue
        if is_final and not heading["date"]:
            raise Unfit(f"CHANGELOG.md: `## {wanted}` has no date: `## {wanted} - 2026-01-31`")
        following = headings[number + 1 :]
        end = following[0].start() if following else len(changelog)
        body = changelog[heading.end() : end].strip()
        return f"# Snaploom {version}\n\n{body}\n"
    found = ", ".join(heading["version"] for heading in headings) or "none"
    raise Unfit(f"CHANGELOG.md has no section `## {wanted}`; found: {found}. Write it.")


def provenance(
    artifacts: Path, source: Path, commit: str, part: str, base: str
) -> dict[str, object]:
    """How files came about, as in-toto's statement with SLSA's provenance, version 1; unsigned.

    Without times and without the machine's name: the same commit gives the same statement.

    Args:
        artifacts: folder of the files it is about.
        source: the files that they were built from.
        commit: SHA-1 of the commit of these.
        part: what was built of a release.
        base: image that the images stand on; empty for one of the machine's own Debian.
    """
    lists = sorted(path for pattern in MATERIALS for path in source.glob(pattern))
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [
            {"name": path.name, "digest": {"sha256": sum_of(path)}}
            for path in sorted(artifacts.iterdir())
            if path.name not in ("SHA256SUMS", "provenance.intoto.json")
        ],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {"part": part, "base": base},
                "internalParameters": {"SOURCE_DATE_EPOCH": os.environ["SOURCE_DATE_EPOCH"]},
                "resolvedDependencies": [
                    {"name": "source", "digest": {"gitCommit": commit}},
                    *(
                        {
                            "name": path.relative_to(source).as_posix(),
                            "digest": {"sha256": sum_of(path)},
                        }
                        for path in lists
                    ),
                ],
            },
            "runDetails": {"builder": {"id": BUILDER}},
        },
    }


def sum_of(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def main(arguments: list[str]) -> int:
    """Run one of the commands; returns the exit code."""
    match arguments:
        case ["pack", folder, prefix, archive]:
            moment = int(os.environ["SOURCE_DATE_EPOCH"])
            pack(Path(folder), PurePosixPath(prefix), Path(archive), moment)
        case ["index", layout, reference]:
            index(Path(layout), reference)
        case ["notes", changelog, version]:
            sys.stdout.write(notes(Path(changelog).read_text("utf-8"), version))
        case ["provenance", artifacts, source, commit, part, base]:
            statement = provenance(Path(artifacts), Path(source), commit, part, base)
            sys.stdout.write(json.dumps(statement, indent=2) + "\n")
        case _:
            print(__doc__, file=sys.stderr)  # noqa: T201
            return 2
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Unfit as unfit:
        print(unfit, file=sys.stderr)  # noqa: T201
        sys.exit(1)
