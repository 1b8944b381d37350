"""Facts about each kind of database, and about the jars of its driver and of Comet."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote as percent_encoded

from snaploom.models.datasource import DataSource, IsolationLevel, Jdbc, JdbcDriver

# The jars that `drivers install` knows: tested JDBC drivers, which the image holds, and Comet.


@dataclass(frozen=True)
class DriverJar:
    """The jar of one driver, or of an accelerator."""

    name: str
    """Its name for people; its coordinates where it has none."""
    coordinates: str
    """Group, artifact and version, as Maven writes them."""
    sha256: str

    @property
    def file_name(self) -> str:
        _, artifact, version = self.coordinates.split(":")
        return f"{artifact}-{version}.jar"

    @property
    def group_and_artifact(self) -> str:
        """The coordinates without the version."""
        return self.coordinates.rpartition(":")[0]

    @property
    def is_known(self) -> bool:
        """Whether it is a version of a jar of the list, by its name there."""
        known = KNOWN_JARS.get(self.name)
        return known is not None and known.group_and_artifact == self.group_and_artifact

    @property
    def title(self) -> str:
        """The jar for people: `JDBC driver h2`."""
        return f"{'accelerator' if self.name == COMET_JAR.name else 'JDBC driver'} {self.name}"

    @property
    def is_rightly_named(self) -> bool:
        """Whether nobody can take it for another one: by its name, or by its coordinates."""
        return self.is_known or self.name == self.coordinates

    @property
    def path(self) -> str:
        """Return the path of the jar in a repository of Maven's layout."""
        group, artifact, version = self.coordinates.split(":")
        return f"{group.replace('.', '/')}/{artifact}/{version}/{self.file_name}"


DRIVER_JARS = (
    DriverJar(
        "postgresql",
        "org.postgresql:postgresql:42.7.14",
        "73914527305a40cce504b0d3d90b23caf565136912d607ae8ae7c5895512332c",
    ),
    DriverJar(
        "mariadb",
        "org.mariadb.jdbc:mariadb-java-client:3.5.5",
        "81b9b10dbbd823e5dc9d81bc48435c76d7e92297a8515cfb75bc620917df9baa",
    ),
    DriverJar(
        "mysql",
        "com.mysql:mysql-connector-j:9.4.0",
        "49ed93c8b2bea9cb0929b85a8a28837b191d0f8eac6919fdcef16e36e2cd53b3",
    ),
    DriverJar(
        "h2",
        "com.h2database:h2:2.5.252",
        "90b11dc413da82070ef15fc943282c1408e6ffd34fa68998335fea8603b5ff20",
    ),
    DriverJar(
        "duckdb",
        "org.duckdb:duckdb_jdbc:2.0.0.1",
        "6cb8b0e0fc51b2e45aead2d2c1e1fd09dd10267db2966e69aaab0de67319f826",
    ),
)
"""Each is called like the database that it reads, as `spec.jdbc.driver` names it."""
DRIVER_JAR_BY_NAME = {jar.name: jar for jar in DRIVER_JARS}
COMET_JAR = DriverJar(
    "comet",
    "org.apache.datafusion:comet-spark-spark4.1_2.13:1.2.0",
    "5055c43dca9e8cce83c33b1ff25646d1436c94698ca48beb3475bf60843b8d37",
)
"""Comet is built for one minor version of Spark, which the name of its artifact has."""
COMET_SPARK = COMET_JAR.coordinates.partition("comet-spark-spark")[2].partition("_")[0]
"""This minor version."""
KNOWN_JARS = {**DRIVER_JAR_BY_NAME, COMET_JAR.name: COMET_JAR}
"""All jars that are fetched by a name of ours."""


