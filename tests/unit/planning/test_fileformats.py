"""Formats and options that may be declared, and what each option may hold."""

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.declared.declarations import (
    document,
    files,
    found,
    key,
    output,
    parsed,
    put,
    relationship,
    simple,
    spoilt,
)
from support.declared.sources import INDEX, a_source

from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.findings import Finding
from snaploom.models.kinds import KIND_BY_NAME
from snaploom.models.run import RunAction
from snaploom.plan.bundle import Bundle
from snaploom.plan.bundles import SecretKey, bundle_for, secret_keys
from snaploom.policy.fileformats import BUILT_IN
from snaploom.policy.formatfaults import REFUSED, FormatPlace, format_findings, spark_format
from snaploom.policy.secretdetection import names_a_secret, secret_findings, secret_form
from snaploom.skipping.stores.folder import uri_of_store
from snaploom.sources.prefix import (
    CapturedValueInvalid,
    CaptureType,
    PrefixInvalid,
    UriPrefix,
    hive_decoded,
)
from snaploom.validate.validator import validate

PLACE = FormatPlace("", "format", "options")


@pytest.mark.parametrize(
    ("data_format", "options"),
    [
        ("csv", {"header": "TRUE", "sep": "\t", "quote": "", "encoding": "ISO-8859-1"}),
        ("CSV", {"SEP": ";", "samplingRatio": "0.1", "maxColumns": "20480"}),
        ("json", {"mode": "failfast", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss"}),
        ("csv", {"charset": "utf-16le"}),
        ("json", {"encoding": "ISO-8859-1", "lineSep": "\n"}),
        ("json", {"encoding": "UTF-16", "multiLine": "TRUE"}),
        ("xml", {"rowTag": "o", "compression": "gzip", "encoding": "windows-1252"}),
        ("avro", {"positionalFieldMatching": "false"}),
        ("text", {"encoding": "utf-8"}),
        ("avro", {"avroSchema": '{"type": "record", "name": "r", "fields": []}'}),
        ("parquet", {"mergeSchema": "true", "recursiveFileLookup": "false"}),
        ("orc", {"modifiedBefore": "2020-01-31T00:00:00"}),
        ("text", {"wholetext": "true", "lineSep": "\n"}),
        ("binaryFile", {"pathGlobFilter": "*.{png,jpg}"}),
        ("delta", {}),
        ("Iceberg", {}),
    ],
)
def test_formats_and_options_of_the_list_are_sound(data_format, options):
    assert format_findings(data_format, options, NO_ALLOWANCES, PLACE) == ()


@pytest.mark.parametrize(
    ("data_format", "options", "option"),
    [
        ("jdbc", {}, None),
        ("org.apache.spark.sql.execution.datasources.csv.CSVFileFormat", {}, None),
        ("com.databricks.spark.csv", {}, None),
        ("statestore", {}, None),
        ("csv ", {}, None),
        ("csv", {"header": "maybe"}, "header"),
        ("csv", {"heder": "true"}, "heder"),
        ("csv", {"compression": "org.example.Codec"}, "compression"),
        ("csv", {"maxColumns": "2000000000"}, "maxColumns"),
        ("csv", {"inputBufferSize": "2147483647"}, "inputBufferSize"),
        ("csv", {"sep": ";", "SEP": ","}, "SEP"),
        ("csv", {"encoding": "windows-1252"}, "encoding"),
        ("csv", {"CharSet": "utf8"}, "CharSet"),
        ("json", {"encoding": "latin1"}, "encoding"),
        ("json", {"encoding": "ISO-8859-1"}, "encoding"),
        ("json", {"charset": "UTF-16", "lineSep": "\n"}, "charset"),
        ("text", {"encoding": "ISO-8859-1"}, "encoding"),
        ("xml", {"encoding": "rot13"}, "encoding"),
        ("xml", {"encoding": "no-such-set"}, "encoding"),
        ("avro", {"positionalFieldMatching": "true"}, "positionalFieldMatching"),
        ("json", {"samplingRatio": "0"}, "samplingRatio"),
        ("json", {"locale": "x" * 99}, "locale"),
        ("avro", {"avroSchema": "[" * 8000}, "avroSchema"),
        ("avro", {"avroschemaurl": "http://x"}, "avroschemaurl"),
        ("parquet", {"parquet.encryption.kms.client.class": "x"},
         "parquet.encryption.kms.client.class"),
        ("parquet", {"sep": ";"}, "sep"),
        ("text", {"fs.s3a.endpoint": "x"}, "fs.s3a.endpoint"),
        ("delta", {"versionAsOf": "1"}, "versionAsOf"),
    ],
)  # fmt: skip
def test_others_are_refused(data_format: str, options: dict[str, str], option: str | None) -> None:
    (fault,) = format_findings(data_format, options, NO_ALLOWANCES, PLACE)
    assert fault.path == ("format" if option is None else f"options.{option}")
    assert fault.code == ("SL136" if option is None else "SL137")


@pytest.mark.parametrize("option", REFUSED)
def test_options_that_reach_out_are_refused_with_the_reason(option: str) -> None:
    for data_format in BUILT_IN:
        (fault,) = format_findings(data_format, {option: "hunter2"}, NO_ALLOWANCES, PLACE)
        assert REFUSED[option] in fault.message
        assert "hunter2" not in str(fault)
        assert f"--allow options={data_format}.{option}" in fault.hint


def test_an_administrator_adds_formats_and_options() -> None:
    allow = Allowances(formats=("xml2", "com.example.Source"), options=("CSV.basepath", "xml2.a"))
    assert format_findings("csv", {"basePath": "/data"}, allow, PLACE) == ()
    assert format_findings("XML2", {"A": "x"}, allow, PLACE) == ()
    assert spark_format("XML2", allow) == "xml2"
    assert spark_format("com.example.Source", allow) == "com.example.Source"
    assert [fault.path for fault in format_findings("xml2", {"b": "x"}, allow, PLACE)] == [
        "options.b"
    ]


def test_findings_name_the_field_and_the_list() -> None:
    raw = files("orders", format="jdbc", formatOptions={"url": "jdbc:h2:mem:x;INIT=RUNSCRIPT"})
    (finding, *_) = [f for f in validate(parsed([raw])) if f.code == "SL136"]
    assert finding.path == "spec.hdfsLike.format"
    assert "the list `formats` (chart value allow.formats, or --allow formats=jdbc)" in finding.hint


def test_target_of_an_index_is_judged_like_a_source() -> None:
    index = {
        "apiVersion": "snaploom.io/v1alpha1",
        "kind": "SkippingIndex",
        "metadata": {"name": "i"},
        "spec": {
            "target": {"path": {"uri": "/data", "format": "csv", "options": {"basePath": "/"}}},
            "indexes": [{"type": "MIN_MAX", "column": "id"}],
            "store": {"parquet": {"location": "/indexes"}},
        },
    }
    assert found([index]) == [("SL137", "SkippingIndex/i", "spec.target.path.options.basePath")]
    by_format = spoilt(index, "spec.target.path", {"uri": "/data", "format": "jdbc"})
    assert found([by_format]) == [("SL136", "SkippingIndex/i", "spec.target.path.format")]


# `sourceUriPrefix`: grammar, matching, typed values, and whether a glob can fit.


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("", "must end with a literal", id="empty"),
        pytest.param("/a/{day:STRING}", "must end with a literal", id="ends-with-capture"),
        pytest.param("/a/{day}/", "not a capture of the form", id="no-type"),
        pytest.param("/a/{day:INT}/", "'INT' is not a type", id="unknown-type"),
        pytest.param("/a/day}/", "single '}' at character 7", id="lone-brace"),
        pytest.param("/{a:STRING}{b:STRING}/", "nothing separates", id="adjacent"),
        pytest.param("/{a:STRING}/{A:LONG}/", "captured more than once", id="twice"),
    ],
)
def test_illegal_prefixes_are_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(PrefixInvalid, match=reason):
        UriPrefix.parse(text)


