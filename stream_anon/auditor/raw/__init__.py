"""The raw table beside the published one: what only whoever holds both can judge."""
