"""Anonymize Spark DataFrames where they lie: needs `pip install 'stream-anon[spark]'`."""

from stream_anon.spark.anonymize import SparkResult, anonymize

__all__ = ["SparkResult", "anonymize"]
