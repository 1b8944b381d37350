"""A secret in a wrong place, and the keys of services: no message repeats one."""

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.declared.declarations import Raw, document, files, found, model, output, parsed, put
from support.hostile.canaries import CORE, canary, is_shown_in
from support.operator.runrequests import a_request, an_output

from snaploom import confidential
from snaploom.cli.main import run_command
from snaploom.confidential import OF_LIBRARIES, remember_secret, without_secrets
from snaploom.errors import KeyUnavailable, SnaploomError
from snaploom.models.findings import InvalidDeclarations
from snaploom.models.run import Submitter
from snaploom.plan.bundles import SecretKey, bundle_for
from snaploom.plugins.vault import VaultKeyService
from snaploom.run.declarations import refuse_invalid
from snaploom.run.joblog import JobLog
from snaploom_operator.gather.gatherer import cluster_findings
from snaploom_operator.settings import ApiKey, LineageSettings
from snaploom_operator.submit.applications import FORMS

SECRET = canary("misplaced")


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confidential, "_known", [()])


def jdbc(**changes: Any) -> Raw:
    spec = {
        "driver": "POSTGRESQL", "host": "db", "port": 5432, "database": "shop",
        "tableReference": "kept", "snapshot": {"fromReadTime": {}},
        "credentials": {"fromEnvironment": {"userVariable": "U", "passwordVariable": "P"}},
    }  # fmt: skip
    return document("DataSource", "customer", {"jdbc": spec | changes})


MISPLACED = {
    "password in a URL": jdbc(url=f"jdbc:postgresql://db/shop?password={SECRET}"),
    "password in a URL's host": jdbc(host=f"keeper:{SECRET}@db"),
    "password as an option": jdbc(options={"password": SECRET}),
    "token as an unknown option": jdbc(options={"sslToken": SECRET}),
    "plaintext": jdbc(credentials={"fromPlaintext": {"user": "keeper", "password": SECRET}}),
    "plaintext of a wrong type": jdbc(
        credentials={"fromPlaintext": {"user": "keeper", "password": [SECRET]}}
    ),
    "two kinds of credentials": jdbc(
        credentials={
            "fromPlaintext": {"user": "keeper", "password": SECRET},
            "fromSecret": {"name": "shop"},
        }
    ),
    "password beside credentials": jdbc(password=SECRET),
    "format option": files("customer", formatOptions={"password": SECRET}),
    "format option with a URL": files("customer", formatOptions={"url": f"x://k:{SECRET}@db"}),
    "user and password in a folder": files(
        "customer", sourceUriGlobs=[f"s3a://key:{CORE}@bucket/x/*"]
    ),
}
SETTINGS = {
    "sparkConf": ("run.spark.sparkConf", {"spark.hadoop.fs.s3a.secret.key": SECRET}),
    "unknown sparkConf": ("run.spark.sparkConf", {"spark.my.password": SECRET}),
    "value of env": (
        "run.spark.podTemplate.env", [{"name": "DB_PASSWORD", "value": SECRET}],
    ),
}  # fmt: skip


def declared(raw: Raw) -> list[Raw]:
    return [raw, *(each for each in model() if each["metadata"]["name"] != raw["metadata"]["name"])]


def with_setting(path: str, value: Any) -> list[Raw]:
    changed = output()
    put(changed["spec"], path, value)
    return [*model()[:-1], changed]


CASES = {name: declared(raw) for name, raw in MISPLACED.items()} | {
    name: with_setting(*setting) for name, setting in SETTINGS.items()
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    "command",
    [
        ["validate"],
        ["validate", "-o", "json"],
        ["plan", "--offline", "wide"],
        ["graph", "wide"],
        ["plan", "--offline", "-o", "json", "wide"],
    ],
)
def test_no_command_repeats_a_misplaced_secret(name, command, tmp_path, capsys):
    path = tmp_path / "model.yaml"
    path.write_text(yaml.safe_dump_all(CASES[name]), "utf-8")
    run_command([*command, "-f", str(path)])
    printed = "".join(capsys.readouterr())
    assert ("SL1" if command[0] == "validate" else "\n") in printed
    assert not is_shown_in(printed)


@pytest.mark.parametrize(
    "variable", ["AWS_SECRET_ACCESS_KEY", "SNAPLOOM_LINEAGE_API_KEY", "vault_token", "GITHUB_TOKEN"]
)
@pytest.mark.parametrize("field", ["userVariable", "passwordVariable"])
def test_declaration_cannot_send_away_a_variable_of_others(variable: str, field: str) -> None:
    names = {"userVariable": "U", "passwordVariable": "P", field: variable}
    raw = jdbc(credentials={"fromEnvironment": names})
    at = f"spec.jdbc.credentials.fromEnvironment.{field}"
    assert ("SL139", "DataSource/customer", at) in found(declared(raw))


