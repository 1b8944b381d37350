"""Object stores and file listings through Hadoop's client in Spark's JVM.

HDFS and every other scheme that the client reaches. Buckets that obstore knows are in `storage`.
"""
