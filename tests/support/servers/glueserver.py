"""AWS Glue's API for databases and tables, as its reference describes them.

Moto does not compare `VersionId`, by which clients keep what others wrote meanwhile.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from pydantic import JsonValue
from support.servers.awssignature import Account
from support.servers.guardedproxy import Request
from support.servers.s3servers import ACCESS_KEY, SECRET_KEY, S3Server

ACCOUNT = Account(ACCESS_KEY, SECRET_KEY, "us-east-1", "glue")
Document = dict[str, JsonValue]


class Refused(Exception):
    """An error of the service, by its name."""


@dataclass
class GlueCatalog:
    """Databases and tables; each operation is done whole before the next one begins."""

    databases: dict[str, Document] = field(default_factory=dict)
    tables: dict[tuple[str, str], list[Document]] = field(default_factory=dict)
    """By names of database and table: the archived versions, and the newest."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, operation: str, asked: Document) -> Document:
        operations: Mapping[str, Callable[[Document], Document]] = {
            "CreateDatabase": self._create_database,
            "CreateTable": self._create_table,
            "DeleteTable": self._delete_table,
            "GetDatabase": lambda asked: {"Database": self._database(_text(asked, "Name"))},
            "GetDatabases": lambda _: {"DatabaseList": list(self.databases.values())},
            "GetTable": lambda asked: {"Table": self._versions(asked, "Name")[-1]},
            "GetTableVersions": self._table_versions,
            "GetTables": self._tables_of,
            "UpdateTable": self._update_table,
        }
        if operation not in operations:
            raise Refused("UnknownOperationException", operation)
        with self.lock:
            return operations[operation](asked)

    def _database(self, name: str) -> Document:
        if name.lower() not in self.databases:
            raise Refused("EntityNotFoundException", f"Database {name} not found.")
        return self.databases[name.lower()]

    def _versions(self, asked: Document, named: str) -> list[Document]:
        database, table = _text(asked, "DatabaseName").lower(), _text(asked, named).lower()
        self._database(database)
        if (database, table) not in self.tables:
            raise Refused("EntityNotFoundException", f"Table {table} not found.")
        return self.tables[database, table]

    def _create_database(self, asked: Document) -> Document:
        given = _object(asked, "DatabaseInput")
        name = _text(given, "Name").lower()
        if name in self.databases:
            raise Refused("AlreadyExistsException", "Database already exists.")
        self.databases[name] = {**given, "Name": name, "CreateTime": time.time()}
        return {}

    def _create_table(self, asked: Document) -> Document:
        database, given = _text(asked, "DatabaseName").lower(), _object(asked, "TableInput")
        name = _text(given, "Name").lower()
        self._database(database)
        if (database, name) in self.tables:
            raise Refused("AlreadyExistsException", "Table already exists.")
        made = {"DatabaseName": database, "Name": name, "CreateTime": time.time()}
        self.tables[database, name] = [{**given, **made, "VersionId": "0"}]
        return {}

    def _update_table(self, asked: Document) -> Document:
        given = _object(asked, "TableInput")
        versions = self._versions({**given, **asked, "Name": given.get("Name")}, "Name")
        newest = versions[-1]
        if asked.get("VersionId") not in (None, newest["VersionId"]):
            text = "Update table failed due to concurrent modifications."
            raise Refused("ConcurrentModificationException", text)
        kept = {key: newest[key] for key in ("DatabaseName", "Name", "CreateTime")}
        number = str(int(_text(newest, "VersionId")) + 1)
        versions.append({**given, **kept, "UpdateTime": time.time(), "VersionId": number})
        if asked.get("SkipArchive"):
            versions.remove(newest)
        return {}

    def _delete_table(self, asked: Document) -> Document:
        self._versions(asked, "Name")
        del self.tables[_text(asked, "DatabaseName").lower(), _text(asked, "Name").lower()]
        return {}

    def _tables_of(self, asked: Document) -> Document:
        database = _text(asked, "DatabaseName").lower()
        self._database(database)
        return {"TableList": [all_[-1] for key, all_ in self.tables.items() if key[0] == database]}

    def _table_versions(self, asked: Document) -> Document:
        versions = reversed(self._versions(asked, "TableName"))
        return {"TableVersions": [{"Table": v, "VersionId": v["VersionId"]} for v in versions]}


def _text(document: Document, key: str) -> str:
    found = document.get(key)
    if not isinstance(found, str) or not found:
        raise Refused("InvalidInputException", f"{key} is missing")
    return found


def _object(document: Document, key: str) -> Document:
    found = document.get(key)
    if not isinstance(found, dict):
        raise Refused("InvalidInputException", f"{key} is missing")
    return found


@contextmanager
def running_glue() -> Iterator[S3Server]:
    """The service, which answers those who sign with the account of the tests."""
    catalog = GlueCatalog()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, answer = 200, b"{}"
            try:
                if why := ACCOUNT.refuse(Request("POST", self.path, headers, body)):
                    raise Refused("InvalidSignatureException", why)
                service, _, operation = headers["x-amz-target"].partition(".")
                assert service == "AWSGlue"
                answer = json.dumps(catalog.answer(operation, json.loads(body))).encode()
            except Refused as error:
                status, (name, text) = 400, error.args
                answer = json.dumps({"__type": name, "Message": text}).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/x-amz-json-1.1")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield S3Server(f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
