"""The reference, in a process and a Spark of its own: a question a line, an answer a line.

Knows nothing of Snaploom. Arguments: the jars, separated by commas, and a folder for its files.
"""

import json
import sys

from pyspark.sql import DataFrame, SparkSession

MANAGER = "io.xskipper.metadatastore.parquet.ParquetMetadataStoreManager"
LOCATION = "io.xskipper.parquet.mdlocation"
KMS = "org.apache.parquet.crypto.keytools.mocks.InMemoryKMS"
CRYPTO = "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory"
OPENED = [
    f"--add-opens=java.base/{package}=ALL-UNNAMED"
    for package in ("java.lang", "java.io", "java.net", "java.nio", "java.util", "sun.nio.ch")
]


def start(jars: str, folder: str) -> SparkSession:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", jars)
        .config("spark.driver.extraClassPath", jars.replace(",", ":"))
        .config("spark.driver.extraJavaOptions", " ".join([*OPENED, "-Duser.timezone=UTC"]))
        .config("spark.driver.memory", "1g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.parquet.datetimeRebaseModeInWrite", "CORRECTED")
        .config("spark.sql.parquet.int96RebaseModeInWrite", "CORRECTED")
        .config("spark.sql.warehouse.dir", f"{folder}/warehouse")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    return spark


class Peer:
    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.java = spark._jvm.io.xskipper.Xskipper

    def keys(self, keys):
        """Master keys by label, in base64."""
        conf = self.spark.sparkContext._jsc.hadoopConfiguration()
        conf.set("parquet.encryption.kms.client.class", KMS)
        conf.set("parquet.crypto.factory.class", CRYPTO)
        conf.set("parquet.encryption.key.list", ",".join(f"{k}:{v}" for k, v in keys.items()))

    def write(self, path, text, partitions=()):
        self.spark.sql(text).write.mode("append").partitionBy(*partitions).parquet(path)

    def build(self, path, location, indexes, footer="", kind="EXPLICIT_LOCATION", plaintext=False):
        """Indexes are [type, column, parameters, key label]."""
        store = self._store(path, location, kind, footer, plaintext)
        builder = self.spark._jvm.io.xskipper.index.execution.IndexBuilder(
            self.spark._jsparkSession, path, store
        )
        for name, column, parameters, key in indexes:
            extra = [key] if key else []
            if name == "minmax":
                builder.addMinMaxIndex(column, *extra)
            elif name == "valuelist":
                builder.addValueListIndex(column, *extra)
            elif not parameters:
                builder.addBloomFilterIndex(column, *extra)
            else:
                gateway = self.spark.sparkContext._gateway
                columns = gateway.new_array(gateway.jvm.String, 1)
                columns[0] = column
                named = self._map(parameters)
                bloom = "io.xskipper.index.BloomFilterIndex"
                builder.addCustomIndex(bloom, columns, named, *extra)
        return self._rows(builder.build(self.spark.read.format("parquet")._jreader))

    def describe(self, path, location, kind="EXPLICIT_LOCATION"):
        reader = self.spark.read.format("parquet")._jreader
        return self._rows(self._store(path, location, kind).describeIndex(reader))

    def refresh(self, path, location, kind="EXPLICIT_LOCATION"):
        reader = self.spark.read.format("parquet")._jreader
        return self._rows(self._store(path, location, kind).refreshIndex(reader))

    def query(self, path, where, column, location="", kind="EXPLICIT_LOCATION"):
        """Values of a column, and files skipped; without a location nothing is."""
        if not location:
            frame = self.spark.read.parquet(path).where(where).select(column)
            return {"values": sorted(row[0] for row in frame.collect()), "skipped": 0}
        self.java.set(LOCATION, location)
        self.java.set(f"{LOCATION}.type", kind)
        self.java.enable(self.spark._jsparkSession)
        self.java.clearStats()
        frame = self.spark.read.parquet(path).where(where).select(column)
        values = sorted(row[0] for row in frame.collect())
        (statistics,) = self._rows(
            self.java.getLatestQueryAggregatedStats(self.spark._jsparkSession)
        )
        self.java.disable(self.spark._jsparkSession)
        return {"values": values, "skipped": statistics["skipped_Objs"]}

    def _store(self, path, location, kind, footer="", plaintext=False):
        store = self.spark._jvm.io.xskipper.Xskipper(self.spark._jsparkSession, path, MANAGER)
        parameters = {LOCATION: location, f"{LOCATION}.type": kind}
        if footer:
            parameters["io.xskipper.parquet.encryption.footer.key"] = footer
            parameters["io.xskipper.parquet.encryption.plaintext.footer"] = str(plaintext).lower()
        store.setParams(self._map(parameters))
        return store

    def _map(self, pairs):
        found = self.spark._jvm.java.util.HashMap()
        for key, value in pairs.items():
            found.put(key, value)
        return found

    def _rows(self, frame):
        found = DataFrame(frame, self.spark)
        return [row.asDict() for row in found.collect()]


def main() -> None:
    answers = sys.stdout
    sys.stdout = sys.stderr
    peer = Peer(start(sys.argv[1], sys.argv[2]))
    print(json.dumps({"ready": peer.spark.version}), file=answers, flush=True)
    for line in sys.stdin:
        question = json.loads(line)
        try:
            answer = {"answer": getattr(peer, question.pop("do"))(**question)}
        except Exception as error:  # noqa: BLE001 (whatever it is, the test shows it)
            answer = {"error": f"{type(error).__name__}: {error}"[:4000]}
        print(json.dumps(answer, default=str), file=answers, flush=True)
    peer.spark.stop()


main()
