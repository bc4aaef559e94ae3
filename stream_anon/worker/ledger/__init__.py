"""The state of a partition between two transactions, and its encoding beside an offset."""
