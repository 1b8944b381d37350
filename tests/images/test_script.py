"""The script that builds images."""

import subprocess

import pytest
from support.images import BUILD, image_archive


@pytest.mark.node
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_image_that_is_built_already_is_not_built_again():
    archive = image_archive("operator")
    before = archive.stat()
    done = subprocess.run([BUILD, "operator"], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (f"{archive}\n", "")
    assert archive.stat().st_ino == before.st_ino


def test_image_that_does_not_exist_is_refused():
    done = subprocess.run([BUILD, "both"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "There is no image 'both'" in done.stderr
