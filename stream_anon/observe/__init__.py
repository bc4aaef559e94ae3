"""What can be told of a run without telling anything of the people in it."""
