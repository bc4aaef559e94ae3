"""The transport and its helpers over kafka-python."""
