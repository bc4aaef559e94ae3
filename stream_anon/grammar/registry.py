"""The kinds that one part of a policy may be: of this package, of other distributions, added by a program.

A kind is a settings class whose first field is a literal, the word by which a policy chooses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, Generic, Literal, TypeVar, Union, get_args, get_origin

from pydantic import Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema

from stream_anon.errors import PluginError
from stream_anon.grammar.fields import Settings
from stream_anon.plugins import defined, installed

S = TypeVar("S", bound=Settings)


class Registry(Generic[S]):
    """All kinds of one part of a policy by the word `key` chooses them with.

    Used as an annotation, `Annotated[Base, registry]`, it makes a field that is any of them: validation, messages and
    the JSON schema follow. `group` names the entry points by which other distributions add kinds.
    """

    def __init__(self, base: type[S], key: str, group: str) -> None:
        self._base, self._key, self._group = base, key, group
        self._own: dict[str, type[S]] = {}
        self._loaded = False
        self._changed: list[Callable[[], object]] = []

    @property
    def _kinds(self) -> dict[str, type[S]]:
        """All kinds; those of other distributions are loaded when somebody asks, for they import this package."""
        if not self._loaded:
            self._loaded = True  # before the first of them can ask
            try:
                for place, kind in installed(self._group):
                    self.add(kind, place)
            except BaseException:
                self._loaded = False  # whoever asks again gets the same answer
                raise
        return self._own

    def __iter__(self) -> Iterator[type[S]]:
        return iter(self._kinds.values())

    def __getitem__(self, word: str) -> type[S]:
        return self._kinds[word]

    @property
    def words(self) -> tuple[str, ...]:
        """The words by which kinds are chosen."""
        return tuple(self._kinds)

    def discover(self, package: str, path: Iterable[str]) -> None:
        """Add the kinds of every module in a package."""
        for place, kind in defined(package, path):
            if issubclass(kind, self._base):
                self.add(kind, place)

    def add(self, kind: Any, place: str = "this program") -> None:
        """Add one kind; a class that chooses no word is a base of others and is passed over.

        Raises PluginError for what is no such settings class, and for a word that is taken.
        """
        if not (isinstance(kind, type) and issubclass(kind, self._base)):
            raise PluginError(f"{place}: not a class of settings based on {self._base.__name__}")
        word = word_of(kind, self._key)
        if word is None:
            return
        if self._own.get(word, kind) is not kind:
            raise PluginError(f'{place}: the {self._key} "{word}" is there already, in {self._own[word].__module__}')
        self._own[word] = kind
        for rebuild in self._changed:
            rebuild()

    def remove(self, kind: type[S]) -> None:
        """Take back a kind that a program added."""
        self._own = {word: known for word, known in self._own.items() if known is not kind}
        for rebuild in self._changed:
            rebuild()

    def on_change(self, rebuild: Callable[[], object]) -> None:
        """Have a function called whenever a kind comes or goes: classes with such a field must be built anew."""
        self._changed.append(rebuild)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema of a field that is any of the kinds."""
        kinds = tuple(self._kinds.values())
        if len(kinds) == 1:
            return handler.generate_schema(kinds[0])
        return handler.generate_schema(Annotated[Union[kinds], Field(discriminator=self._key)])  # noqa: UP007


def word_of(kind: type[Settings], key: str) -> str | None:
    """Return the word by which a policy chooses a kind, None for a class that is a base of kinds."""
    field = kind.model_fields.get(key)
    if field is None or get_origin(field.annotation) is not Literal:
        return None
    return str(get_args(field.annotation)[0])
