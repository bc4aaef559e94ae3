"""What programs may rely on: the names that `import stream_anon` offers, each in a file of its own."""
