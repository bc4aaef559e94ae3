"""A real Apache Kafka on this machine, brought by pip alone."""
