"""`.ci/kind`, by kind itself; Docker and the node that it would run are played by a script."""

import os

import pytest
from support.documentation.examples import REPOSITORY
from support.hostile.supply import run, stand_in

SCRIPT = REPOSITORY / ".ci" / "kind"
DOCKER = r"""
echo "$*" | tr '\n' ' ' >>{place}/called; echo >>{place}/called
case "$*" in
  {refused}) echo "No room left" >&2; exit 1 ;;
  info*) echo "{{}}" ;;
  run*) echo "$3" >{place}/node ;;
  "ps "*.Names*) cat {place}/node 2>/dev/null || true ;;
  logs*) echo "Reached target Multi-User System." ;;
  inspect*role*) echo control-plane ;;
  inspect*IPAddress*) echo "172.18.0.2,fc00::2" ;;
  inspect*NetworkSettings.Ports*) printf '127.0.0.1\t6443\n' ;;
  *"cat /kind/version") echo v1.37.0 ;;
  *admin.conf) echo 'clusters: [{{name: c, cluster: {{server: "https://node:6443"}}}}]'
    echo 'users: [{{name: u, user: {{}}}}]'
    echo 'contexts: [{{name: x, context: {{cluster: c, user: u}}}}]' ;;
  *"config dump") echo 'version = 3'
    printf '[plugins."io.containerd.cri.v1.images"]\nsnapshotter = "s"\n' ;;
  *"get nodes"*) echo True ;;
  *"images import"*) cat >>{place}/imported ;;
  rm*) rm {place}/node ;;
  save*) echo "archive of $4" >"$3" ;;
esac
"""


@pytest.fixture
def beside_kind(tmp_path):
    """Run a command beside a cluster; what Docker was called with, and how the script ended."""

    def beside(*command, refused="nothing"):
        stand_in(tmp_path / "bin", "docker", DOCKER.format(place=tmp_path, refused=refused))
        path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
        done = run([SCRIPT, *command], PATH=path, KIND_EXPERIMENTAL_PROVIDER="docker")
        return (tmp_path / "called").read_text().splitlines(), done

    return beside


def test_command_finds_a_cluster_that_has_the_images(beside_kind, tmp_path):
    called, done = beside_kind("bash", "-c", 'cat "$E2E_KUBECONFIG"')
    assert done.returncode == 0, done.stderr
    assert "server: https://127.0.0.1:6443" in done.stdout
    assert (tmp_path / "imported").read_text() == (
        "archive of docker.io/library/snaploom-operator:test\n"
        "archive of docker.io/library/snaploom-spark:test\n"
    )
    started = next(line for line in called if line.startswith("run "))
    assert "kindest/node:" in started
    assert "@sha256:" in started
    assert called[-1].startswith("rm -f -v snaploom-")


@pytest.mark.parametrize("refused", ["build*", "run*", "*kubeadm*init*", "*import*"])
def test_command_is_not_run_when_there_is_no_cluster(refused, beside_kind, tmp_path):
    _, done = beside_kind("echo", "is run", refused=refused)
    assert done.returncode != 0
    assert "is run" not in done.stdout
    assert "No room left" in done.stderr
    assert not (tmp_path / "node").exists()


def test_cluster_of_a_command_that_fails_is_deleted(beside_kind, tmp_path):
    _, done = beside_kind("bash", "-c", "exit 7")
    assert done.returncode == 7
    assert not (tmp_path / "node").exists()


def test_engine_that_does_not_work_is_named_in_a_line(beside_kind):
    called, done = beside_kind("true", refused="*")
    assert (called, done.returncode, done.stdout) == (["info "], 1, "")
    (line,) = done.stderr.splitlines()
    assert line.endswith("Docker, Podman or nerdctl: docker does not work: No room left")


def test_engine_that_is_missing_is_named_in_a_line():
    done = run([SCRIPT, "true"], KIND_EXPERIMENTAL_PROVIDER="absent")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "Not run: kind needs Docker, Podman or nerdctl: absent is not installed\n"
