"""The state of a worker between polls: partitions, waiting rows, dead letters."""
