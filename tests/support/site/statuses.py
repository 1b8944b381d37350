"""What the operator writes into the status of an output."""

from support.declared.declarations import Raw

JOIN = {
    "number": 1, "fieldName": "address", "source": "address", "parent": "",
    "relationship": "customer-id", "depth": 1,
}  # fmt: skip
STATUS: Raw = {
    "conditions": [
        {
            "type": "Ready", "status": "True", "reason": "Published",
            "message": "<b>all is published</b>", "lastTransitionTime": "2024-05-02T03:00:00Z",
        }
    ],
    "plan": {"hash": "1", "maxDepth": 1, "joins": [JOIN]},
    "latestSnapshot": {
        "time": "2024-05-02T00:00:00Z", "publishedAt": "2024-05-02T03:00:00Z",
        "partition": "snapshot=2024-05-02", "rows": 1500, "files": 3, "bytes": 4096,
        "sources": [{"fieldName": "address", "source": "address", "time": "2024-05-01T00:00:00Z"}],
        "joins": [{"child": "address", "in": 1500, "out": 1500, "matched": 1200, "nullKeys": 0}],
    },
    "snapshots": [
        {"time": "2024-05-02T00:00:00Z", "rows": 1500},
        {"time": "2024-05-01T00:00:00Z", "rows": 1400},
    ],
    "snapshotCount": 12,
    "lastRun": {
        "id": "ods-wide-1", "phase": "Succeeded", "startedAt": "2024-05-02T02:00:00Z",
        "finishedAt": "2024-05-02T03:00:00Z", "published": 1,
    },
    "manifest": {"uri": "/out/wide/", "sequence": 12, "fixed": {"dataFormat": "PARQUET"}},
}  # fmt: skip
"""What the operator writes of an output that is published."""
