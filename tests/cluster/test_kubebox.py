"""The script that builds kubebox: once, safely, and with clear words where it cannot."""

import shutil
import subprocess
from pathlib import Path

import pytest
from support.cluster.kubebox import BUILD

TOOLS = "bash cat chmod cksum cut dirname flock head id mkdir mv sed sort"
GO = """#!/bin/sh
case "$1" in
  env) echo go{version} ;;
  version) echo go version go{version} ;;
  build)
    echo build >> {log}
    while [ "$1" != -o ]; do shift; done
    echo program > "$2" && chmod +x "$2" ;;
esac
"""


@pytest.fixture
def bin_folder(tmp_path):
    """A PATH of its own with what the script needs, but neither Go nor apt."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in TOOLS.split():
        (folder / tool).symlink_to(shutil.which(tool))
    return folder


@pytest.fixture
def environment(tmp_path, bin_folder):
    return {"PATH": str(bin_folder), "SNAPLOOM_TEST_CACHE": str(tmp_path / "cache")}


def put_go(bin_folder, log, version="1.26.1"):
    (bin_folder / "go").write_text(GO.format(version=version, log=log))
    (bin_folder / "go").chmod(0o755)


def start(environment):
    pipe = subprocess.PIPE
    return subprocess.Popen([BUILD], env=environment, stdout=pipe, stderr=pipe, text=True)


def test_processes_at_once_build_it_once(tmp_path, bin_folder, environment):
    put_go(bin_folder, tmp_path / "log")
    ends = [builder.communicate() for builder in [start(environment) for _ in range(4)]]
    (path,) = {Path(stdout.strip()) for stdout, _ in ends}
    assert path.read_text() == "program\n"
    assert (tmp_path / "log").read_text() == "build\n"
    assert [name.name for name in path.parent.iterdir() if "building" in name.name] == []


def test_what_was_built_is_found_without_go(tmp_path, bin_folder, environment):
    put_go(bin_folder, tmp_path / "log")
    first, _ = start(environment).communicate()
    (bin_folder / "go").unlink()
    assert start(environment).communicate() == (first, "")


@pytest.mark.parametrize("version", [None, "1.19.8"])
def test_missing_or_old_go_is_reported_with_what_to_do(tmp_path, bin_folder, environment, version):
    if version is not None:
        put_go(bin_folder, tmp_path / "log", version)
    builder = start(environment)
    _, stderr = builder.communicate()
    assert builder.returncode == 1
    assert (
        "with Go 1.24 or newer; found: " + (f"go version go{version}" if version else "none")
        in stderr
    )
    assert "SNAPLOOM_TEST_KUBECONFIG=" in stderr