def jars_for_source(source: DataSource, held: Mapping[str, DriverJar]) -> tuple[DriverJar, ...]:
    """Those of some jars that a source needs; none for a source in no database.

    A jar that has no name of ours serves sources that name a `driverClass`, and those of databases
    that are not in the list.
    """
    jdbc = source.spec.jdbc
    if jdbc is None:
        return ()
    name = _jar_name_of(jdbc)
    if name is not None and name in held:
        return (held[name],)
    if name is not None and jdbc.driver_class is None:
        return ()
    return tuple(jar for jar in held.values() if jar.name not in KNOWN_JARS)


def _jar_name_of(jdbc: Jdbc) -> str | None:
    wanted = jdbc.driver_class
    for driver, database in DATABASES.items():
        is_meant = driver is jdbc.driver if wanted is None else wanted in database.driver_classes
        if is_meant and driver.value.lower() in DRIVER_JAR_BY_NAME:
            return driver.value.lower()
    return None


def driver_hint(driver_class: str) -> str:
    """Return a hint for a class of a driver that Spark does not have."""
    kinds = (each for each, known in DATABASES.items() if driver_class in known.driver_classes)
    name = next((each.value.lower() for each in kinds), "")
    if name in DRIVER_JAR_BY_NAME:
        command = f"snaploom drivers install {name}"
    elif name:
        command = "snaploom drivers install GROUP:ARTIFACT:VERSION --unlisted"
    else:
        return f"correct driverClass, or add the jar that has {driver_class} to Spark's jars"
    return (
        f"on a laptop run `{command}` in the folder of the declarations, and run again; in a "
        "cluster add the jar to the image; or correct driverClass"
    )


# Facts about each kind of database: address, names, literals, and settings that a source may have.

HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|[0-9A-Fa-f]*:[0-9A-Fa-f:.]*")
"""A name or an address: nothing that ends one part of a URL and begins another."""
_SERVICE = re.compile(r"[A-Za-z0-9_.$#-]+")
_NOT_DECODED = re.compile(r"[^/?#&%\x00-\x1f]+")
"""A name that stands in a URL as it is, for a driver that takes `%20` for three characters."""
_FILE = re.compile(r"(?:/(?!\.\.(?:/|$))[^/;?:\x00-\x1f]*)+")
"""An absolute path: no scheme of the driver's own in front, no options behind, and no way up; so
that the file is the same in every working directory and with every home directory."""
H2_FILES = "h2"
"""Entry of the list `formats` that lets files of H2 be opened."""

_STANDARD = "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {level}"
_OF_SESSION = "SET SESSION TRANSACTION ISOLATION LEVEL {level}"
_READ_ONLY = "READ ONLY"
_READ_ONLY_SESSION = f"SET SESSION TRANSACTION {_READ_ONLY}"
_OF_CONNECTION = "SET TRANSACTION ISOLATION LEVEL {level}"

_READ_COMMITTED = IsolationLevel.READ_COMMITTED
_REPEATABLE_READ = IsolationLevel.REPEATABLE_READ
_SERIALIZABLE = IsolationLevel.SERIALIZABLE
_ISOLATION_OF_SESSION = dict.fromkeys(
    (_READ_COMMITTED, _REPEATABLE_READ, _SERIALIZABLE), _OF_SESSION
)
_SNAPSHOT = IsolationLevel.SNAPSHOT


