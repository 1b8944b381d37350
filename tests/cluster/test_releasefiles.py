"""Archives depend on content only; notes are the changelog's section."""

import json
import os
import tarfile
from hashlib import sha256
from pathlib import Path, PurePosixPath

import pytest
from support.hostile.supply import script

pytestmark = pytest.mark.release
FILES = script("releasefiles")
CHANGELOG = """# Changelog

## Unreleased

- soon

## 0.2.0 - 2026-02-03

### Added

- much

## 0.1.0

- little
"""


def packed(folder: Path, archive: Path) -> bytes:
    FILES.pack(folder, PurePosixPath("inside"), archive, 1_700_000_000)
    return archive.read_bytes()


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.tgz"])
def test_archive_of_the_same_files_is_the_same(name: str, tmp_path: Path) -> None:
    sums = set()
    for place, names in (("one", "ab"), ("two", "ba")):
        for each in names:
            path = tmp_path / place / each / "file"
            path.parent.mkdir(parents=True)
            path.write_text(each)
            os.utime(path, (1, len(sums) + 2))
        (tmp_path / f"of-{place}").mkdir()
        sums.add(packed(tmp_path / place, tmp_path / f"of-{place}" / name))
    assert len(sums) == 1


def test_archive_has_modes_and_times_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    for name, mode in (("plain", 0o600), ("program", 0o700)):
        (tmp_path / "files" / name).write_text("")
        (tmp_path / "files" / name).chmod(mode)
    packed(tmp_path / "files", tmp_path / "a.tar.gz")
    with tarfile.open(tmp_path / "a.tar.gz") as opened:
        found = [(e.name, e.mode, e.mtime, e.uid, e.uname) for e in opened.getmembers()]
    assert found == [
        ("inside/plain", 0o644, 1_700_000_000, 0, ""),
        ("inside/program", 0o755, 1_700_000_000, 0, ""),
    ]


def test_notes_are_the_section_of_the_version() -> None:
    assert FILES.notes(CHANGELOG, "0.2.0") == "# Snaploom 0.2.0\n\n### Added\n\n- much\n"


def test_notes_of_a_version_in_work_are_what_is_unreleased() -> None:
    assert FILES.notes(CHANGELOG, "0.3.0.dev0") == "# Snaploom 0.3.0.dev0\n\n- soon\n"


@pytest.mark.parametrize(
    ("version", "message"), [("0.3.0", "no section `## 0.3.0`"), ("0.1.0", "has no date")]
)
def test_version_without_a_dated_section_is_not_released(version: str, message: str) -> None:
    with pytest.raises(FILES.Unfit, match=message):
        FILES.notes(CHANGELOG, version)


def test_images_of_two_architectures_become_one_that_names_both(tmp_path: Path) -> None:
    def stored(content: object) -> dict[str, object]:
        text = json.dumps(content).encode()
        digest = sha256(text).hexdigest()
        (tmp_path / "blobs/sha256" / digest).write_bytes(text)
        return {"mediaType": "made", "digest": f"sha256:{digest}", "size": len(text)}

    (tmp_path / "blobs/sha256").mkdir(parents=True)
    platforms = [{"architecture": each, "os": "linux"} for each in ("arm64", "amd64")]
    images = [stored({"config": stored(each)}) for each in platforms]
    (tmp_path / "index.json").write_text(json.dumps({"manifests": images}))
    FILES.index(tmp_path, "made:1")
    (whole,) = json.loads((tmp_path / "index.json").read_text())["manifests"]
    assert whole["annotations"] == {"org.opencontainers.image.ref.name": "made:1"}
    listed = json.loads((tmp_path / "blobs" / whole["digest"].replace(":", "/")).read_text())
    expected = [image | {"platform": each} for image, each in zip(images, platforms, strict=True)]
    assert listed["manifests"] == expected[::-1]
