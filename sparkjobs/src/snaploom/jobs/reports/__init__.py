"""What a run tells: lines while it goes on, and its Report, in a file or a ConfigMap."""
