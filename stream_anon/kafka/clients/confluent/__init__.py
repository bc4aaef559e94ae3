"""The transport and its helpers over confluent-kafka."""