@dataclass(frozen=True)
class Database:
    """One kind of database."""

    driver_class: str
    address: str
    """The URL, with `{host}`, `{port}` and `{database}`."""
    port: int | None
    """Port where none is given; None for a database that is a file."""
    options: frozenset[str]
    dialect: str
    """Its SQL dialect by its name in sqlglot: where texts end, the meaning of conditions."""
    fixed: Mapping[str, str] = field(default_factory=dict)
    is_host_bracketed: bool = True
    """Whether an address of IPv6 stands in brackets."""
    database_option: str | None = None
    """Option that names the database, where the URL does not."""
    database_form: re.Pattern[str] | None = None
    """The form of the name of a database, where it cannot be escaped."""
    quotes: tuple[str, str] = ('"', '"')
    """The first and last character of a quoted name."""
    is_backslash_special: bool = False
    """Whether a backslash escapes the next character in a text."""
    isolation: Mapping[IsolationLevel, str] = field(default_factory=dict)
    """Statement that a session begins with, by isolation level; empty text for none."""
    date: str = "DATE '{text}'"
    local_time: str = "TIMESTAMP '{text}'"
    """Literal of a timestamp without time zone."""
    instant: str = "TIMESTAMP WITH TIME ZONE '{text}+00:00'"
    """Literal of a timestamp with time zone, of a time in UTC."""
    finite: str = "{column}"
    """A column of dates or timestamps in which endless ones, which Spark cannot hold, are NULL."""
    other_classes: tuple[str, ...] = ()
    """Classes that a driver of it may have instead."""
    read_only: str = ""
    """Statement by which a session can write nothing; empty where `fixed` does that, or nothing."""
    fixed_for_files: Mapping[str, str] = field(default_factory=dict)
    """Options that every connection to a file has."""
    is_code: bool = False
    """Whether its files can hold programs that are run when they are opened."""
    read_as: Mapping[str, str] = field(default_factory=dict)
    """Types, by the beginning of their names, that Spark does not know or takes for others, and the
    types as which they are read; `[]` is that of lists."""
    why_not: str = ""
    """Reason why this version does not read it; empty if it does."""

    @property
    def driver_classes(self) -> tuple[str, ...]:
        """Classes of its drivers."""
        return (self.driver_class, *self.other_classes)

    @property
    def is_file(self) -> bool:
        """Whether the database is a file, without host and port."""
        return self.port is None

    def quoted(self, name: str) -> str:
        """A name as it stands in a statement."""
        first, last = self.quotes
        return f"{first}{name.replace(last, last * 2)}{last}"

    def text(self, value: str) -> str:
        """A text as it stands in a statement."""
        escaped = value.replace("'", "''")
        return "'" + (escaped.replace("\\", "\\\\") if self.is_backslash_special else escaped) + "'"


def _options(names: str) -> frozenset[str]:
    return frozenset(names.split())


