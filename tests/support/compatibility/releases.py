"""Releases whose interfaces and files are kept in `tests/compatibility`, one folder each."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml
from packaging.version import Version
from pydantic import JsonValue
from support.compatibility.interfaces import changes

FOLDER = Path(__file__).parents[2] / "compatibility"
ACCEPTED = "accepted.yaml"


@dataclass(frozen=True)
class KeptRelease:
    folder: Path

    @property
    def version(self) -> str:
        """Its number, after which the folder is named."""
        return self.folder.name

    def interfaces(self) -> dict[str, JsonValue]:
        """What users of it rely on, by file."""
        root = self.folder / "interfaces"
        return {
            path.relative_to(root).as_posix(): json.loads(path.read_text("utf-8"))
            for path in sorted(root.rglob("*.json"))
        }

    def accepted(self) -> dict[str, str]:
        """Breaking changes that were decided since, each with its reason."""
        path = self.folder / ACCEPTED
        return yaml.safe_load(path.read_text("utf-8")) if path.exists() else {}

    def freeze(self, found: Mapping[str, JsonValue]) -> None:
        """Keep interfaces as those of this release."""
        root = self.folder / "interfaces"
        for path in root.rglob("*.json"):
            path.unlink()
        for name, value in found.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(_text(value), "utf-8")

    def document(self, name: str) -> Path:
        """A document as this release wrote it: `bundle.json`, `report.json`."""
        return self.folder / "documents" / name

    def drift(self, found: Mapping[str, JsonValue]) -> list[str]:
        """Files that would be written anew."""
        kept = self.interfaces()
        return [name for name in sorted(kept.keys() | found) if kept.get(name) != found.get(name)]


def _text(value: JsonValue) -> str:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def kept_releases(folder: Path = FOLDER) -> list[KeptRelease]:
    """All that are kept, the newest last."""
    found = [path for path in folder.iterdir() if (path / "interfaces").is_dir()]
    return [KeptRelease(path) for path in sorted(found, key=lambda path: Version(path.name))]


def breaking(release: KeptRelease, found: Mapping[str, JsonValue]) -> Iterator[str]:
    """What breaks users of a release and nobody accepted; and what was accepted in vain."""
    accepted = release.accepted()
    broken = list(changes(release.interfaces(), found))
    yield from (each for each in broken if each not in accepted)
    for each in sorted(accepted.keys() - set(broken)):
        yield f"{each}: accepted in {ACCEPTED}, but nothing of the kind changed; remove the line"
