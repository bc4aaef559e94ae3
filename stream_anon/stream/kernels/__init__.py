"""The hot loops of the stream algorithms. With numba they are compiled; without it the same code runs as it is.

Only the innermost loops exist twice, in numpy for where numba is not installed; both give the same numbers to the last
bit, and of equal choices the one that comes first is taken, so that groups never depend on what is installed.
"""
