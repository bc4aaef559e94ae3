"""File formats: read records from JSON lines, CSV and Parquet, and write groups to them."""
