"""Access to the Kubernetes API: the port (`Cluster`), its client, the Lease and certificates.

The only package that uses the Kubernetes client; which requests to make is decided elsewhere.
"""
