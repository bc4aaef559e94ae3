"""`stream-anon schema`: print the JSON Schema of the policy file for editors; it knows the form, not the rules."""

from __future__ import annotations

from stream_anon.cli import output
from stream_anon.policy import Policy


def schema() -> None:
    """Print the JSON Schema of the policy file.

    An editor with a YAML language server completes and checks a policy that begins with

        # yaml-language-server: $schema=policy.schema.json

    [bold]Example[/bold]

        stream-anon schema > policy.schema.json
    """
    described = Policy.model_json_schema()
    output.print_json(
        {"$schema": "https://json-schema.org/draft/2020-12/schema", **described, "title": "stream-anon policy"}
    )
