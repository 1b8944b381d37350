"""One version number is written into every file that has it."""

import shutil
from pathlib import Path

import pytest
from generation.versions import (
    PLACES,
    ROOT,
    project_version,
    semantic_version,
    version_drift,
    write_versions,
)


@pytest.mark.parametrize(
    ("version", "expected"),
    [("1.2.3", "1.2.3"), ("1.2.3.dev0", "1.2.3-dev.0"), ("1.2.3rc2", "1.2.3-rc.2"),
     ("1.2.3a1", "1.2.3-alpha.1")],
)  # fmt: skip
def test_python_version_is_written_as_helm_wants_it(version, expected):
    assert semantic_version(version) == expected


@pytest.mark.parametrize("version", ["1.2", "1.2.3.post1", "1.2.3+local", "latest"])
def test_version_of_another_form_is_refused(version):
    with pytest.raises(ValueError, match=r"expected 1\.2\.3"):
        semantic_version(version)


def test_no_file_of_the_checkout_has_another_version():
    assert list(version_drift()) == []


def test_another_number_is_written_everywhere(tmp_path: Path):
    for name in ("pyproject.toml", *(place.path for place in PLACES)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    project = tmp_path / "pyproject.toml"
    now = f'version = "{project_version()}"'
    project.write_text(project.read_text().replace(now, 'version = "7.8.9.dev1"'))
    assert len(list(version_drift(tmp_path))) == len({place.path for place in PLACES})
    write_versions(tmp_path)
    assert list(version_drift(tmp_path)) == []
    assert "version: 7.8.9-dev.1" in (tmp_path / "charts/snaploom/Chart.yaml").read_text()
    assert '"snaploom==7.8.9.dev1"' in (tmp_path / "operator/pyproject.toml").read_text()
