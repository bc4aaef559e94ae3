"""A real Apache Kafka on this machine, installed by pip alone."""
