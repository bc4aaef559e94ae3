"""The transport over kafka-python."""
