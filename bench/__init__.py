"""The benchmark: `make bench` measures the product beside a baseline in the same run."""
