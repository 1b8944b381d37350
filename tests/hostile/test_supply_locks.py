"""What is fetched is what is locked: Python's packages, jars and Go modules."""

from __future__ import annotations

import os
import re
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from support.documentation.examples import REPOSITORY
from support.hostile.supply import (
    COMPONENTS,
    LOCKS,
    SCRIPTS,
    copied,
    pins_of,
    run,
    stand_in,
    sum_of,
    wheel,
)

PROJECT, OPERATOR = (
    tomllib.loads((REPOSITORY / folder / "pyproject.toml").read_text())["project"]
    for folder in (".", "operator")
)
EXTRAS = PROJECT["optional-dependencies"] | {"operator": OPERATOR["dependencies"]}
OF_LOCKS = {
    "environment": ("spark", "operator", "opensearch", "lineage", "dev", "examples"),
    "core": (),
    "operator": ("operator",),
    "spark": ("spark", "cluster", "opensearch", "lineage"),
    "docs": ("docs",),
}
"""The extras that a lock is made of; `operator` is the package of that name."""
WITH_PIP = [
    *(path for path in SCRIPTS.iterdir() if path.is_file()),
    REPOSITORY / "operator" / "Dockerfile",
    REPOSITORY / "sparkjobs" / "Dockerfile",
    REPOSITORY / "Makefile",
]
JAR = b"a jar, as its repository had it when it was locked"
GO_MODULE = "helm.sh/helm/v3@v3.22.0"


def wanted(extras: tuple[str, ...]) -> list[Requirement]:
    """Requirements of the project and its extras, those of extras within extras too."""
    found: list[Requirement] = [Requirement(text) for text in PROJECT["dependencies"]]
    for text in [text for extra in extras for text in EXTRAS[extra]]:
        requirement = Requirement(text)
        if requirement.name == "snaploom":
            found += wanted(tuple(requirement.extras))
        else:
            found.append(requirement)
    return found


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_lock_has_a_version_and_sums_of_each_package_and_no_host(lock: Path) -> None:
    pins = pins_of(lock)
    assert pins
    assert all(pin.sums for pin in pins.values())
    assert not re.search(r"https?://|index-url|find-links|trusted-host", lock.read_text())


@pytest.mark.parametrize("name", OF_LOCKS)
def test_lock_has_what_the_project_asks_for(name: str) -> None:
    pins = pins_of(SCRIPTS / "locks" / f"{name}.txt")
    for requirement in wanted(OF_LOCKS[name]):
        pin = pins[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(pin.version, prereleases=True), requirement


@pytest.mark.parametrize("name", ["core", "operator", "spark", "tools", "docs"])
def test_images_and_tools_have_the_versions_that_tests_run_on(name: str) -> None:
    tested = pins_of(SCRIPTS / "locks" / "environment.txt")
    pins = pins_of(SCRIPTS / "locks" / f"{name}.txt")
    assert {pin for pin in pins.values() if pin.name in tested} <= set(tested.values())


@pytest.mark.parametrize("path", WITH_PIP, ids=lambda path: path.relative_to(REPOSITORY).as_posix())
def test_nothing_is_installed_without_a_lock(path: Path) -> None:
    text = re.sub(r"\\\n\s*", "", path.read_text())
    for command in re.findall(r"(?:pip|\$pip|uv)\"? install [^;\n]*|pip wheel [^;\n]*", text):
        from_lock = "--require-hashes" in command and "--no-deps" in command
        built_here = "--no-deps" in command and re.search(
            "--no-index|--no-build-isolation", command
        )
        assert from_lock or built_here, command


def test_wheel_that_is_locked_is_installed(tmp_path: Path) -> None:
    good = wheel(tmp_path / "index", "GOOD = True")
    done = install(tmp_path, f"woven==1.0 --hash=sha256:{sum_of(good)}")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "target" / "woven.py").read_text() == "GOOD = True"


def test_wheel_that_somebody_changed_is_refused(tmp_path: Path) -> None:
    locked = sum_of(wheel(tmp_path / "index", "GOOD = True"))
    wheel(tmp_path / "index", "GOOD = False")
    done = install(tmp_path, f"woven==1.0 --hash=sha256:{locked}")
    assert done.returncode == 1
    assert "A hash that differs: somebody changed the file" in done.stderr
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize("line", ["woven==1.0", "woven"])
def test_wheel_that_is_named_without_a_sum_is_refused(line: str, tmp_path: Path) -> None:
    wheel(tmp_path / "index", "GOOD = True")
    assert install(tmp_path, line).returncode == 1
    assert not (tmp_path / "target").exists()


def install(place: Path, line: str):
    lock = place / "lock.txt"
    lock.write_text(f"{line}\n")
    command = [SCRIPTS / "locked", sys.executable, lock, "--target", place / "target"]
    return run(command, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(place / "index"), PIP_NO_CACHE_DIR="1")


