"""Settings are read as strictly as declarations, and a fault is reported with its line."""

from pathlib import Path

import pytest

from snaploom_operator.errors import SettingsInvalid
from snaploom_operator.settings import OperatorSettings, ProtectDependants, read_settings


def written(folder: Path, text: str) -> Path:
    path = folder / "settings.yaml"
    path.write_text(text)
    return path


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, "workers: 3\nadmission:\n  protectDependants: Deny\n")
    settings = read_settings(path)
    assert (settings.workers, settings.resync_seconds) == (3, 600)
    assert settings.admission.protect_dependants is ProtectDependants.DENY


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "null\n"])
def test_nothing_written_means_the_defaults(tmp_path: Path, text: str) -> None:
    assert read_settings(written(tmp_path, text)) == OperatorSettings()
    assert read_settings(None) == OperatorSettings()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("workers: 3\nadmision: {}\n", "settings.yaml:2: there is no field `admision`"),
        ("limits:\n  runs: 0\n", "settings.yaml:2: the value is not allowed"),
        ("workers: three\nlogLevel: loud\n", "(and 1 more faults)"),
        ("workers: 3\nworkers: 4\n", "settings.yaml:2"),
        ("workers: [\n", "settings.yaml:2"),
        ("- workers\n", "settings.yaml:1"),
    ],
)
def test_a_fault_is_reported_with_its_position(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(SettingsInvalid) as raised:
        read_settings(written(tmp_path, text))
    assert expected in str(raised.value)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SettingsInvalid, match="cannot be read"):
        read_settings(tmp_path / "settings.yaml")