def test_values_are_typed_and_decoded_once() -> None:
    prefix = UriPrefix.parse("s3://b/{{x}}/at={at:ISO8601_DATE_TIME}/n={n:LONG}/s={s:STRING}/")
    assert prefix.names == ("at", "n", "s")
    assert prefix.match("s3://b/{x}/at=2020-01-31T12%3A00%3A00Z/n=-7/s=a%2525b/part-0.parquet") == {
        "at": "2020-01-31T12:00:00Z",
        "n": -7,
        "s": "a%25b",
    }


@pytest.mark.parametrize("uri", ["file:///d/x=1/f", "file:/d/x=1/f", "/d/x=1/f"])
@pytest.mark.parametrize("text", ["file:///d/x={x:INTEGER}/", "/d/x={x:INTEGER}/"])
def test_local_files_match_in_every_spelling(text: str, uri: str) -> None:
    assert UriPrefix.parse(text).match(uri) == {"x": 1}


@pytest.mark.parametrize("uri", ["/e/x=1/f", "/d/x=/f", "/d/x=1", "/d/x=a/f", "", "/d/y/x=1/f"])
def test_other_files_do_not_match(uri: str) -> None:
    assert UriPrefix.parse("/d/x={x:INTEGER}/").match(uri) is None


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (CaptureType.STRING, "__HIVE_DEFAULT_PARTITION__"),
        (CaptureType.INTEGER, "__HIVE_DEFAULT_PARTITION__"),
        (CaptureType.INTEGER, "2147483648"),
        (CaptureType.LONG, "9223372036854775808"),
        (CaptureType.LONG, "9" * 5000),
        (CaptureType.ISO8601_DATE_TIME, "2020-01-31"),
        (CaptureType.ISO8601_DATE_TIME, "2020-13-31T00:00:00Z"),
    ],
)
def test_null_and_untyped_values_are_errors(kind: CaptureType, value: str) -> None:
    with pytest.raises(CapturedValueInvalid, match="captured value of x"):
        UriPrefix.parse(f"/x={{x:{kind}}}/").match(f"/x={value}/f")


