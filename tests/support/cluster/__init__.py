"""Real Kubernetes: control plane, node, images, chart, Argo CD, and the whole way on them."""
