"""The operator process: reconcile loop, leader election, endpoints and logs.

Rules are in `decide`, watches in `watch`, the webhook's process in `admission`.
"""
