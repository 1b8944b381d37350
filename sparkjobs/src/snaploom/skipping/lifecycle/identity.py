"""What "the same file" means where an index's files are, for people.

Path, length and modification time are compared everywhere. What else is depends on what the place
of the files reports about them, and so on what was written down when they were indexed.
"""

from __future__ import annotations

from snaploom.skipping.core.filetable import FileTable

_EVERYWHERE = "path, length and modification time in milliseconds"
_LOCAL = "inode and time of its last change"
_HDFS = "the number that HDFS gave the file"
_STORE = "the store's tag of the content"

_FURTHER = {"file": _LOCAL, "hdfs": _HDFS, "webhdfs": _HDFS, "swebhdfs": _HDFS}
"""What is compared beside these, by the scheme of the place."""


def same_file(target_uri: str, files: FileTable) -> str:
    """By what files are known to be as they were indexed; empty where none is indexed.

    Args:
        target_uri: Hadoop path of the target, whose scheme decides the kind of store.
        files: the rows about the files.
    """
    if not files.count:
        return ""
    further = _FURTHER.get(target_uri.partition(":")[0], _STORE)
    tagged = files.count - files.column("etag").null_count
    if tagged == files.count:
        return f"{_EVERYWHERE}, {further}"
    unnoticed = "a rewrite that keeps both is not noticed"
    if not tagged:
        return f"{_EVERYWHERE}; {unnoticed}"
    rest = files.count - tagged
    return f"{_EVERYWHERE}, {further}; of {rest:,} files not the last, so {unnoticed} of them"
