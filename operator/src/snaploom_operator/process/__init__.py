"""The operator as a process: loop, queue, endpoints, logs and figures."""
