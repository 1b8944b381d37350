"""Files and object stores: one port to local folders and buckets."""
