"""A bill of materials against the files of an image, in both directions."""

import json
import os
import re
import shutil
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packageurl import PackageURL
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
    script,
    stand_in,
    sum_of,
    wheel,
)

SBOM = script("sbom")
CHECK = script("sbomcheck")
SITE = "opt/snaploom/python/lib/python3.11/site-packages"
JAR = "opt/spark/jars/made-1.0.jar"


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """The files of an image with one package of each kind; folders are links, as in Debian."""
    write(tmp_path / "etc/os-release", 'ID=debian\nVERSION_ID="12"\n')
    write(tmp_path / "usr/bin/tool", "a program")
    (tmp_path / "bin").symlink_to("usr/bin")
    (tmp_path / SITE).mkdir(parents=True)
    add_debian(tmp_path, "tool", "1.0", ["/etc/os-release", "/bin", "/bin/tool"])
    add_python(tmp_path, "woven", ["woven.py", "../../../bin/woven"])
    write(tmp_path / SITE / "__pycache__" / "woven.cpython-311.pyc", "compiled")
    add_jar(tmp_path / JAR)
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def add_debian(root: Path, name: str, version: str, paths: list[str]) -> None:
    status = root / "var/lib/dpkg/status"
    text = status.read_text() if status.exists() else ""
    fields = f"Package: {name}\nStatus: install ok installed\nArchitecture: amd64\n"
    write(status, f"{text}{fields}Source: made-{name} (9)\nVersion: {version}\n\n")
    write(
        root / f"var/lib/dpkg/info/{name}:amd64.list",
        "/.\n" + "".join(f"{path}\n" for path in paths),
    )