DATABASES: Mapping[JdbcDriver, Database] = {
    JdbcDriver.POSTGRESQL: Database(
        driver_class="org.postgresql.Driver",
        address="jdbc:postgresql://{host}:{port}/{database}",
        port=5432,
        dialect="postgres",
        options=_options(
            "ApplicationName channelBinding connectTimeout currentSchema gssEncMode "
            "hostRecheckSeconds loadBalanceHosts loginTimeout prepareThreshold socketTimeout "
            "sslcert sslkey sslmode sslrootcert stringtype targetServerType tcpKeepAlive"
        ),
        # `always`: not only in transactions that the driver begins itself.
        fixed={"tcpKeepAlive": "true", "readOnly": "true", "readOnlyMode": "always"},
        isolation={_READ_COMMITTED: "", _REPEATABLE_READ: ""},
        instant="TIMESTAMP WITH TIME ZONE '{text}+00'",
        finite="CASE WHEN isfinite({column}) THEN {column} END",
    ),
    JdbcDriver.MYSQL: Database(
        driver_class="com.mysql.cj.jdbc.Driver",
        other_classes=("com.mysql.jdbc.Driver",),
        read_only=_READ_ONLY_SESSION,
        address="jdbc:mysql://{host}:{port}/{database}",
        port=3306,
        dialect="mysql",
        options=_options(
            "characterEncoding connectTimeout connectionCollation socketTimeout sslMode "
            "tcpKeepAlive tinyInt1isBit tlsVersions useCompression yearIsDateType "
            "zeroDateTimeBehavior"
        ),
        # Without a cursor this driver ignores the fetch size and takes the whole table at once.
        # It takes times of a session for times of Java's zone, unless the option names it.
        fixed={
            "useCursorFetch": "true",
            "connectionTimeZone": "UTC",
            "forceConnectionTimeZoneToSession": "true",
            "allowLoadLocalInfile": "false",
            "allowUrlInLocalInfile": "false",
            "autoDeserialize": "false",
        },
        quotes=("`", "`"),
        is_backslash_special=True,
        isolation=_ISOLATION_OF_SESSION,
        instant="TIMESTAMP '{text}'",
    ),
    JdbcDriver.MARIADB: Database(
        driver_class="org.mariadb.jdbc.Driver",
        read_only=_READ_ONLY_SESSION,
        address="jdbc:mariadb://{host}:{port}/{database}",
        port=3306,
        dialect="mysql",
        options=_options(
            "connectTimeout enabledSslProtocolSuites socketTimeout sslMode tcpKeepAlive "
            "tinyInt1isBit useCompression yearIsDateType"
        ),
        database_form=_NOT_DECODED,
        # Instants are compared as text in the zone of the session, which is UTC therefore.
        fixed={"allowLocalInfile": "false", "timezone": "UTC"},
        quotes=("`", "`"),
        is_backslash_special=True,
        isolation=_ISOLATION_OF_SESSION,
        instant="TIMESTAMP '{text}'",
    ),
    JdbcDriver.SQLSERVER: Database(
        driver_class="com.microsoft.sqlserver.jdbc.SQLServerDriver",
        # As properties: this driver cannot read an address of IPv6 in front of them.
        address="jdbc:sqlserver://;serverName={host};portNumber={port}",
        port=1433,
        dialect="tsql",
        options=_options(
            "applicationIntent applicationName encrypt hostNameInCertificate lockTimeout "
            "loginTimeout multiSubnetFailover packetSize queryTimeout socketTimeout "
            "trustServerCertificate"
        ),
        is_host_bracketed=False,
        database_option="databaseName",
        quotes=("[", "]"),
        isolation={
            _READ_COMMITTED: _OF_CONNECTION,
            _REPEATABLE_READ: _OF_CONNECTION,
            _SERIALIZABLE: _OF_CONNECTION,
            _SNAPSHOT: _OF_CONNECTION,
        },
        date="CAST('{text}' AS date)",
        local_time="CAST('{text}' AS datetime2(7))",
        instant="CAST('{text} +00:00' AS datetimeoffset(7))",
    ),
    JdbcDriver.ORACLE: Database(
        driver_class="oracle.jdbc.OracleDriver",
        other_classes=("oracle.jdbc.driver.OracleDriver",),
        address="jdbc:oracle:thin:@//{host}:{port}/{database}",
        port=1521,
        dialect="oracle",
        options=_options(
            "oracle.jdbc.ReadTimeout oracle.jdbc.timezoneAsRegion oracle.net.CONNECT_TIMEOUT "
            "oracle.net.crypto_checksum_client oracle.net.encryption_client "
            "oracle.net.keepAlive oracle.net.ssl_server_dn_match oracle.net.ssl_version"
        ),
        database_form=_SERVICE,
        isolation={_READ_COMMITTED: ""},
        instant="TIMESTAMP '{text} +00:00'",
    ),
    JdbcDriver.SQLITE: Database(
        driver_class="org.sqlite.JDBC",
        address="jdbc:sqlite:{database}",
        port=None,
        dialect="sqlite",
        options=frozenset(),
        database_form=_FILE,
        why_not="Spark takes its INTEGER for 32 bits, and reads 1099511627776 as 0: declare its "
        "file by hdfsLike with format: sqlite",
    ),
    JdbcDriver.H2: Database(
        driver_class="org.h2.Driver",
        address="jdbc:h2:{database}",
        port=None,
        # sqlglot knows none of H2; its texts and names end as PostgreSQL's do.
        dialect="postgres",
        options=_options("LOCK_TIMEOUT NETWORK_TIMEOUT"),
        # A wrong path is an error instead of a new, empty database.
        fixed={"IFEXISTS": "TRUE"},
        fixed_for_files={"ACCESS_MODE_DATA": "r"},
        # Aliases and triggers are kept as source of Java, and compiled.
        is_code=True,
        database_form=_FILE,
        isolation={
            _READ_COMMITTED: _STANDARD,
            _REPEATABLE_READ: _STANDARD,
            _SERIALIZABLE: _STANDARD,
            _SNAPSHOT: _STANDARD,
        },
    ),
    JdbcDriver.DUCKDB: Database(
        driver_class="org.duckdb.DuckDBDriver",
        address="jdbc:duckdb:{database}",
        port=None,
        dialect="duckdb",
        options=_options("memory_limit threads"),
        # It takes the name of a table for a file, where there is no such table.
        fixed={
            "duckdb.read_only": "true",
            "allow_community_extensions": "false",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "enable_external_access": "false",
            "lock_configuration": "true",
        },
        database_form=_FILE,
        read_as={
            "UBIGINT": "DECIMAL(20, 0)",
            **dict.fromkeys(_options("HUGEINT UHUGEINT"), "DECIMAL(38, 0)"),
            **dict.fromkeys(
                _options("UUID ENUM JSON BIT INTERVAL BIGNUM STRUCT MAP UNION []"), "VARCHAR"
            ),
        },
    ),
}
"""Everything that this version knows about databases."""

