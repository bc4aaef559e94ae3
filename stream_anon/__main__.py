"""`python -m stream_anon`, for where the console script is not on the path."""

from stream_anon.cli import main

if __name__ == "__main__":
    main()
