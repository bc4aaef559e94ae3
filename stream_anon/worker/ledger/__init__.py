"""What a partition remembers between two transactions, and how it fits beside an offset; only this room knows sizes."""
