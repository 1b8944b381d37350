"""Hadoop's local files without a process `chmod` for each of them: a jar for the tests' Spark."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path
from zipfile import ZipFile

import pyspark

SOURCE = Path(__file__).resolve().parents[2] / "components" / "localfiles" / "LocalFiles.java"
_SERVICE = "META-INF/services/org.apache.hadoop.fs.FileSystem"
"""Where Java's loader of services finds file systems; of two for a scheme Hadoop takes the last."""


def local_files_jar() -> Path:
    """The jar, behind Spark's own on the class path; made by Java's compiler when it is not there.

    Raises:
        CalledProcessError: it does not compile.
    """
    jar = Path(sys.prefix) / f"local-files-{zlib.crc32(SOURCE.read_bytes()):08x}.jar"
    if jar.exists():
        return jar
    hadoop = Path(pyspark.__path__[0]) / "jars" / "*"
    home = os.environ.get("JAVA_HOME")
    compiler = str(Path(home) / "bin" / "javac") if home else "javac"
    with tempfile.TemporaryDirectory(dir=sys.prefix) as folder:
        command = [compiler, "--release", "17", "-cp", str(hadoop), "-d", folder, str(SOURCE)]
        subprocess.run(command, check=True)
        made = Path(folder) / "made.jar"
        with ZipFile(made, "w") as archive:
            for path in Path(folder).glob("*.class"):
                archive.write(path, path.name)
            archive.writestr(_SERVICE, f"{SOURCE.stem}\n")
        made.replace(jar)
    return jar
