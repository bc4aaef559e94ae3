"""Find what names a person in free text by Presidio, where a policy asks for it and its extra is installed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from pydantic import Field

from stream_anon.errors import StreamAnonError
from stream_anon.grammar.fields import Settings

LONGEST_SEARCHED = 1_000
"""Its work is not bounded: a longer text rejects the record, so that none keeps a worker for long."""

_LEFT_OUT = ("EmailRecognizer", "UrlRecognizer")
"""The first fetches a list of domains (addresses are found without it), the second takes seconds for `a.a.a.a.a...`."""

_Find = Callable[[str], list[tuple[int, int, str]]]


class PresidioSettings(Settings):
    """What Presidio looks for in a text: entities by its own names, such as `US_SSN` or `UK_NHS`.

    Entities that patterns know need nothing more. `PERSON`, `LOCATION` and others like them are found by a pipeline of
    spaCy, `model`, which must be installed; nothing is downloaded. What is found with less than `score` is left.
    """

    find: list[str] = Field(min_length=1)
    language: str = Field(default="en", pattern="^[a-z]{2,3}$")
    model: str | None = Field(default=None, min_length=1)
    score: float = Field(default=0.4, ge=0, le=1)


def redactor(settings: PresidioSettings) -> Callable[[str], str]:
    """Return the function that puts the name of its entity, in brackets, in the place of all that is found."""
    find = _finder(settings.language, settings.model, tuple(sorted(set(settings.find))), settings.score)

    def redact(text: str) -> str:
        shown, last = [], 0
        for start, end, entity in sorted(find(text), key=lambda found: (found[0], -found[1], found[2])):
            if start >= last:
                shown += [text[last:start], f"[{entity.lower()}]"]
            last = max(last, end)
        return "".join([*shown, text[last:]])

    return redact


@cache
def _finder(language: str, model: str | None, entities: tuple[str, ...], score: float) -> _Find:
    analyzer = _analyzer(language, model)
    known = set(analyzer.get_supported_entities(language))
    if unknown := sorted(set(entities) - known):
        needs = "" if model else "; entities like PERSON need a `model`"
        raise StreamAnonError(
            f"Presidio does not look for {', '.join(unknown)} in the language {language}{needs}: "
            f"it knows {', '.join(sorted(known))}"
        )

    def find(text: str) -> list[tuple[int, int, str]]:
        found = analyzer.analyze(text, language, entities=list(entities), score_threshold=score)
        return [(each.start, each.end, each.entity_type) for each in found]

    return find


def _analyzer(language: str, model: str | None) -> Any:
    try:
        import spacy
        from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
        from presidio_analyzer.nlp_engine import SpacyNlpEngine
    except ImportError:
        raise StreamAnonError(
            "`presidio` under `publish: redact` needs a package: pip install 'stream-anon[presidio]'"
        ) from None
    try:
        pipeline = spacy.blank(language) if model is None else spacy.load(model)
    except (ImportError, OSError, ValueError):
        what = f"the language {language}" if model is None else f"the pipeline {model}"
        raise StreamAnonError(f"spaCy does not know {what}: install it (python -m spacy download ...)") from None
    engine: Any = SpacyNlpEngine(models=[{"lang_code": language, "model_name": model or "blank"}])
    engine.nlp = {language: pipeline}
    registry = RecognizerRegistry(supported_languages=[language])
    registry.load_predefined_recognizers(languages=[language], nlp_engine=engine)
    for name in (*_LEFT_OUT, *(("SpacyRecognizer",) if model is None else ())):
        registry.remove_recognizer(name, language)
    return AnalyzerEngine(registry=registry, nlp_engine=engine, supported_languages=[language])
