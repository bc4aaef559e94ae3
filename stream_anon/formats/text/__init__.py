"""Text as it comes: its encoding, its lines, and files of them."""
