"""One output for each way in which a source of each kind fails, with a marker as its credential."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from support.declared.declarations import Raw, document
from support.hostile.canaries import canary
from support.servers.databases import in_duckdb, in_h2, in_mariadb, in_postgres, make_h2
from support.servers.mariadbserver import MariaDb
from support.servers.ports import free_port
from support.servers.postgresserver import Postgres
from support.servers.s3servers import ACCESS_KEY, BUCKET
from support.weaving.loom import START

from snaploom.models.allowances import ALLOW_VARIABLE
from snaploom.models.datasource import Credentials
from snaploom.planning.secretvariables import user_and_password

RIGHT, WRONG, SHARED = canary("right"), canary("wrong"), canary("secret")
BY_ENVIRONMENT = {"fromEnvironment": {"userVariable": "DB_USER", "passwordVariable": "DB_PASSWORD"}}
BY_WRONG = {"fromEnvironment": {"userVariable": "DB_USER", "passwordVariable": "DB_WRONG"}}
BY_SECRET = {"fromSecret": {"name": "shop", "userKey": "login", "passwordKey": "word"}}
BY_PLAINTEXT = {"fromPlaintext": {"user": "keeper", "password": WRONG}}


@dataclass
class FailingSources:
    """Declarations in a folder, and the environment that their runs need."""

    place: Path
    postgres: Postgres
    mariadb: MariaDb
    s3: str
    lineage: str
    specs: dict[str, Raw] = field(default_factory=dict)
    indexes: list[Raw] = field(default_factory=list)

    def prepare(self) -> None:
        """Make databases and files, those that are sound and those that are not."""
        self.postgres.run(
            f"""DROP TABLE IF EXISTS kept; DROP ROLE IF EXISTS keeper;
                CREATE ROLE keeper LOGIN PASSWORD '{RIGHT}';
                CREATE TABLE kept AS SELECT id::bigint, 'n' || id AS note, id + 0.5 AS half
                  FROM generate_series(1, 5) id;
                GRANT SELECT ON kept TO keeper"""
        )
        self.mariadb.run(
            f"""DROP USER IF EXISTS keeper; CREATE USER keeper IDENTIFIED BY '{SHARED}';
                GRANT ALL ON shop.* TO keeper; DROP TABLE IF EXISTS kept;
                CREATE TABLE kept AS SELECT 1 AS id, 'n' AS note, 1.5 AS half"""
        )
        h2 = self.place / "room.h2"
        make_h2(
            h2, f"CREATE TABLE KEPT AS SELECT 1 AS ID; CREATE USER KEEPER PASSWORD '{RIGHT}' ADMIN"
        )
        self._databases()
        self._files()
        self.indexes = [self._index("refused"), self._index("unreachable")]

    def _databases(self) -> None:
        h2 = self.place / "room.h2"
        makers: dict[str, tuple[Any, Any, Raw]] = {
            "postgres": (in_postgres, self.postgres, BY_ENVIRONMENT),
            "mariadb": (in_mariadb, self.mariadb, BY_SECRET),
            "h2": (in_h2, h2, BY_ENVIRONMENT),
        }
        whole = [{"name": "half", "dataType": {"long": {}}}]
        for kind, (make, where, login) in makers.items():
            table = "KEPT" if kind == "h2" else "kept"
            self.specs[f"{kind}-sound"] = make(where, table, credentials=login)
            self.specs[f"{kind}-wrong-password"] = make(where, table, credentials=BY_WRONG)
            self.specs[f"{kind}-plaintext"] = make(where, table, credentials=BY_PLAINTEXT)
            self.specs[f"{kind}-missing-table"] = make(where, "nowhere", credentials=login)
            self.specs[f"{kind}-broken-query"] = make(
                where, table, credentials=login, tablePredicates=["nothing = 1"]
            )
            if kind != "h2":
                self.specs[f"{kind}-unreachable"] = make(
                    where, table, credentials=login, port=free_port()
                )
                self.specs[f"{kind}-unread-value"] = make(
                    where, table, credentials=login, schemaFields=whole
                )
        self.specs["h2-unreachable"] = in_h2(self.place / "no", "KEPT", credentials=BY_ENVIRONMENT)
        self.specs["duckdb-wrong-password"] = in_duckdb(
            self.place / "no.duckdb", "kept", credentials=BY_WRONG
        )

    def _files(self) -> None:
        (self.place / "bad.parquet").write_text("this is no Parquet file")
        pq.write_table(pa.table({"id": [1]}), self.place / "sound.parquet")
        for name, data_format, uri in (
            ("files-bad", "parquet", self.place / "bad.parquet"),
            ("files-missing", "parquet", self.place / "nowhere" / "x.parquet"),
            ("s3-refused", "parquet", f"s3a://{BUCKET}/kept/*.parquet"),
            ("s3-missing-bucket", "json", "s3a://nowhere-at-all/kept/*"),
            ("s3-output", "parquet", self.place / "sound.parquet"),
        ):
            self.specs[name] = {
                "hdfsLike": {
                    "format": data_format, "sourceUriGlobs": [str(uri)],
                    "snapshot": {"fromReadTime": {}},
                }
            }  # fmt: skip
        query = "SELECT CAST(raise_error(note) AS STRING) AS x, id FROM c"
        self.specs["query-broken"] = {
            "simpleVirtual": {"dataSource": "postgres-sound", "alias": "c", "dataQuery": query}
        }
        query = "SELECT nothing FROM c"
        self.specs["query-unresolved"] = {
            "simpleVirtual": {"dataSource": "postgres-sound", "alias": "c", "dataQuery": query}
        }

    def _index(self, how: str) -> Raw:
        store = {
            "scheme": "http", "host": "127.0.0.1",
            "port": int(self.lineage.rsplit(":", 1)[1]) if how == "refused" else free_port(),
            "auth": "BASIC", "credentials": BY_WRONG,
        }  # fmt: skip
        spec = {
            "target": {"path": {"uri": f"file://{self.place}/sound.parquet", "format": "parquet"}},
            "indexes": [{"type": "MIN_MAX", "column": "id"}],
            "store": {"openSearch": store},
        }
        return document("SkippingIndex", f"search-{how}", spec)

    def _output(self, name: str) -> Raw:
        interval = {"intervalStartDate": {**START, "year": 2026}, "intervalLength": {"year": 1}}
        folder = (
            f"s3a://{BUCKET}/out/" if name == "s3-output" else f"file://{self.place}/out/{name}/"
        )
        root = {"dataSource": name, "snapshotFilter": {"fromInterval": interval}}
        return document(
            "OutputDataset",
            name,
            {
                "dataModel": {"rootDataSource": root},
                "outputFolder": {"folderUri": folder, "snapshotFormat": {"hivePartitioned": {}}},
            },
        )

    def save(self) -> Path:
        """The declarations as one file."""
        sources = [document("DataSource", name, spec) for name, spec in self.specs.items()]
        outputs = [self._output(name) for name in self.specs]
        path = self.place / "model.yaml"
        path.write_text(yaml.safe_dump_all([*sources, *outputs, *self.indexes]), "utf-8")
        return path

    @property
    def environment(self) -> dict[str, str]:
        """Every credential that is not in the declarations."""
        keys = user_and_password(Credentials.model_validate(BY_SECRET))
        assert keys is not None
        user, password = keys
        return {
            "DB_USER": "keeper", "DB_PASSWORD": RIGHT, "DB_WRONG": WRONG,
            user.variable: "keeper", password.variable: SHARED,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": canary("s3"),
            "AWS_ENDPOINT_URL": self.s3, "AWS_REGION": "us-east-1",
            "SNAPLOOM_LINEAGE_URL": self.lineage, "SNAPLOOM_LINEAGE_API_KEY": canary("lineage"),
            "VAULT_TOKEN": canary("vault"),
            ALLOW_VARIABLE: json.dumps({"formats": ["h2"], "endpoints": ["127.0.0.1"]}),
        }  # fmt: skip