@pytest.mark.parametrize(
    ("glob", "fits"),
    [
        ("/d/*/*.parquet", True),
        ("/d/day=2020*/x", True),
        ("file:/d/day=2020-01-01/r/*", True),
        ("/d", True),
        ("/d/da{y,te}=1/*", True),
        ("/e/*", False),
        ("/d/day=a/b/*", False),
        ("s3://d/day=a/r/*", False),
    ],
)
def test_a_glob_fits_when_its_literal_head_does(glob: str, fits: bool) -> None:
    assert UriPrefix.parse("/d/day={day:STRING}/r/").fits_glob(glob) is fits


values = st.text(st.characters(exclude_characters="/", exclude_categories=["Cs"]), min_size=1)


@given(values, values)
@settings(deadline=None)
def test_what_hive_encodes_comes_back_and_its_glob_fits(first: str, second: str) -> None:
    encoded = [
        "".join(f"%{ord(c):02X}" if c in '%/:="' else c for c in text) for text in (first, second)
    ]
    prefix = UriPrefix.parse("/d/a={a:STRING}/b={b:STRING}/")
    uri = f"/d/a={encoded[0]}/b={encoded[1]}/part-0"
    assert prefix.match(uri) == {"a": first, "b": second}
    assert hive_decoded(encoded[0]) == first
    for end in range(1, len(uri)):
        assert prefix.fits_glob(
            uri[:end].translate(str.maketrans("", "", "*?[]{}\\")) + "*"
        ) or any(c in "*?[]{}\\" for c in uri[:end])


# Secrets are found at any place and never shown; ordinary data is not taken for one.


CANARY = "c4nary-hunter2"
AWS = "AKIAIOSFODNN7EXAMPLE"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIE"
PLACES: dict[str, tuple[dict[str, Any], str, Any]] = {
    "option of a format": (
        files("s"), "spec.hdfsLike.formatOptions", {"fs.s3a.secret.key": CANARY}
    ),
    "place of files": (
        files("s"), "spec.hdfsLike.sourceUriGlobs", [f"sftp://me:{CANARY}@host/data/*.csv"]
    ),
    "signed place": (
        files("s"), "spec.hdfsLike.sourceUriGlobs", [f"https://host/a.csv?sv=1&sig={CANARY}"]
    ),
    "metadata of a field": (
        files("s"),
        "spec.hdfsLike.schemaFields",
        [{"name": "a", "dataType": {"string": {}}, "metadata": {"password": CANARY}}],
    ),
    "query": (simple("s", "SELECT 1"), "spec.simpleVirtual.dataQuery", f"SELECT '{JWT}' FROM c"),
    "label": (files("s"), "metadata.labels", {"note": AWS}),
    "annotation": (files("s"), "metadata.annotations", {"a.example/key": PEM}),
    "key of a relationship": (
        relationship("s", (["a", "b"], [key("x")])),
        "spec.representations.0.joinKey.0.query",
        f"concat(x, '{AWS}')",
    ),
    "folder of an output": (output("s"), "spec.outputFolder.folderUri", f"s3a://me:{CANARY}@b/out/"),
    "setting of Spark": (
        output("s"),
        "spec.run.spark",
        {"sparkConf": {"spark.hadoop.fs.azure.account.key.a.dfs.core.windows.net": CANARY}},
    ),
    "variable of a pod": (
        output("s"),
        "spec.run.spark",
        {"podTemplate": {"env": [{"name": "DB_PASSWORD", "value": CANARY}]}},
    ),
}  # fmt: skip


