"""Published files as a relation of Spark whose files are those of the manifest.

`spark.read.load(files)` looks at each of them before it has seen a query, 100,000 files of 10,000
snapshots included. Here Spark has a file index of ours (`java/PublishedFiles.java`): it is asked
when the query is planned, chooses snapshots by their partition values, and only then learns the
names of their files, for which the manifest's entries are read.
"""
