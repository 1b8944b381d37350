"""Lists and watches Kubernetes objects into the store, for the controller and the webhook.

The store itself is in `store`, requests to the API server are in `cluster`; what follows from a
change is decided elsewhere.
"""