def found_in(raw: dict[str, Any], path: str, value: Any) -> tuple[Finding, ...]:
    put(raw, path, value)
    return secret_findings(KIND_BY_NAME[raw["kind"]].model.parse(raw))


@pytest.mark.parametrize("place", PLACES)
def test_secret_is_seen_wherever_it_stands_and_never_shown(place: str) -> None:
    raw, path, value = PLACES[place]
    (found,) = found_in(raw, path, value)
    parent = path.rpartition(".")[0] if path[-1].isdigit() else path
    assert found.path.replace("[", ".").replace("]", "").startswith(parent)
    assert found.code == "SL138"
    assert not any(secret in str(found.dump()) for secret in (CANARY, AWS, JWT, PEM))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("password", CANARY), ("javax.jdo.option.ConnectionPassword", CANARY),
        ("spark.ssl.keyStorePassword", "changeit"), ("fs.s3a.access.key", CANARY),
        ("secretKey", CANARY), ("API_KEY", CANARY), ("auth-token", CANARY),
        ("parquet.encryption.key.list", "k:AAEC"), ("spark.authenticate.secret", CANARY),
        ("spark.sql.catalog.lake.credential", f"env:{CANARY}"), ("fs.s3a.secret.key", "env:S3_KEY"),
    ],
)  # fmt: skip
def test_names_of_settings_mark_secrets(name: str, value: str) -> None:
    assert names_a_secret(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("password", ""), ("password", "${DB_PASSWORD}"), ("secret", "true"),
        ("fs.s3a.aws.credentials.provider", "com.example.Provider"),
        ("hadoop.security.credential.provider.path", "jceks://hdfs/x"), ("maxTokens", "many"),
        ("tokenizer", "whitespace"), ("primaryKey", "id"), ("sort.key", "a,b"),
        ("keyLabel", "prices"), ("passenger", "x1"), ("header", "true"),
        ("spark.sql.catalog.lake.credential", "env:LAKE_CREDENTIAL"),
    ],
)  # fmt: skip
def test_ordinary_settings_are_none(name: str, value: str) -> None:
    assert not names_a_secret(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("secret", "restricted"),
        ("token", "customer-token-v2"),
        ("password", "hashed"),
        ("credential", "card1234"),
        ("comment", "the password of the customer, salted"),
        ("key", "primary"),
    ],
)
def test_descriptions_may_speak_of_secrets(name: str, value: str) -> None:
    assert not names_a_secret(name, value, is_description=True)
    assert not secret_form(value)


@pytest.mark.parametrize(
    "text",
    [
        "abfss://container@account.dfs.core.windows.net/data",
        "https://host:8443/path?version=2&format=csv",
        "s3a://bucket/year=2020/*.parquet",
        "SELECT 'a:b@c' AS x, concat('//', y, ':', z, '@') FROM c",
        "https://${USER}:${PASSWORD}@host/",
        "eyJust.a.word",
        "user@example.org",
    ],
)
def test_ordinary_texts_have_no_secret(text: str) -> None:
    assert secret_form(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN OPENSSH PRIVATE KEY-----",
        f"eyJ{'a' * 12}.eyJ{'b' * 12}.{'c' * 12}",
        f"AKIA{'A' * 16}",
        f"ASIA{'A' * 16}",
        f"AIza{'a' * 35}",
        *(f"gh{letter}_{'a' * 36}" for letter in "pousr"),
        f"github_pat_{'a' * 40}",
        f"glpat-{'a' * 20}",
        *(f"xox{letter}-{'a' * 10}" for letter in "abprs"),
        f"AccountKey={'a' * 40}",
        "JDBC:postgresql://user:pw@db/x",
        "https://user:pw@host/x",
        "s3a://bucket/x?signature=abc",
    ],
)
def test_every_form_of_a_secret_is_recognised_inside_a_text(text: str) -> None:
    assert secret_form(text)
    assert text.startswith("JDBC:") or secret_form(f"before {text} behind")