def add_python(root: Path, name: str, paths: list[str]) -> None:
    for path in paths:
        write(root / SITE / path, "text")
    written = [*paths, f"{name}-1.0.dist-info/METADATA", f"{name}-1.0.dist-info/RECORD"]
    folder = root / SITE / f"{name}-1.0.dist-info"
    write(folder / "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    write(folder / "RECORD", "".join(f"{path},,\n" for path in written))


def add_jar(path: Path, content: str = "classes") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as opened:
        opened.writestr("content", content)


def difference(root: Path, bill: str):
    return CHECK.difference(root, CHECK.parts_of(bill))


def bill_of(root: Path) -> str:
    bill: str = SBOM.bill(root, "made", "1")
    return bill


def test_bill_of_an_image_names_all_that_is_in_it(image: Path) -> None:
    found = difference(image, bill_of(image))
    assert (found.unnamed, found.absent, str(found)) == ((), (), "")


@pytest.mark.parametrize(
    ("add", "path"),
    [
        pytest.param(
            lambda root: write(root / "usr/bin/extra", "x"), "usr/bin/extra", id="program"
        ),
        pytest.param(lambda root: write(root / SITE / "x.pth", "x"), f"{SITE}/x.pth", id="python"),
        pytest.param(
            lambda root: write(root / "etc/ld.so.preload", "x"), "etc/ld.so.preload", id="setting"
        ),
        pytest.param(
            lambda root: write(root / SITE / "__pycache__/x.cpython-311.pyc", "x"),
            f"{SITE}/__pycache__/x.cpython-311.pyc",
            id="only compiled",
        ),
        pytest.param(
            lambda root: add_jar(root / "opt/spark/jars/more/x-1.jar", "more"),
            "opt/spark/jars/more/x-1.jar",
            id="jar in a folder",
        ),
        pytest.param(lambda root: add_jar(root / JAR, "other"), JAR, id="jar in place of another"),
        pytest.param(
            lambda root: (
                add_debian(root, "more", "2", ["/bin/more", "/bin"])
                or write(root / "usr/bin/more", "x")
            ),
            "usr/bin/more",
            id="debian",
        ),
        pytest.param(
            lambda root: add_python(root, "more", ["more.py"]), f"{SITE}/more.py", id="distribution"
        ),
    ],
)
def test_file_that_came_after_the_bill_is_named(add, path, image):
    bill = bill_of(image)
    add(image)
    found = difference(image, bill)
    assert path in found.unnamed
    assert f"of no component of the bill: {path}" in str(found)


@pytest.mark.parametrize(
    ("gone", "purl"),
    [
        ("usr/bin/tool", "pkg:deb/debian/tool@1.0"),
        (SITE, "pkg:pypi/woven@1.0"),
        (JAR, "pkg:generic/made@1.0"),
    ],
)
def test_component_without_a_file_is_named(gone: str, purl: str, image: Path) -> None:
    bill = bill_of(image)
    for path in (image / gone, image / "etc/os-release", image / "opt/snaploom/python/bin/woven"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    absent = {PackageURL.from_string(each) for each in difference(image, bill).absent}
    assert purl in {each._replace(qualifiers={}, subpath=None).to_string() for each in absent}


def test_two_jars_of_one_name_are_both_in_the_bill(image: Path) -> None:
    add_jar(image / "opt/spark/other" / Path(JAR).name, "other classes")
    found = difference(image, bill_of(image))
    assert found.unnamed == ()


def test_debian_packages_are_named_as_in_advisories(image: Path) -> None:
    (purl,) = [
        PackageURL.from_string(each["purl"])
        for each in json.loads(bill_of(image))["components"]
        if each["purl"].startswith("pkg:deb/")
    ]
    assert purl.qualifiers == {"arch": "amd64", "distro": "debian-12", "upstream": "made-tool@9"}


AUDIT = script("audit")
ENVIRONMENT = pins_of(SCRIPTS / "locks" / "environment.txt")
DEB = "pkg:deb/debian/libblkid1@2.38.1-5?arch=amd64&distro=debian-12&upstream=util-linux%402.38.1-5"


def advisory(ecosystem: str, name: str, *events: dict[str, str], **more: Any) -> dict[str, Any]:
    kind = "SEMVER" if ecosystem == "Go" else "ECOSYSTEM"
    affected = {"package": {"ecosystem": ecosystem, "name": name}}
    ranges = {"ranges": [{"type": kind, "events": list(events)}]} if events else {}
    return {"id": "OSV-1", "summary": "a hole", "affected": [affected | ranges | more]}


def held(purl: str):
    return AUDIT.Held(AUDIT.PackageURL.from_string(purl), "made")


def meets(document: dict[str, Any], purl: str) -> bool:
    known = AUDIT.Advisory.model_validate(document)
    return bool(list(AUDIT.audit([known], [held(purl)])))


def audited(advisories: Path | str, *bills: Path):
    return run([sys.executable, SCRIPTS / "audit.py", advisories, *bills])


@pytest.mark.parametrize(
    ("ecosystem", "name", "purl", "fixed", "is_met"),
    [
        ("PyPI", "Made_It", "pkg:pypi/made-it@1.9", "1.10", True),
        ("PyPI", "made-it", "pkg:pypi/made-it@1.10", "1.10rc1", False),
        ("PyPI", "made", "pkg:pypi/made-it@1.0", "2", False),
        ("Go", "a.io/b/v2", "pkg:golang/a.io/b/v2@2.0.0-20240101000000-abcdef", "2.0.1", True),
        ("Go", "a.io/b", "pkg:golang/a.io/b@2.3.0+incompatible", "2.3.0", False),
        (
            "Maven",
            "io.netty:netty",
            "pkg:maven/io.netty/netty@4.1.100.Final",
            "4.1.108.Final",
            True,
        ),
        ("Maven", "io.netty:netty", "pkg:maven/other/netty@4.1.100.Final", "4.1.108.Final", False),
        ("Maven", "io.netty:netty", "pkg:generic/netty@4.1.100.Final", "4.1.108.Final", True),
        ("Debian:12", "util-linux", DEB, "2.38.1-5+deb12u1", True),
        ("Debian:12", "util-linux", DEB, "2.38.1-5~deb12u1", False),
        ("Debian", "util-linux", DEB, "2.39", True),
        ("Debian:13", "util-linux", DEB, "2.39", False),
        ("Ubuntu:24.04:LTS", "util-linux", DEB, "2.39", False),
        ("npm", "made-it", "pkg:pypi/made-it@1.0", "2", False),
    ],
)
def test_versions_have_the_order_of_their_ecosystem(ecosystem, name, purl, fixed, is_met):
    document = advisory(ecosystem, name, {"introduced": "0"}, {"fixed": fixed})
    assert meets(document, purl) is is_met


@pytest.mark.parametrize(
    ("version", "is_met"),
    [("0.9", False), ("1", True), ("1.4", True), ("1.5", False), ("2", True), ("2.1", False)],
)
def test_several_ranges_are_kept_apart(version: str, is_met: bool) -> None:
    events = [{"fixed": "1.5"}, {"introduced": "2"}, {"last_affected": "2.0"}, {"introduced": "1"}]
    assert meets(advisory("PyPI", "made", *events), f"pkg:pypi/made@{version}") is is_met


def test_versions_that_are_listed_are_met() -> None:
    document = advisory("PyPI", "made", versions=["1.0", "1.2"])
    assert [meets(document, f"pkg:pypi/made@{each}") for each in ("1.0", "1.1")] == [True, False]


def test_a_version_that_is_listed_in_another_spelling_is_met() -> None:
    document = advisory("PyPI", "made", {"introduced": "9"}, versions=["1.0", "no version"])
    assert meets(document, "pkg:pypi/made@1.0.0")


@pytest.mark.parametrize(("version", "is_met"), [("1.4", True), ("1.5", True), ("1.6", False)])
def test_a_range_that_begins_where_another_ends_is_met(version: str, is_met: bool) -> None:
    events = [{"introduced": "1.5"}, {"fixed": "1.6"}, {"introduced": "1"}, {"fixed": "1.5"}]
    assert meets(advisory("PyPI", "made", *events), f"pkg:pypi/made@{version}") is is_met


def test_version_without_an_order_is_named_in_doubt() -> None:
    document = advisory("PyPI", "made", {"introduced": "5"})
    assert meets(document, "pkg:pypi/made@of-somebodys-own")


@pytest.mark.parametrize("form", ["file", "list", "folder", "zip"])
def test_what_is_locked_and_vulnerable_is_named(form: str, tmp_path: Path) -> None:
    document = advisory("PyPI", "aiohttp", {"introduced": "0"}, {"fixed": "99.1"}) | {
        "aliases": ["CVE-1"]
    }
    done = audited(stored(document, form, tmp_path))
    assert done.returncode == 1, done.stderr
    first, last = done.stdout.splitlines()
    version = ENVIRONMENT["aiohttp"].version
    assert first.startswith(f"OSV-1, CVE-1: aiohttp {version} (.ci/locks/environment.txt, ")
    assert first.endswith("): a hole; fixed in 99.1")
    assert last.startswith("1 known vulnerability")


def stored(document: dict[str, Any], form: str, place: Path) -> Path:
    if form == "zip":
        with zipfile.ZipFile(place / "all.zip", "w") as opened:
            opened.writestr("OSV-1.json", json.dumps(document))
        return place / "all.zip"
    path = place / "OSV-1.json"
    path.write_text(json.dumps([document] if form == "list" else document))
    return place if form == "folder" else path


def test_modules_jars_and_bills_are_audited(tmp_path: Path) -> None:
    documents = [
        advisory("Go", "k8s.io/kubernetes", {"introduced": "1.30.0"}, {"fixed": "1.34.99"}),
        advisory("Maven", "software.amazon.awssdk:s3", {"introduced": "0"}),
        advisory("Debian:12", "util-linux", {"introduced": "0"}),
    ]
    (tmp_path / "known.json").write_text(json.dumps(documents))
    bill = tmp_path / "operator.cdx.json"
    bill.write_text(json.dumps({"components": [{"purl": DEB}]}))
    done = audited(tmp_path / "known.json", bill)
    assert done.returncode == 1, done.stderr
    for place in (
        "tests/cluster/kubebox/go.mod",
        "tests/support/components/s3a/SHA256SUMS",
        bill.name,
    ):
        assert place in done.stdout


def test_nothing_known_ends_with_zero(tmp_path: Path) -> None:
    withdrawn = advisory("PyPI", "aiohttp", {"introduced": "0"}) | {
        "withdrawn": "2026-01-01T00:00:00Z"
    }
    other = advisory("PyPI", "aiohttp", {"introduced": "0"}, {"fixed": "0.1"})
    (tmp_path / "known.json").write_text(json.dumps([withdrawn, other]))
    done = audited(tmp_path / "known.json")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("0 known vulnerabilities")
    assert "no bill of materials was given" in done.stdout


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("", None, "ADVISORIES"),
        ("absent.json", None, "cannot be read"),
        ("known.json", "{}", "no advisory in OSV's form"),
        ("known.json", "[", "no advisory in OSV's form"),
        ("known.json", "[]", "holds no advisories"),
        ("all.zip", "no archive", "cannot be read"),
    ],
)
def test_audit_that_cannot_be_made_is_no_good_news(name, text, words, tmp_path):
    if text is not None:
        (tmp_path / name).write_text(text)
    done = audited(tmp_path / name if name else "")
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr


