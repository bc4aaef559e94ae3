"""From the text of a policy file to plain data that remembers where each word stands."""
