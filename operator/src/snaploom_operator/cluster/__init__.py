"""Access to the Kubernetes API: the port (`Cluster`) and its adapter, requests and errors.

The only package that uses the Kubernetes client; which requests to make is decided elsewhere.
"""
