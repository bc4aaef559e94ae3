"""What must hold between the parts of a policy; each rule names the key to change. What one part may be is its model's.

The rules of a single hierarchy or privacy model are in its own module.
"""

from __future__ import annotations

from collections.abc import Iterator

from stream_anon.core.fields import FieldUse, PublishSettings, publish_problems
from stream_anon.core.hierarchy.settings import at, hierarchy_problems
from stream_anon.core.privacy import ColumnModelSettings
from stream_anon.errors import Problem, nearest
from stream_anon.policy.attributes import QuasiIdentifier, Sensitive
from stream_anon.policy.policy import Policy
from stream_anon.policy.reading.scalars import MAKE_RANDOM
from stream_anon.policy.settings import CailSettings

RESERVED = "_anon"
"""The field in which a published record tells of its group."""

SHORTEST_SECRET = 32
"""Characters. Whoever can describe a group tries guesses offline, and a right one tells rows from offsets."""

FEWEST_CHARACTERS = 8
"""Different ones in a secret: random text of that length has more, a repeated word may not."""

_MAKE_ONE = f"make one: {MAKE_RANDOM}"


def problems(policy: Policy) -> list[Problem]:
    """Every rule the policy breaks; none for a policy that can be used."""
    return [
        *_names(policy),
        *_subject(policy),
        *_secret(policy),
        *_attributes(policy),
        *_read_fields(policy),
        *_published(policy),
        *_privacy(policy),
        *_stream(policy),
        *_algorithm(policy),
        *_topics(policy),
        *_registry(policy),
    ]


def people(policy: Policy) -> int:
    """Return the largest k the policy asks for."""
    return max((model.people for model in policy.privacy), default=0)


def _names(policy: Policy) -> Iterator[Problem]:
    for name in policy.attributes:
        path = ("attributes", name)
        parts = name.split(".")
        if "" in parts or any(part != part.strip() for part in parts):
            hint = "write the path of a nested field like person.address.zip"
            yield Problem(path, "bad-name", "a part of this dotted name is empty or padded", hint)
        if any(not character.isprintable() or character in '"`\\$' for character in name):
            hint = "rename the field before it gets here"
            yield Problem(
                path, "bad-name", "a name cannot hold quotes, back-ticks, backslashes, $ or control characters", hint
            )
        if name.startswith(RESERVED):
            hint = "rename the field before it gets here"
            yield Problem(path, "reserved-name", f'names that begin with "{RESERVED}" are taken by the output', hint)
        for end in range(1, len(parts)):
            outer = ".".join(parts[:end])
            if outer in policy.attributes:
                hint = f'declare either "{outer}" or the fields inside it'
                yield Problem(path, "overlapping-names", f'this field lies inside the attribute "{outer}"', hint)


def _subject(policy: Policy) -> Iterator[Problem]:
    if policy.subject is None:
        return
    identifiers = [name for name, a in policy.attributes.items() if a.role == "identifier"]
    if policy.subject not in policy.attributes:
        hint = nearest(policy.subject, identifiers) or "declare it with role identifier"
        yield Problem(("subject",), "unknown-attribute", "the subject is not a declared attribute", hint)
    elif policy.subject not in identifiers:
        hint = f'give "{policy.subject}" the role identifier'
        yield Problem(("subject",), "wrong-role", "the subject must be an identifier", hint)


def _secret(policy: Policy) -> Iterator[Problem]:
    """Refuse what can be guessed; the message must not tell how long it is."""
    if policy.secret is None:
        return
    text = policy.secret.get_secret_value()
    if not text.strip():
        yield Problem(("secret",), "weak-secret", "the secret is empty", f"{_MAKE_ONE}; or leave the key out")
    elif len(text) < SHORTEST_SECRET or len(set(text)) < FEWEST_CHARACTERS:
        message = (
            f"the secret can be guessed: it needs {SHORTEST_SECRET} characters, {FEWEST_CHARACTERS} of them different"
        )
        yield Problem(("secret",), "weak-secret", message, _MAKE_ONE)


def _attributes(policy: Policy) -> Iterator[Problem]:
    if not policy.quasi_identifiers:
        hint = "give the role quasi_identifier to what others may know of a person"
        yield Problem(("attributes",), "no-quasi-identifier", "no attribute is a quasi_identifier", hint)
    for name, attribute in policy.attributes.items():
        if isinstance(attribute, QuasiIdentifier | Sensitive) and attribute.hierarchy is not None:
            yield from hierarchy_problems(("attributes", name), attribute.type, attribute.hierarchy)
        if isinstance(attribute, QuasiIdentifier):
            yield from at(("attributes", name, "hierarchy"), attribute.hierarchy.quasi_rules())


def _read_fields(policy: Policy) -> Iterator[Problem]:
    """Fields that are read and obeyed must not be published, nor be another's."""
    seen: list[tuple[str, str]] = []
    for name, attribute in policy.sensitive.items():
        for key in ("guarding_node", "psf"):
            field = getattr(attribute, key)
            if field is None:
                continue
            if field == name or any(_overlap(field, shown) for shown in policy.attributes if shown != name):
                hint = "remove that attribute: undeclared fields are dropped"
                message = "this field is an attribute too, but what a person asks for is never published"
                yield Problem(("attributes", name, key), "published-request", message, hint)
            if "" in field.split("."):
                hint = "write the path of a nested field like person.wish"
                yield Problem(("attributes", name, key), "bad-name", "a part of this dotted name is empty", hint)
            if any(_overlap(field, other) and (field, key) != (other, use) for other, use in seen):
                hint = "each kind of request needs a field of its own"
                message = "this field is, or lies inside, that of another request"
                yield Problem(("attributes", name, key), "overlapping-names", message, hint)
            seen.append((field, key))


