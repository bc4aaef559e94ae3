"""Runs: sources, engines and sinks put together."""
