"""Tables larger than memory: cut into parts of near rows, each anonymized by a process of its own, and put together."""
