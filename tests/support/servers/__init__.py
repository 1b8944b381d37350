"""Real servers that tests start, and proxies before them: S3, databases, OpenSearch, HDFS, keys."""
