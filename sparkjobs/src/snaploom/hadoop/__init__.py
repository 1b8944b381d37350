"""File systems as Hadoop's client in Spark's JVM knows them: HDFS, and whatever else it reaches."""