def test_every_list_of_jars_has_their_sums() -> None:
    lists = sorted(COMPONENTS.glob("*/pom.xml"))
    assert lists
    for path in lists:
        lines = path.with_name("SHA256SUMS").read_text().splitlines()
        assert lines
        assert all(re.fullmatch(r"[0-9a-f]{64}  [^/\s]+\.jar", line) for line in lines)
    fetching = [
        path.name for path in SCRIPTS.iterdir() if path.is_file() and "mvn -" in path.read_text()
    ]
    assert fetching == ["jars"]


@pytest.mark.parametrize(
    ("brought", "is_taken"),
    [
        pytest.param({"a-1.jar": JAR}, True, id="locked"),
        pytest.param({"a-1.jar": b"another"}, False, id="changed"),
        pytest.param({"a-1.jar": JAR, "b-1.jar": JAR}, False, id="one more"),
        pytest.param({"b-1.jar": JAR}, False, id="another name"),
    ],
)
def test_jars_are_those_that_are_locked(
    brought: dict[str, bytes], is_taken: bool, tmp_path: Path
) -> None:
    component = tmp_path / "tests/support/components/made"
    for folder in (component, tmp_path / "repository"):
        folder.mkdir(parents=True)
    (component / "pom.xml").write_text("<project/>")
    (tmp_path / "repository" / "a-1.jar").write_bytes(JAR)
    (component / "SHA256SUMS").write_text(f"{sum_of(tmp_path / 'repository/a-1.jar')}  a-1.jar\n")
    (tmp_path / "repository" / "a-1.jar").unlink()
    for name, content in brought.items():
        (tmp_path / "repository" / name).write_bytes(content)
    maven = 'for each; do case "$each" in -DoutputDirectory=*) to="${each#*=}" ;; esac; done'
    stand_in(tmp_path / "bin", "mvn", f'{maven}\ncp -r "{tmp_path}/repository" "$to"')
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    done = run(
        [copied("jars", tmp_path), "made"], PATH=path, SNAPLOOM_TEST_CACHE=str(tmp_path / "c")
    )
    assert (done.returncode == 0) is is_taken, done.stderr
    assert bool([*tmp_path.glob("c/made-*/jars/*.jar")]) is is_taken
    assert is_taken or "Do not use them" in done.stderr


def test_go_programs_are_built_of_locked_modules() -> None:
    modules = sorted(REPOSITORY.glob("tests/*/*/go.mod"))
    assert modules
    assert all(
        path.with_name("go.sum").exists() for path in modules if "require" in path.read_text()
    )
    for path in [path for path in SCRIPTS.iterdir() if path.is_file()]:
        for command in re.findall(r"\bgo (?:build|install|run|get)\b[^\n]*", path.read_text()):
            assert command.startswith("go build -mod=readonly"), (path.name, command)


def test_go_module_that_somebody_changed_is_refused(tmp_path: Path) -> None:
    """Where no database of sums is asked, too."""
    script = copied("gotool", tmp_path)
    module = tmp_path / "tests/support/components/helm"
    module.mkdir(parents=True)
    requirement = GO_MODULE.replace("@", " ")
    (module / "go.mod").write_text(
        "module made\n\ngo 1.24.0\n\ntool helm.sh/helm/v3/cmd/helm\n\n"
        f"require {requirement} // indirect\n"
    )
    environment = {
        "GOPROXY": f"file://{tmp_path}/proxy",
        "GONOSUMDB": "*",
        "GOFLAGS": "-modcacherw",
        "SNAPLOOM_TEST_CACHE": str(tmp_path / "cache"),
    }
    publish(tmp_path / "proxy", 'package main\n\nfunc main() { println("good") }\n')
    first = {**environment, "GOMODCACHE": str(tmp_path / "first")}
    assert run(["go", "-C", module, "mod", "download", GO_MODULE], **first).returncode == 0
    assert run(["go", "-C", module, "mod", "verify"], **first).returncode == 0
    publish(tmp_path / "proxy", 'package main\n\nfunc main() { println("bad") }\n')
    done = run([script, "helm"], **environment, GOMODCACHE=str(tmp_path / "second"))
    assert done.returncode != 0
    assert "checksum mismatch" in done.stderr
    assert not [*tmp_path.glob("cache/helm-*/helm")]


def publish(proxy: Path, program: str) -> None:
    """A module proxy in a folder, which has one version of one module."""
    name, version = GO_MODULE.split("@")
    folder = proxy / name / "@v"
    folder.mkdir(parents=True, exist_ok=True)
    files = {"go.mod": f"module {name}\n\ngo 1.24.0\n", "cmd/helm/main.go": program}
    (folder / f"{version}.info").write_text(f'{{"Version": "{version}"}}')
    (folder / f"{version}.mod").write_text(files["go.mod"])
    with zipfile.ZipFile(folder / f"{version}.zip", "w") as opened:
        for path, content in files.items():
            opened.writestr(f"{GO_MODULE}/{path}", content)
