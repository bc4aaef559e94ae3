"""The transport over confluent-kafka."""
