"""Bytes and tables to records, groups to bytes and tables: JSON lines, CSV, Parquet, frames in memory."""
