#!/usr/bin/env bash
# Makes the environments of the peers: neither runs on the Spark that Snaploom is pinned to, so each
# has its own PySpark, the nearest that its runtime supports. Usage: environment.sh FOLDER
set -euo pipefail
folder="$1"
python="${PYTHON:-python3}"

peer() { # name, pyspark version, coordinates ...
  local name="$1" version="$2"
  shift 2
  if [ -f "$folder/$name/.installed" ] && [ "$(cat "$folder/$name/.installed")" = "$version $*" ]; then
    return
  fi
  echo "Setting up $name on PySpark $version ..." >&2
  "$python" -m venv "$folder/$name"
  "$folder/$name/bin/python" -m pip install --quiet --disable-pip-version-check "pyspark==$version"
  for coordinate in "$@"; do
    mvn --quiet dependency:copy "-Dartifact=$coordinate" "-DoutputDirectory=$folder/$name/jars" >&2
  done
  echo "$version $*" > "$folder/$name/.installed"
}

mkdir -p "$folder"
peer delta 4.2.0 io.delta:delta-spark_4.2_2.13:4.4.0 io.delta:delta-storage:4.4.0
peer iceberg 4.1.4 org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0
