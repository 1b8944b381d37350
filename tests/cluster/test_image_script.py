"""The script that builds images."""

import os
import subprocess
from hashlib import sha256

import pytest
from support.cluster.images import BUILD, built_archive
from support.hostile.supply import run, stand_in

pytestmark = pytest.mark.images
DIGEST = f"sha256:{sha256(b'a base').hexdigest()}"
BUILDAH = """
echo "$*" >>"{place}/called"
case " $* " in
  *" inspect "*) echo "{digest}" ;;
  *" from "*) echo container ;;
  *" mount "*) echo "{place}/root" ;;
esac
"""
SKOPEO = 'archive="${@: -1}"; archive="${archive#oci-archive:}"; touch "${archive%%:*}"'


@pytest.mark.node
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_image_that_is_built_already_is_not_built_again():
    archive = built_archive("operator")
    before = archive.stat()
    done = subprocess.run([BUILD, "operator"], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (f"{archive}\n", "")
    assert archive.stat().st_ino == before.st_ino


def test_image_that_does_not_exist_is_refused():
    done = subprocess.run([BUILD, "both"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "There is no image 'both'" in done.stderr


@pytest.fixture
def build(tmp_path):
    """Builds the operator's image on a base, with stand-ins of what builds and writes images."""
    (tmp_path / "root" / "etc").mkdir(parents=True)
    (tmp_path / "root" / "etc" / "os-release").write_text("ID=made\n")
    (tmp_path / "root" / "var/lib/dpkg").mkdir(parents=True)
    (tmp_path / "root" / "var/lib/dpkg/status").write_text("")
    stand_in(tmp_path / "bin", "buildah", BUILDAH.format(place=tmp_path, digest=DIGEST))
    stand_in(tmp_path / "bin", "skopeo", SKOPEO)
    stand_in(tmp_path / "bin", "mvn", "exit 1")

    def on(base):
        path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
        cache = str(tmp_path / "cache")
        done = run([BUILD, "operator"], BASE=base, PATH=path, SNAPLOOM_TEST_CACHE=cache)
        assert done.returncode == 0, done.stderr
        built = [line for line in (tmp_path / "called").read_text().splitlines() if " bud " in line]
        return built[-1], done.stderr

    return on


@pytest.mark.node
@pytest.mark.parametrize(("name", "tag"), [("registry.example:5000/base", ":12"), ("debian", "")])
def test_base_without_a_digest_is_warned_about_and_written_down(name, tag, build):
    built, output = build(f"{name}{tag}")
    assert f"Warning: BASE={name}{tag} names no digest" in output
    assert f"to keep it: BASE={name}@{DIGEST}" in output
    assert f"BASE={name}{tag} " in built
    assert f"--label org.opencontainers.image.base.name={name} " in built
    assert f"--label org.opencontainers.image.base.digest={DIGEST} " in built


@pytest.mark.node
def test_base_with_a_digest_is_taken_by_it(build):
    built, output = build(f"registry.example/base:12@{DIGEST}")
    assert "names no digest" not in output
    assert f"BASE=registry.example/base:12@{DIGEST} " in built
    assert f"--label org.opencontainers.image.base.digest={DIGEST} " in built


@pytest.mark.node
def test_file_of_a_base_without_a_package_is_reported(build, tmp_path):
    (tmp_path / "root" / "usr").mkdir()
    (tmp_path / "root" / "usr" / "extra").write_text("no package has this")
    _, output = build(f"registry.example/base@{DIGEST}")
    assert "of no component of the bill: usr/extra" in output