@pytest.mark.parametrize(
    "piece", ["://", "://a:b", "eyJ-", "eyJaaaaaaaaaaa.", "a@", "AKIA", "?token=", "-----BEGIN A "]
)
def test_time_stays_in_proportion_to_the_text(piece: str) -> None:
    begun = time.perf_counter()
    secret_form(piece * (8192 // len(piece)))
    assert time.perf_counter() - begun < 0.25


def test_ordinary_documents_have_none() -> None:
    selectors = [{"coordinateIncludeRegex": "x"}]
    applicator = {"fieldSelectors": selectors, "metadata": {"pii": "no", "secret": "yes"}}
    raws = [
        files("a"),
        simple("b", "SELECT 1 FROM c"),
        output("c"),
        document("MetadataApplicator", "d", applicator),
    ]
    resources = [KIND_BY_NAME[raw["kind"]].model.parse(raw) for raw in raws]
    assert [finding for resource in resources for finding in secret_findings(resource)] == []


@pytest.mark.parametrize(
    "url",
    [
        "s3a://key:a/b@bucket", "s3a://AKIA:wJalr/XUtn/FEMI@bucket/out/", "s3a://key:a?b@bucket",
        "https://me:p#w@host/x",
    ],
)  # fmt: skip
def test_password_with_a_slash_is_seen(url: str) -> None:
    assert secret_form(f"files at {url}") == "a password in a URL"


@pytest.mark.parametrize(
    "url",
    [
        "s3a://bucket/mail/me@example.com", "hdfs://nn:8020/a@b", "hdfs://a:8020,b:8020/x@y",
        "https://[fd12::7]:9200/@scope", "https://host:port/path@v1", "https://host:/a@b",
        "abfss://container@account.dfs.core.windows.net/a:b@c", "s3a://${USER}:${KEY}/x@bucket",
        "s3a://{bucket:string}/x@y", "https://host/a:b@c",
    ],
)  # fmt: skip
def test_sign_in_a_path_is_no_password(url: str) -> None:
    assert not secret_form(url)


TABLE = {
    "driver": "POSTGRESQL", "host": "db", "database": "d", "tableReference": "t",
    "snapshot": {"fromReadTime": {}},
}  # fmt: skip


def table(name: str, **credentials: Any) -> Any:
    return a_source({"jdbc": TABLE | {"credentials": credentials}}, name)


def test_every_key_of_a_run_is_there_once() -> None:
    sources = (
        table("a", fromSecret={"name": "one"}),
        table("b", fromSecret={"name": "one", "userKey": "login"}),
        table("c", fromEnvironment={"userVariable": "U", "passwordVariable": "P"}),
    )
    bundle = Bundle(skipping_index=INDEX, data_sources=sources)
    keys = secret_keys(bundle)
    assert [(key.secret, key.key) for key in keys] == [
        ("one", "login"),
        ("one", "password"),
        ("one", "username"),
    ]
    assert secret_keys(bundle, RunAction.DELETE) == ()


def test_opensearch_is_reached_with_the_same_keys() -> None:
    credentials = {"fromSecret": {"name": "search", "userKey": "u", "passwordKey": "p"}}
    spec = {
        "target": {"path": {"uri": "/data", "format": "parquet"}},
        "indexes": [{"type": "MIN_MAX", "column": "a"}],
        "store": {"openSearch": {"host": "s", "auth": "BASIC", "credentials": credentials}},
    }
    index = parsed([document("SkippingIndex", "i", spec)])
    bundle = bundle_for("SkippingIndex", "i", index)
    store = bundle.skipping_index.spec.store.open_search
    assert store is not None
    password, user = (key.variable for key in secret_keys(bundle))
    assert uri_of_store(store).endswith(f"username_variable={user}&password_variable={password}")


@given(st.sets(st.tuples(st.text(), st.text()), max_size=20))
def test_names_are_variables_and_differ(keys: set[tuple[str, str]]) -> None:
    names = {SecretKey(secret, key).variable for secret, key in keys if "/" not in secret}
    assert all(name.isidentifier() and name.isascii() for name in names)
    assert len(names) == len([secret for secret, _ in keys if "/" not in secret])
