"""agentd: from one sentence to reviewed specs, proved code and an updated spec archive."""

__version__ = "0.1.0"
