"""`snaploom drivers install`, and a table of a real PostgreSQL read by what it installed."""

import hashlib
import shutil
from pathlib import Path

import pytest
from support.declared.declarations import document
from support.declared.sources import by_field
from support.documentation.commands import end, snaploom_command
from support.servers.databases import driver_jars, in_postgres
from support.servers.postgresserver import PASSWORD, USER
from support.weaving.loom import Loom, ids

from snaploom.cli.main import run_command
from snaploom.run.driverlock import LOCK_FILE, cached_jar, read_lock
from snaploom.sources.databases.drivers import DRIVER_JAR_BY_NAME

pytestmark = pytest.mark.spark

POSTGRES = DRIVER_JAR_BY_NAME["postgresql"]
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>{0}</groupId><artifactId>{1}</artifactId><version>{2}</version></project>"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project without a lock file, on a machine without a driver."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("SNAPLOOM_MAVEN_REPOSITORY", raising=False)
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A folder in Maven's layout, with the driver of PostgreSQL."""
    folder = tmp_path / "repository"
    file = folder / POSTGRES.path
    file.parent.mkdir(parents=True)
    shutil.copyfile(driver_jars() / POSTGRES.file_name, file)
    return folder


def install(*arguments: str) -> int:
    return run_command(["drivers", "install", *arguments])


def test_a_database_is_read_by_two_commands(project, repository, postgres, tmp_path):
    postgres.run(
        """DROP TABLE IF EXISTS two_commands;
           CREATE TABLE two_commands AS SELECT id::bigint, date '2024-01-01' AS at
             FROM generate_series(0, 5) id"""
    )
    loom = Loom(tmp_path / "loom")
    loom.write("customer", 1, ids(0, 1, 9))
    loom.join("customer")
    loom.sources.remove("order")
    login = {"fromEnvironment": {"userVariable": "SHOP_USER", "passwordVariable": "SHOP_PASSWORD"}}
    day = by_field("at", "ISO8601_DATE")
    table = in_postgres(postgres, "public.two_commands", snapshot=day, credentials=login)
    loom.more = [document("DataSource", "order", table)]
    model = loom.save(project / "model.yaml")
    commands = (
        ("drivers", "install", "postgresql", "--repository", str(repository)),
        ("run", "--all", "-f", str(model)),
    )
    for number, command in enumerate(commands):
        folder = tmp_path / f"command-{number}"
        secrets = {"SHOP_USER": USER, "SHOP_PASSWORD": PASSWORD}
        (folder / "cwd").parent.mkdir()
        (folder / "cwd").symlink_to(project)
        process = snaploom_command(*command, folder=folder, environment=secrets)
        code, _, errors = end(process, folder)
        assert code == 0, errors
    assert loom.live_days() == [1]


def test_installing_again_fetches_nothing(repository: Path) -> None:
    assert install("postgresql", "--repository", str(repository)) == 0
    shutil.rmtree(repository)
    assert install("--repository", str(repository)) == 0
    assert read_lock(Path(LOCK_FILE)) == {"postgresql": POSTGRES}


def test_another_jar_under_the_version_is_refused_and_not_kept(repository, capsys):
    (repository / POSTGRES.path).write_bytes(b"another driver")
    assert install("postgresql", "--repository", str(repository)) == 2
    shown = capsys.readouterr().err
    assert hashlib.sha256(b"another driver").hexdigest() in shown
    assert POSTGRES.sha256 in shown
    assert not cached_jar(POSTGRES).exists()
    assert not Path(LOCK_FILE).exists()


def test_a_driver_of_coordinates_is_locked_by_the_hash_of_its_first_jar(repository, monkeypatch):
    file = repository / "org" / "example" / "other" / "1" / "other-1.jar"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"first")
    monkeypatch.setenv("SNAPLOOM_MAVEN_REPOSITORY", repository.as_uri())
    assert install("org.example:other:1", "--unlisted") == 0
    (locked,) = read_lock(Path(LOCK_FILE)).values()
    assert locked.sha256 == hashlib.sha256(b"first").hexdigest()
    assert install() == 0
    cached_jar(locked).unlink()
    file.write_bytes(b"second")
    assert install("org.example:other:1", "--unlisted") == 2


@pytest.mark.parametrize(
    ("repository_", "found"),
    [("/no/such/folder", "cannot be fetched"), ("http://127.0.0.1:9/maven2", "cannot be fetched"),
     ("ftp://mirror/a", "no repository that can be asked"),
     ("https://user:secret-word@mirror/a", "without user, password and query"),
     ("https://:secret-word@mirror/a", "without user, password and query"),
     ("https://mirror/a?token=secret-word", "without user, password and query"),
     ("https://[mirror/a", "no repository that can be asked")],
)  # fmt: skip
def test_a_repository_that_gives_nothing_is_one_error(repository_, found, capsys):
    assert install("postgresql", "--repository", repository_) == 2
    shown = capsys.readouterr().err
    assert found in shown
    assert "fix:" in shown
    assert "secret-word" not in shown
    assert "Traceback" not in shown


def test_without_a_repository_spark_resolves_the_driver(tmp_path: Path) -> None:
    local = tmp_path / "home" / ".m2" / "repository"
    file = local / POSTGRES.path
    file.parent.mkdir(parents=True)
    shutil.copyfile(driver_jars() / POSTGRES.file_name, file)
    file.with_suffix(".pom").write_text(POM.format(*POSTGRES.coordinates.split(":")))
    folder = tmp_path / "command"
    home = {"JAVA_TOOL_OPTIONS": f"-Duser.home={tmp_path / 'home'}"}
    process = snaploom_command("drivers", "install", "postgresql", folder=folder, environment=home)
    code, _, errors = end(process, folder)
    assert code == 0, errors
    assert read_lock(folder / "cwd" / LOCK_FILE) == {"postgresql": POSTGRES}
