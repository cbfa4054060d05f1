"""Move k3s readiness onto the Executor: locate, rewrite, prove, gate (k3s issue #11896)."""

__version__ = "0.1.0"
