"""One check per thing that can be added: it raises an AssertionError that names the broken rule."""
