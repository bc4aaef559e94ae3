"""Kafka as the worker sees it: one transport contract, two client libraries, a local broker for trials."""