def test_every_package_of_the_locks_is_audited() -> None:
    """What the audit reads of the files is what other tests read of them."""
    found = {(each.purl.name, each.place) for each in AUDIT.locked()}
    for lock in LOCKS:
        assert {(name, f".ci/locks/{lock.name}") for name in pins_of(lock)} <= found
    jars = set(COMPONENTS.glob("*/SHA256SUMS"))
    lines = sum(len(path.read_text().splitlines()) for path in jars)
    assert len([each for each in AUDIT.locked() if each.place.endswith("SHA256SUMS")]) == lines


@pytest.mark.parametrize("name", ["kubebox", "sparkoperator", "argocd"])
def test_every_module_is_audited_as_it_is_built(name: str) -> None:
    """Replaced modules by what takes their place, as Go itself lists them."""
    module = REPOSITORY / "tests" / "cluster" / name
    done = run(["go", "-C", module, "mod", "edit", "-json"], GOTOOLCHAIN="local")
    listed = json.loads(done.stdout)
    replaced = {each["Old"]["Path"]: each["New"] for each in listed.get("Replace") or ()}
    wanted = {
        (built["Path"], built["Version"].removeprefix("v"))
        for each in listed["Require"]
        for built in [replaced.get(each["Path"], each)]
    }
    place = f"tests/cluster/{name}/go.mod"
    found = [each.purl for each in AUDIT.locked() if each.place == place]
    assert wanted <= {
        ("/".join(filter(None, [one.namespace, one.name])), one.version) for one in found
    }


