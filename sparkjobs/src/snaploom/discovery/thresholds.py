"""Bounds of reading, and the evidence needed to declare something.

The figures of relationships were chosen on the data sets of `benchmarks/discovery.py`, which
reports recall and precision: change one only with its figures at hand.
"""

from __future__ import annotations

# What is read.
MOST_FILES = 100_000
"""Files that are listed below one URI: names only, some 100 bytes each."""
TEXT_BYTES = 32 * 1024 * 1024
"""Bytes of one source of text (CSV, JSON) that are read, after decompression."""
HEAD_BYTES = 64 * 1024
"""Bytes at the beginning of a file by which its format is recognised: some hundred records."""
SAMPLE_ROWS = 100_000
"""Rows of one source of which every column is read."""
KEY_ROWS = 1_000_000
"""Rows of one Parquet or ORC source of which columns that may be keys are read."""
AVRO_ROWS = 20_000
"""Rows of one source of Avro that are read: each is taken apart in Python, 20,000 of twelve columns
a second."""
MOST_TABLES = 200
"""Tables of one database that are looked into; each takes some questions to its catalogue."""
DATABASE_ROWS = 20_000
"""Rows of one table of a database that are read: they come over a network, from a server that has
other work."""
MOST_MANIFESTS = 100
"""Manifests of one Iceberg table that are read; each names up to some thousand files."""
SKETCH_VALUES = 65_536
"""Hashes of distinct values that are kept of one column: a share is right to 0.4 % (one sigma)."""
ENOUGH_ROWS = 5_000
"""Rows with which no further snapshot of a source is read."""
MOST_SNAPSHOTS_READ = 5
"""Snapshots of one source that are read, newest first."""
MOST_HEADS = 20
"""Files of one source whose columns are compared with those of its newest snapshot."""

# What declarations hold (`models.datasource`).
LONGEST_NAME = 512
"""Characters of the name of a column."""
LONGEST_URI = 1_900
"""Characters of a path; a glob is longer than it by a few."""

# Keys.
MOST_KEY_COLUMNS = 3
"""Columns of a compound key: four and more are found by chance in small samples."""
MOST_COLUMNS_COMBINED = 12
"""Columns of one source of which sets are tried: 66 pairs and 220 triples."""
LONGEST_KEY_TEXT = 64
"""Characters, on average, of a text that may be part of a key: longer ones are descriptions."""

AGAIN = 1.5
"""Times that a key of a register by day occurs, on average, from which its days are copies."""
COPIED = 0.3
"""Share of all keys that a day of such a register has, on average: it may have grown since."""

# Relationships.
SAME_NAME = 0.8
"""Likeness of names from which they mean the same: equal, or equal but for singular and prefix."""
LIKE_NAME = 0.5
"""Likeness of names from which they may mean the same: an abbreviation, a part of a name."""
INCLUDED_SAME_NAME = 0.6
"""Share of values that must be in the parent where names are the same: registers lag behind."""
INCLUDED_LIKE_NAME = 0.9
"""Share where names are only alike."""
INCLUDED_OTHER_NAME = 0.95
"""Share where names have nothing in common: of 92 airports that flights go to, 88 are known."""
DISTINCTIVE_VALUES = 5
"""Distinct texts from which inclusion is evidence without a name: fewer (M, F) fit anywhere."""
FEW_VALUES = 3
"""Distinct texts that are enough where the parent has at least `WIDE_PARENT` times as many."""
WIDE_PARENT = 20
DENSE_SHARE = 0.5
"""Share of the whole numbers between least and greatest from which they are a sequence. Numbers of
a sequence from about 1 on are in every longer sequence, so that inclusion proves nothing."""
SEQUENCE_START = 1_000
"""Least value up to which a dense sequence counts as one that begins at 1."""
INCLUDED_COMPOUND = 0.8
"""Share of value combinations for a compound key, all of whose names must be alike."""
WEAK_SHARE = 0.95
"""Share from which a relationship that is not declared is shown as a comment."""
MOST_WEAK = 10
"""Weak relationships that are shown."""

# The output.
MOST_ELEMENTS = 200
"""Rows a key, on average, up to which a child is grouped: an array is repeated in every row."""
MOST_JOINS = 60
"""Sources of one output, roles included."""
DEEPEST_JOIN = 6
"""Joins between the root and a source."""
