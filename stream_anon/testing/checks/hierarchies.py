"""The laws of a hierarchy: positions, losses, labels and the prices of kernels agree with one another."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from stream_anon.auditor.reading.chunks import hashable
from stream_anon.auditor.scales import Absent, Scale, known_scales
from stream_anon.core.hierarchy import Hierarchy, HierarchySettings, Interval, Ints, Leaves, Trouble, ValueSet
from stream_anon.core.kernels import cell_prices, pack, price
from stream_anon.testing.contract.rule import judged, rule

ROUNDS = 40
NEAR = 1e-9
BOTH = Leaves(missing=True, unknown=True)


def check_hierarchy(
    settings: HierarchySettings,
    values: Sequence[Any],
    unknown: Sequence[Any] = (),
    *,
    type: str = "category",  # noqa: A002 - the word in the policy
    folder: Path = Path(),
    seed: int = 0,
) -> None:
    """Check a kind of hierarchy over some of its values, and raise Broken for a law it breaks.

    `values` are ten or so that it knows, `unknown` some that it does not; `type` is that of the attribute, `folder`
    holds the files that the settings name. The laws: `valid-settings`, `together-as-alone`, `known-values-have-places`,
    `unknown-values-are-refused`, `absence-has-a-place`, `loss-grows`, `kernels-agree`, `labels-cover`,
    `labels-can-be-written`, `same-again`, `signature-tells`, `raises-nothing`; and, for a kind that the auditor has a
    scale of, `auditor-agrees`: it takes the same labels to cover the same values at the same loss.
    """
    with judged(f"a hierarchy of kind {settings.kind}"):
        dumped = type_of_settings(settings).model_validate_json(settings.model_dump_json())
        rule("valid-settings", dumped == settings, "settings written as JSON are read as other ones")
        broken = [*settings.rules(type), *settings.quasi_rules()]
        rule("valid-settings", type in settings.types and not broken, f"the settings break rules: {broken}")
        plain, full = settings.build(folder, Leaves()), settings.build(folder, BOTH)
        knows(plain, values, unknown)
        has_a_place_for_absence(full, [*unknown, None])
        again = settings.build(folder, Leaves())
        rule("same-again", plain.signature() == again.signature(), "built twice it has two signatures")
        rule("signature-tells", plain.signature() != full.signature(), "leaves for what is absent change no signature")
        chance = Random(seed)  # noqa: S311 - values of a test, no secrets
        for hierarchy, known in ((plain, list(values)), (full, [*values, *unknown, None])):
            scale = scale_of(settings, type, hierarchy is full, folder)
            for _ in range(ROUNDS):
                drawn = [chance.choice(known) for _ in range(chance.randint(1, 6))]
                encodes_alike(hierarchy, drawn)
                codes, _ = hierarchy.encode(drawn)
                if isinstance(hierarchy, ValueSet):  # has no stretches: its labels are sets
                    continue
                loses_more_the_wider(hierarchy, codes)
                covers_what_it_stands_for(hierarchy, drawn, codes)
                kernels_agree(hierarchy, codes)
                if scale is not None:
                    auditor_agrees(hierarchy, scale, codes, known)
                label = json.dumps(hierarchy.label(int(codes.min()), int(codes.max())))
                same = label == json.dumps(again_of(settings, folder, hierarchy is full, codes))
                rule("same-again", same, "built twice it labels the same values differently")


def scale_of(settings: HierarchySettings, type_: str, full: bool, folder: Path) -> Scale | None:
    """Return the auditor's scale for a hierarchy with these settings, None if it has none of that kind."""
    made = known_scales().get(settings.kind)
    shape = settings.model_dump(mode="json", exclude_none=True)
    attribute = {"role": "quasi_identifier", "type": type_, "hierarchy": shape}
    return None if made is None else made.of(attribute, Absent(full, full), folder)


def auditor_agrees(hierarchy: Hierarchy, scale: Scale, codes: Ints, values: Sequence[Any]) -> None:
    """Check that the auditor reads the label of a stretch as the hierarchy means it."""
    low, high = int(codes.min()), int(codes.max())
    label = hierarchy.label(low, high)
    written = hashable(json.loads(json.dumps(label)))
    read, loss = scale.read(written), float(hierarchy.loss(np.array(low), np.array(high)))
    if isinstance(read, str):
        rule("auditor-agrees", False, f"the auditor calls a published label {read}")
        return
    right = read.least - NEAR <= loss <= read.most + NEAR
    rule("auditor-agrees", right, f"a label loses {loss}, for the auditor {read.least} to {read.most}")
    covered = scale.covers(written, np.array([scale.place(value) for value in values]))
    wanted = [hierarchy.contains(label, value) for value in values]
    rule("auditor-agrees", covered.tolist() == wanted, "a label covers other values for the auditor")


