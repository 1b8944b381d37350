"""Events of OpenLineage as others take them: read strictly, and received by a real server.

The classes of `openlineage-python` are generated from the specification's JSON schemas, by its own
authors. So an event is read into them field by field: none may be missing, unknown, or of another
type, and every facet must be of the class that its `_schemaURL` names.
"""

import json
import re
import threading
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, ClassVar, Union, get_args, get_origin, get_type_hints

import attr
from openlineage.client import generated
from openlineage.client.generated.base import BaseFacet, RunEvent

Raw = dict[str, Any]


@cache
def facet_classes() -> dict[str, type[BaseFacet]]:
    """Every facet of the specification, by the address of its schema."""
    for module in iter_modules(generated.__path__):
        import_module(f"{generated.__name__}.{module.name}")
    found: list[type[BaseFacet]] = [BaseFacet]
    for one in found:  # grows while it is walked
        found.extend(one.__subclasses__())
    return {one._get_schema(): one for one in found}


def facet_key(facet: type[BaseFacet]) -> str:
    """The key of a facet: the name of its class without its end, but for two older ones."""
    older = {
        "ProcessingEngineRunFacet": "processing_engine",
        "DatasetVersionDatasetFacet": "version",
    }
    name = re.sub(r"(OutputDataset|InputDataset|Dataset|Run|Job)Facet$", "", facet.__name__)
    return older.get(facet.__name__, name[0].lower() + name[1:])


def read_event(document: Raw) -> None:
    """Read an event of a run; fails where it violates the specification."""
    _read(document, RunEvent, "event")
    assert document["schemaURL"] == RunEvent._get_schema()


def _read(value: Any, hint: Any, path: str) -> None:
    if get_origin(hint) in (Union, types.UnionType):
        options = [one for one in get_args(hint) if one is not types.NoneType]
        assert value is not None, path
        _read(value, options[0], path)
    elif get_origin(hint) is list:
        assert isinstance(value, list), path
        for number, one in enumerate(value):
            _read(one, get_args(hint)[0], f"{path}[{number}]")
    elif get_origin(hint) is dict:
        assert isinstance(value, dict), path
        for key, one in value.items():
            _read(one, get_args(hint)[1], f"{path}.{key}")
    elif attr.has(hint):
        _read_class(value, hint, path)
    elif issubclass(hint, Enum):
        assert value in {one.value for one in hint}, path
    else:
        assert type(value) is hint, f"{path}: {value!r} is no {hint.__name__}"


def _read_class(value: Any, class_: type, path: str) -> None:
    assert isinstance(value, dict), path
    if issubclass(class_, BaseFacet):
        named = facet_classes()[value["_schemaURL"]]
        assert issubclass(named, class_), f"{path}: {named.__name__} is no {class_.__name__}"
        class_ = named
        assert path.rpartition(".")[2] == facet_key(named), path
    hints = get_type_hints(class_)
    fields = {each.name: each for each in attr.fields(class_)}  # type: ignore[arg-type]
    assert value.keys() <= fields.keys(), f"{path}: {value.keys() - fields.keys()}"
    for name, each in fields.items():
        if name in value:
            _read(value[name], hints[name], f"{path}.{name}")
        else:
            assert each.default is not attr.NOTHING, f"{path}.{name} is missing"


@dataclass
class LineageServer:
    """Requests that a server received."""

    port: int
    status: int = 201
    """What it answers."""
    stuck: threading.Event | None = None
    """Set when it may answer; None for at once."""
    paths: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    events: list[Raw] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def of_job(self, name: str) -> list[Raw]:
        """Events of one job, in the order in which they came."""
        return [event for event in self.events if event["job"]["name"] == name]


@contextmanager
def lineage_server(
    status: int = 201, stuck: threading.Event | None = None
) -> Iterator[LineageServer]:
    """A real server for events.

    Args:
        status: what it answers.
        stuck: set when it may answer; omitted, it does at once.
    """

    class Handler(BaseHTTPRequestHandler):
        received: ClassVar[LineageServer]

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.received.paths.append(self.path)
            self.received.keys.append(self.headers.get("Authorization", ""))
            self.received.events.append(json.loads(body))
            if self.received.stuck is not None:
                self.received.stuck.wait(60)
            self.send_response(self.received.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_request(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Handler.received = LineageServer(server.server_port, status, stuck)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield Handler.received
    finally:
        if stuck is not None:
            stuck.set()
        server.shutdown()
        server.server_close()
        thread.join()
