"""Tables of Iceberg and Delta, as a listing shows them: folders with a history of their own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from snaploom.discovery.foundfiles import FoundFile

_DELTA, _ICEBERG = "/_delta_log/", "/metadata/"
_OURS = "snaploom.json"


@dataclass(frozen=True)
class TableFolder:
    """A table with files of its own."""

    name: str
    uri: str
    """Of its folder, without a final `/`."""
    data_format: str
    """`iceberg` or `delta`."""
    files: tuple[FoundFile, ...]

    def below(self, folder: str) -> dict[str, FoundFile]:
        """Its files below one of its folders, by their path from there on."""
        start = f"{self.uri}/{folder}"
        return {
            file.uri.removeprefix(start): file for file in self.files if file.uri.startswith(start)
        }


def published_folders(files: Iterable[FoundFile]) -> tuple[str, ...]:
    """The folders that Snaploom itself has published into, each with a final `/`."""
    return tuple(
        sorted({f.uri.removesuffix(_OURS) for f in files if f"/{f.key}".endswith(f"/{_OURS}")})
    )


def table_folders(files: Iterable[FoundFile]) -> tuple[TableFolder, ...]:
    """The tables that files belong to, by their place."""
    everything = list(files)
    published = published_folders(everything)
    listed = [file for file in everything if not file.uri.startswith(published)]
    formats: dict[str, str] = {}
    for file in listed:
        folder, _, rest = file.uri.partition(_DELTA)
        if rest.endswith((".json", ".parquet")):
            formats[folder] = "delta"
        folder, _, rest = file.uri.rpartition(_ICEBERG)
        if folder and rest.endswith(".metadata.json"):
            formats.setdefault(folder, "iceberg")
    outer = [uri for uri in formats if not any(uri.startswith(f"{other}/") for other in formats)]
    return tuple(
        TableFolder(
            name=uri.rpartition("/")[2],
            uri=uri,
            data_format=formats[uri],
            files=tuple(file for file in listed if file.uri.startswith(f"{uri}/")),
        )
        for uri in sorted(outer)
    )