# What is fetched is what is locked: Python's packages, jars and Go modules.


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
JAR_NAME = b"a jar, as its repository had it when it was locked"
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
        pytest.param({"a-1.jar": JAR_NAME}, True, id="locked"),
        pytest.param({"a-1.jar": b"another"}, False, id="changed"),
        pytest.param({"a-1.jar": JAR_NAME, "b-1.jar": JAR_NAME}, False, id="one more"),
        pytest.param({"b-1.jar": JAR_NAME}, False, id="another name"),
    ],
)
def test_jars_are_those_that_are_locked(brought, is_taken, tmp_path):
    component = tmp_path / "tests/support/components/made"
    for folder in (component, tmp_path / "repository"):
        folder.mkdir(parents=True)
    (component / "pom.xml").write_text("<project/>")
    (tmp_path / "repository" / "a-1.jar").write_bytes(JAR_NAME)
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


def test_of_a_jar_in_two_versions_that_of_the_later_component_is_taken(tmp_path: Path) -> None:
    components = tmp_path / "tests/support/components"
    for name, jars in {"new": ("a-2.jar", "a-b-1.jar"), "old": ("a-1.jar",)}.items():
        folder = components / name
        folder.mkdir(parents=True)
        (folder / "pom.xml").write_text("<project/>")
        for jar in jars:
            (folder / jar).write_text(jar)
        lines = [f"{sum_of(folder / jar)}  {jar}\n" for jar in jars]
        (folder / "SHA256SUMS").write_text("".join(lines))
    maven = 'for each; do case "$each" in -DoutputDirectory=*) to="${each#*=}" ;; esac; done'
    taken = 'case "$*" in *new/pom.xml*) cp -r new "$to" ;; *) cp -r old "$to" ;; esac'
    stand_in(tmp_path / "bin", "mvn", f"{maven}\n{taken}")
    place = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    done = run([copied("jars", tmp_path), "new", "old"], **place, SNAPLOOM_TEST_CACHE=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert {path.name for path in Path(done.stdout.strip()).iterdir()} == {"a-1.jar", "a-b-1.jar"}


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
