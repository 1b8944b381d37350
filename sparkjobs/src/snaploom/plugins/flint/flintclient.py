"""Flint's client as a small Python API: indexes and their metadata, readers, writers.

```python
client = FlintClient("localhost", 9200)
client.create_index("alb_logs_skipping_index", metadata)
with client.create_writer("t001") as writer:
    writer.write(lines)
for document in client.create_reader("t001"):
    ...
```
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Self

from snaploom.errors import IndexAlreadyExists, StatementInvalid
from snaploom.plugins.flint.client import OpenSearchClient
from snaploom.plugins.flint.documents import EVERYTHING, read_hits
from snaploom.plugins.flint.metadata import FlintMetadata, parse_metadata, render_metadata
from snaploom.plugins.flint.options import parse_options
from snaploom.plugins.flint.segments import Action, Write, write_all


class FlintReader:
    """Documents of an index, one after the other, each as JSON text."""

    def __init__(self, documents: Iterator[str]) -> None:
        self._documents = documents
        self._next: str | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> str:
        if not self.has_next():
            raise StopIteration
        found, self._next = self._next, None
        return str(found)

    def has_next(self) -> bool:
        """Whether there is one more."""
        if self._next is None:
            self._next = next(self._documents, None)
        return self._next is not None

    def next(self) -> str:
        """Return the next document; StopIteration when there is none."""
        return self.__next__()

    def close(self) -> None:
        """Stop reading; nothing more comes."""
        self._documents = iter(())
        self._next = None


class FlintWriter:
    """Takes lines of the bulk format in pieces of any size; whole ones are sent by `flush`."""

    def __init__(self, client: OpenSearchClient, index: str) -> None:
        self._client = client
        self._index = index
        self._text = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        if failure is None:
            self.close()

    def write(self, text: str) -> None:
        """Take text; newlines end lines, an action comes before its document."""
        self._text += text

    def flush(self) -> None:
        """Send all complete lines.

        Raises:
            StatementInvalid: it is not the bulk format; nothing is sent.
            IndexStoreFailed: OpenSearch refused a document.
        """
        writes = parse_bulk(self._text)
        self._text = ""
        policy = self._client.options.refresh_policy
        for _ in write_all(self._client, self._index, writes, policy):
            pass  # a document that is there already stays, as with Flint

    def close(self) -> None:
        """Send the rest."""
        self.flush()


class FlintClient:
    """A connection for those who know Flint; options as of the data source `flint`."""

    def __init__(self, host: str = "localhost", port: int = 9200, **options: str) -> None:
        """Connect on first use; options by name, `_` for `.`; port -1 is the protocol's own."""
        named = {_option_name(name): value for name, value in options.items()}
        self._client = OpenSearchClient(parse_options({"host": host, "port": str(port), **named}))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()

    def create_index(
        self,
        name: str,
        metadata: FlintMetadata,
        properties: Mapping[str, object] | None = None,
    ) -> None:
        """Create an index with metadata and mapped fields; `IndexAlreadyExists` if it exists."""
        mappings = {"_meta": render_metadata(metadata), "properties": dict(properties or {})}
        if not self._client.create_index(name, mappings):
            raise IndexAlreadyExists(
                f"{self._client.options.uri} has an index {name} already",
                expected="no index of this name",
                hint="choose another name, or drop the index that has it",
            )

    def exists(self, name: str) -> bool:
        """Whether there is an index of that name."""
        return self._client.exists(name)

    def get_index_metadata(self, name: str) -> FlintMetadata:
        """Metadata of an index, in either form.

        Raises:
            IndexNotFound: there is none.
            IndexUnreadable: its metadata are not Flint's.
        """
        return parse_metadata(self._client.mapping(name).get("_meta", {}))

    def delete_index(self, name: str) -> bool:
        """Delete an index; False when there was none."""
        return self._client.delete_index(name)

    def create_reader(self, name: str, query: str | None = None) -> FlintReader:
        """Read the documents that match a query (JSON of OpenSearch's language), or all."""
        wanted: Mapping[str, object] = json.loads(query) if query else EVERYTHING
        hits = read_hits(self._client, name, wanted)
        return FlintReader(json.dumps(hit.source) for hit in hits)

    def create_writer(self, name: str) -> FlintWriter:
        """Write documents."""
        return FlintWriter(self._client, name)


def parse_bulk(text: str) -> list[Write]:
    """Parse the bulk format; `StatementInvalid` names the wrong line."""
    lines = iter(enumerate(text.splitlines(), start=1))
    writes = []
    for number, line in lines:
        if not line.strip():
            continue
        action, target = _action(number, line)
        source: dict[str, Any] | None = None
        if action is not Action.DELETE:
            place, document = next(lines, (number + 1, ""))
            source = _object(place, document)
            source = source.get("doc", source) if action is Action.UPDATE else source
        document_id = target.get("_id")
        writes.append(Write(action, source, None if document_id is None else str(document_id)))
    return writes


def _action(number: int, line: str) -> tuple[Action, dict[str, Any]]:
    parsed = _object(number, line)
    if len(parsed) != 1 or next(iter(parsed)) not in set(Action):
        raise _wrong(number, line)
    ((name, target),) = parsed.items()
    if not isinstance(target, dict):
        raise _wrong(number, line)
    return Action(name), target


def _object(number: int, line: str) -> dict[str, Any]:
    try:
        parsed = json.loads(line)
    except ValueError:
        raise _wrong(number, line) from None
    if not isinstance(parsed, dict):
        raise _wrong(number, line)
    return parsed


def _wrong(number: int, line: str) -> StatementInvalid:
    return StatementInvalid(
        f"line {number} is not of the bulk format",
        found=line[:80],
        expected='an action such as {"create":{}}, then the document, a line each',
        hint="send a line of the action before each document",
    )


def _option_name(name: str) -> str:
    for prefix in ("read_", "write_", "ignore_"):
        if name.startswith(prefix):
            return f"{prefix[:-1]}.{name.removeprefix(prefix)}"
    return name
