"""The console script, also as `python -m stream_anon`."""

from __future__ import annotations

import sys

from stream_anon import __version__


def main() -> None:
    """Run one command; the version is printed without loading any of them."""
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"stream-anon {__version__}\n")
        return
    from stream_anon.cli import run_command
    from stream_anon.cli.small import compile_if_worthwhile

    compile_if_worthwhile(sys.argv[1:])
    sys.exit(run_command(sys.argv[1:]))


if __name__ == "__main__":
    main()