def type_of_settings(settings: HierarchySettings) -> type[HierarchySettings]:
    """Return the class of the settings."""
    return settings.__class__


def again_of(settings: HierarchySettings, folder: Path, full: bool, codes: Ints) -> Any:
    """Return the label of the same stretch by a hierarchy that is built anew."""
    return settings.build(folder, BOTH if full else Leaves()).label(int(codes.min()), int(codes.max()))


def knows(hierarchy: Hierarchy, values: Sequence[Any], unknown: Sequence[Any]) -> None:
    """Check that known values have places, and that others, and None, are refused with the right trouble."""
    codes, trouble = hierarchy.encode(list(values))
    rule("known-values-have-places", trouble is None, "a value that it should know has no place")
    rule("known-values-have-places", codes.dtype == np.int64, "places are no 64-bit integers")
    for value, wanted in [*((value, Trouble.UNKNOWN) for value in unknown), (None, Trouble.MISSING)]:
        _, refused = hierarchy.encode([value])
        given = Trouble.NONE if refused is None else Trouble(int(refused[0]))
        rule("unknown-values-are-refused", given is wanted, f"a value is {given.name}, not {wanted.name}")


def has_a_place_for_absence(hierarchy: Hierarchy, absent: Sequence[Any]) -> None:
    """Check that what is missing or unknown is a value of its own where the policy allows it."""
    _, trouble = hierarchy.encode(list(absent))
    rule("absence-has-a-place", trouble is None, "what is missing or unknown has no place, and it is allowed")


def encodes_alike(hierarchy: Hierarchy, values: Sequence[Any]) -> None:
    """Check that values are encoded one by one as they are together."""
    codes, trouble = hierarchy.encode(list(values))
    troubles = np.zeros(len(values)) if trouble is None else trouble
    for value, code, kind in zip(values, codes.tolist(), troubles.tolist(), strict=True):
        alone, refused = hierarchy.encode([value])
        same = (0 if refused is None else int(refused[0])) == kind and (bool(kind) or alone[0] == code)
        rule("together-as-alone", same, "a value among others has another place than alone")


def loses_more_the_wider(hierarchy: Hierarchy, codes: Ints) -> None:
    """Check that losses lie between 0 and 1 and grow with the stretch."""
    low = high = codes[:1]
    before = float(hierarchy.loss(low, high)[0])
    for code in codes:
        low, high = np.minimum(low, code), np.maximum(high, code)
        after = float(hierarchy.loss(low, high)[0])
        rule("loss-grows", 0.0 <= before <= after <= 1.0, f"a wider stretch loses {after}, a part of it {before}")
        before = after


def covers_what_it_stands_for(hierarchy: Hierarchy, values: Sequence[Any], codes: Ints) -> None:
    """Check that the label of a stretch covers every value in it, and can be written as JSON."""
    label = hierarchy.label(int(codes.min()), int(codes.max()))
    try:
        json.dumps(label)
    except (TypeError, ValueError):
        rule("labels-can-be-written", False, "a label is nothing that JSON can hold")
    for value in values:
        rule("labels-cover", hierarchy.contains(label, value), "a label does not cover a value that it stands for")


def kernels_agree(hierarchy: Hierarchy, codes: Ints) -> None:
    """Check that the prices of kernels, compiled or not, are the losses to the last bit."""
    prices = pack([Interval(0, 9), hierarchy], [1.0, 0.7])
    plain = getattr(price, "py_func", price)
    for low, high in {(min(a, b), max(a, b)) for a in codes.tolist() for b in codes.tolist()}:
        loss = float(hierarchy.loss(np.array(low), np.array(high)))
        found = [f(prices.facts, prices.values, 1, low, high) for f in (price, plain)]
        ends = np.array([[0, low]]), np.array([[0, high]])
        found.append(cell_prices(prices.facts, prices.values, *ends)[0, 1])
        rule("kernels-agree", found == [loss] * 3, f"a kernel's price is {found}, the loss {loss}")
