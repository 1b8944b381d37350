"""CSV, JSON, XML and text: records and values that Spark would pass over or change.

Pure Spark over lines of files: how CSV is read, where its records end, which values a declared type
would lose. Which files these are, and when they are looked at, is in the package above.
"""
