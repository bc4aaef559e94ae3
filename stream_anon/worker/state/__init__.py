"""What a worker holds between polls: partitions, rows that wait, dead letters."""