_MARIADB, _MYSQL, _BOTH_SCHEMES = "jdbc:mariadb:", "jdbc:mysql:", "permitMysqlScheme"
_H2_SERVER, _H2_FILE, _H2_PORT = "tcp://{host}:{port}/", "file:", 9092


def is_server(declared: Jdbc) -> bool:
    """Whether a source names a host, or a kind of database that needs one."""
    return declared.host is not None or not DATABASES[declared.driver].is_file


def has_host(driver: JdbcDriver) -> bool:
    """Whether there are servers of this kind."""
    return driver is JdbcDriver.H2 or not DATABASES[driver].is_file


def url_of(declared: Jdbc) -> str:
    """The JDBC URL of a source that names its database; no secret is in it.

    Host and database are as validation has found them: they cannot break out of their place.
    """
    database = DATABASES[declared.driver]
    name = declared.database or ""
    if declared.driver is JdbcDriver.H2:
        server = _H2_SERVER.format(host=_host(declared), port=declared.port or _H2_PORT)
        start = _H2_FILE if declared.host is None else server
        return database.address.format(database=start + name)
    encoded = name if database.database_form is not None else percent_encoded(name, safe="")
    host = _host(declared) if database.is_host_bracketed else declared.host
    port = declared.port or database.port
    return database.address.format(host=host, port=port, database=encoded)


def connection_url(declared: Jdbc) -> str:
    """The URL that Spark is given: the declared one, or that of the database that is named.

    Spark quotes names as MySQL does only where it sees MySQL's scheme. With that of MariaDB it asks
    for `"name"`, which MariaDB takes for a text, and every row has the name as its value.
    """
    url = declared.url or url_of(declared)
    if declared.driver is not JdbcDriver.MARIADB:
        return url
    rest = url.removeprefix(_MARIADB)
    return f"{_MYSQL}{rest}{'&' if '?' in rest else '?'}{_BOTH_SCHEMES}"


def properties_of(declared: Jdbc) -> dict[str, str]:
    """Options of every connection of a source, without user and password."""
    database = DATABASES[declared.driver]
    named = {}
    if database.database_option is not None and declared.database is not None:
        named[database.database_option] = declared.database
    of_files = {} if is_server(declared) else database.fixed_for_files
    return {**declared.options, **named, **database.fixed, **of_files}


def first_statement(declared: Jdbc) -> str:
    """The first statement of a source's session (its isolation, read-only), or nothing."""
    database, level = DATABASES[declared.driver], declared.isolation_level
    isolation = "" if level is None else database.isolation[level]
    statement = isolation.format(level="" if level is None else level.value.replace("_", " "))
    if not database.read_only:
        return statement
    return f"{statement}, {_READ_ONLY}" if statement else database.read_only


def _host(declared: Jdbc) -> str:
    host = declared.host or ""
    return f"[{host}]" if ":" in host else host
