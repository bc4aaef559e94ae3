"""Compare published records with the raw table they were made of."""