@pytest.fixture
def echoing() -> Iterator[str]:
    """A key service that refuses, and repeats what it was sent."""

    class Echoing(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.dumps({"errors": [self.headers["X-Vault-Token"]]}).encode()
            self.send_response(403, self.headers["X-Vault-Token"])
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Echoing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1/transit"
    server.shutdown()


def test_refused_key_service_shows_no_token(echoing: str) -> None:
    service = VaultKeyService(echoing, {"VAULT_TOKEN": SECRET})
    with pytest.raises(KeyUnavailable) as caught:
        service.wrap("footers", b"0" * 16)
    assert not is_shown_in(str(caught.value))
    assert without_secrets(f"token {SECRET}") == "token ***"


@pytest.mark.parametrize(
    "text",
    [
        SECRET, json.dumps({"p": SECRET}),
        "Basic a2VlcGVyOm1pc3BsYWNlZCt6SzRuNHIxZVE5L21pc3BsYWNlZD0=",
        "misplaced%2BzK4n4r1eQ9%2Fmisplaced%3D", "misplaced%2BzK4n4r1eQ9/misplaced%3D",
    ],
)  # fmt: skip
def test_error_hides_a_secret_in_each_encoding(text: str) -> None:
    remember_secret(SECRET, "keeper")
    error = SnaploomError(f"m {text}", found=text, expected=text, hint=text)
    assert not is_shown_in(str(error) + error.message + repr(error))
    assert not is_shown_in(repr(error.args))


def test_no_thread_loses_what_another_remembers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confidential, "_known", [()])
    secrets = [f"secret-{number:04}" for number in range(160)]
    halves = (secrets[:80], secrets[80:])
    threads = [
        threading.Thread(target=lambda half=h: [*map(remember_secret, half)]) for h in halves
    ]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert "secret" not in without_secrets(" ".join(secrets))


def test_short_secret_does_not_spoil_words() -> None:
    remember_secret("a")
    assert str(SnaploomError("an apple")).startswith("an apple\n")


@pytest.mark.parametrize("submitter", list(FORMS))
def test_submitted_run_holds_references_to_secrets_only(submitter, monkeypatch):
    key = SecretKey("shop", "password")
    for variable in (key.variable, *OF_LIBRARIES):
        monkeypatch.setenv(variable, SECRET)
    lineage = LineageSettings(url="http://lineage", api_key=ApiKey(secret="line", key="key"))
    request = a_request(an_output(), secrets=(key,), lineage=lineage)
    manifest = json.dumps(FORMS[submitter].manifest(request))
    assert submitter is Submitter.LOCAL or manifest.count("secretKeyRef") == 2
    assert not is_shown_in(manifest)


def test_job_prints_no_secret(capsys: pytest.CaptureFixture[str]) -> None:
    remember_secret(SECRET)
    for is_json in (False, True):
        JobLog(is_json).write(f"warning: {SECRET}")
    assert capsys.readouterr().err.count("***") == 2


# A secret outside of credentials: a warning on a laptop, refused in a cluster, shown nowhere.


CANARY = "c4nary-hunter2"
PLACES: dict[str, tuple[int, str, Any, str]] = {
    "option": (0, "spec.hdfsLike.formatOptions", {"password": CANARY}, "formatOptions.password"),
    "place": (
        0, "spec.hdfsLike.sourceUriGlobs", [f"sftp://me:{CANARY}@host/*"], "sourceUriGlobs[0]",
    ),
    "setting": (
        3, "spec.run.spark", {"sparkConf": {"spark.ssl.keyPassword": CANARY}},
        "sparkConf.spark.ssl.keyPassword",
    ),
    "variable": (
        3, "spec.run.spark", {"podTemplate": {"env": [{"name": "API_KEY", "value": CANARY}]}},
        "env[0].value",
    ),
    "annotation": (3, "metadata.annotations", {"a.example/password": CANARY}, "password"),
}  # fmt: skip


def spoilt_model(place: str) -> tuple[list[dict[str, Any]], int]:
    number, path, value, _ = PLACES[place]
    raws = model()
    put(raws[number], path, value)
    return raws, number


@pytest.mark.parametrize("place", PLACES)
def test_laptop_warns_without_showing_it(tmp_path, capsys, place):
    raws, _ = spoilt_model(place)
    (tmp_path / "model.yaml").write_text(yaml.safe_dump_all(raws))
    for form in ("text", "json"):
        run_command(["validate", str(tmp_path / "model.yaml"), "-o", form])
        printed = capsys.readouterr()
        assert "SL138" in printed.out + printed.err
        assert CANARY not in printed.out + printed.err


@pytest.mark.parametrize("place", PLACES)
def test_admission_and_jobs_refuse_it(place: str) -> None:
    raws, number = spoilt_model(place)
    resources = parsed(raws)
    (found,) = [f for f in cluster_findings(resources[number]) if f.code == "SL138"]
    assert found.is_error
    assert found.path.endswith(PLACES[place][3])
    with pytest.raises(InvalidDeclarations) as caught:
        refuse_invalid(bundle_for("OutputDataset", "wide", resources))
    assert "SL138" in {finding.code for finding in caught.value.findings if finding.is_error}
    assert CANARY not in str(caught.value) + str(caught.value.findings)


def test_differences_hide_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, secret in (("before", "old-s3cret"), ("after", CANARY)):
        raws = model()
        raws[3]["spec"]["outputFolder"]["folderUri"] = f"{tmp_path}/out/"
        options = {"password": secret}
        put(raws[0], "spec.hdfsLike.formatOptions", options)
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump_all(raws))
    files = ["-f", str(tmp_path / "after.yaml"), "--against", str(tmp_path / "before.yaml")]
    allowed = ["--allow", "options=parquet.password"]
    assert run_command(["diff", "wide", *files, *allowed]) == 1
    printed = capsys.readouterr()
    assert "(hidden)" in printed.out
    assert CANARY not in printed.out + printed.err
    assert "old-s3cret" not in printed.out + printed.err