def field_uses(policy: Policy) -> Iterator[tuple[FieldUse, PublishSettings]]:
    """Yield every attribute of which something is said or usual besides generalizing, and what that is."""
    roles: dict[str, str] = {name: attribute.role for name, attribute in policy.attributes.items()}
    for sensitive in policy.sensitive.values():
        roles |= {field: "request" for field in (sensitive.guarding_node, sensitive.psf) if field}
    for name, attribute in policy.attributes.items():
        if not isinstance(attribute, QuasiIdentifier):
            type_ = attribute.type if isinstance(attribute, Sensitive) else None
            secret = policy.secret is not None
            use = FieldUse(name, attribute.role, type_, policy.subject, secret, people(policy), roles)
            yield use, attribute.publish


def _published(policy: Policy) -> Iterator[Problem]:
    for use, publish in field_uses(policy):
        yield from publish_problems(use, publish, bool(getattr(policy.attributes[use.name], "list", False)))


def _overlap(one: str, other: str) -> bool:
    return one == other or one.startswith(other + ".") or other.startswith(one + ".")


def _privacy(policy: Policy) -> Iterator[Problem]:
    if people(policy) == 0:
        hint = "add - {model: k_anonymity, k: 5}"
        yield Problem(("privacy",), "no-k", "no model says how many people a group needs", hint)
    for index, model in enumerate(policy.privacy):
        path = ("privacy", index)
        if not isinstance(model, ColumnModelSettings):
            continue
        attribute = policy.attributes.get(model.attribute)
        if attribute is None:
            hint = nearest(model.attribute, list(policy.sensitive))
            yield Problem((*path, "attribute"), "unknown-attribute", "this attribute is not declared", hint)
        elif not isinstance(attribute, Sensitive):
            hint = f'give "{model.attribute}" the role sensitive'
            yield Problem((*path, "attribute"), "wrong-role", "this attribute must be sensitive", hint)
        else:
            yield from at(path, model.rules(attribute))


def _stream(policy: Policy) -> Iterator[Problem]:
    delay = policy.stream.max_delay
    if delay.time is None and delay.records is None:
        hint = 'add "time: 5s" or "records: 10000"'
        yield Problem(("stream", "max_delay"), "no-bound", "max_delay has no bound", hint)
    if policy.stream.max_buffer <= people(policy):
        hint = f"above {people(policy)}"
        message = "the buffer could never hold more than one group of k"
        yield Problem(("stream", "max_buffer"), "out-of-range", message, hint)


def _algorithm(policy: Policy) -> Iterator[Problem]:
    settings = policy.algorithm
    yield from at(("algorithm",), settings.rules())
    if isinstance(settings, CailSettings) and settings.clusters == "transient":
        for key, only in (("completion", "merge"), ("loss", "descendants"), ("loss", "leaves"), ("loss", "subtree")):
            if getattr(settings, key) == only:
                message = f'"{only}" is a way of standing clusters'
                yield Problem(("algorithm", key), "needs-standing", message, "say clusters: standing")
    if not isinstance(settings, CailSettings) or settings.loss == "ncp":
        return
    for name, attribute in policy.quasi_identifiers.items():
        if not attribute.hierarchy.named_nodes:
            message = f'the loss "{settings.loss}" counts nodes of trees, and "{name}" has none'
            yield Problem(("algorithm", "loss"), "needs-tree", message, "use loss: ncp")


def _topics(policy: Policy) -> Iterator[Problem]:
    if policy.kafka is None:
        return
    taken = {policy.kafka.input}
    for key in ("output", "dead_letter"):
        topic = getattr(policy.kafka, key)
        if topic in taken:
            message = "this topic is used twice: what is published must not be read again, nor mixed with dead letters"
            yield Problem(("kafka", key), "same-topic", message, "name another topic")
        taken.add(topic)


def _registry(policy: Policy) -> Iterator[Problem]:
    if policy.kafka is None:
        return
    registry, format_ = policy.kafka.registry, policy.kafka.format
    if registry is None:
        if format_ not in ("auto", "json"):
            message = f"messages in {format_} name their schemas by number, and no registry is given"
            yield Problem(("kafka", "format"), "needs-registry", message, "add registry: {url: http://...}")
        return
    for url in [registry.url] if isinstance(registry.url, str) else registry.url:
        if not url.startswith(("http://", "https://")):
            message = "the address of a registry begins with http:// or https://"
            yield Problem(
                ("kafka", "registry", "url"), "bad-url", message, f"write http://{url.partition('://')[2] or url}"
            )
        elif "@" in url.partition("://")[2].partition("/")[0]:
            message = "an address with credentials in it ends up in logs"
            yield Problem(("kafka", "registry", "url"), "bad-url", message, "use username and password")
    for one, other in (("username", "password"), ("password", "username"), ("key", "certificate")):
        if getattr(registry, one) is not None and getattr(registry, other) is None:
            yield Problem(("kafka", "registry", one), "half-credentials", f"{one} without {other}", f"add {other}")
    if registry.token is not None and registry.username is not None:
        message = "a token and a password are two ways to say who asks"
        yield Problem(("kafka", "registry", "token"), "two-credentials", message, "keep one of them")
