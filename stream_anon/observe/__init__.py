"""What a running worker tells about itself: metrics, health and logs, never a value of a record."""
