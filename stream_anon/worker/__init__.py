"""The Kafka worker: its loop, ownership of partitions, transactions, and recovery after a restart."""
