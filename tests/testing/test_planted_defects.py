"""Each public check names the rule that a planted defect breaks; every rule of every check has one."""

from __future__ import annotations

import ast
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Literal
from unittest import mock

import numpy as np
import pytest

from stream_anon import testing
from stream_anon.auditor.models.base import Built, Counts, ValueModel
from stream_anon.auditor.models.k_anonymity import KAnonymity
from stream_anon.auditor.scales.prefix import PrefixScale
from stream_anon.batch.partitioner import Support, unwatched
from stream_anon.core.batch import Batch
from stream_anon.core.decode import Reject
from stream_anon.core.hierarchy import CostTable, HierarchySettings, Leaves, Prefix
from stream_anon.core.judging.judge import Judge
from stream_anon.core.privacy import ColumnModelSettings, SensitiveModel
from stream_anon.errors import Problem
from stream_anon.formats.format import Format, Part, TableError
from stream_anon.grammar.fields import Settings, Share
from stream_anon.policy.settings import MaxDelay, StreamAlgorithmSettings, StreamSettings
from stream_anon.stream import Outcome, build
from stream_anon.stream.algorithm import Algorithm
from stream_anon.testing import check_algorithm, check_format, check_hierarchy, check_model
from stream_anon.testing.checks.models import Rows, holders_of
from stream_anon.testing.checks.streams import meet_deadlines_alone
from stream_anon.testing.contract.policies import row_of, schema_under
from stream_anon.testing.contract.run import Run, deliver

Plant = Callable[[], object]


def with_(base: type, **changes: Any) -> Any:
    """Return a class with some of its methods or attributes replaced."""
    return type("Changed", (base,), {"__module__": __name__, "__qualname__": "Changed", **changes})


# --- privacy models ---------------------------------------------------------------------------------------------------


class MaxShare(SensitiveModel):
    """No value is held by more than a share of the people."""

    name = "max_share"

    def __init__(self, column: int, most: float) -> None:
        super().__init__(column)
        self.most = most

    def judge(self, values: Any, counts: Any, people: int) -> float:
        return float(np.maximum(counts - self.most * max(people, 1) - 1e-9, 0).sum())


class MaxShareSettings(ColumnModelSettings):
    """No value has a share above `most` in a group."""

    model: Literal["max_share"]
    most: Share
    forms = (MaxShare,)
    built: ClassVar[type[MaxShare]] = MaxShare

    def build(self, place: Any) -> MaxShare:
        return self.built(place.index, self.most)


def max_share(rows: Rows) -> bool:
    people = len({person for person, _ in rows})
    return max(map(len, holders_of(rows).values())) / people <= 0.5 + 1e-9


def model(most: float = 0.5, definition: Any = max_share, **changes: Any) -> Plant:
    """Check the model with some of its methods or attributes replaced."""
    changed = with_(MaxShare, **changes)
    settings = with_(MaxShareSettings, forms=(changed,), built=changed)
    return lambda: check_model(settings(model="max_share", attribute="illness", most=most), definition)


def settings_of_models(**changes: Any) -> Plant:
    settings = with_(MaxShareSettings, **changes)
    return lambda: check_model(settings(model="max_share", attribute="illness", most=0.5), max_share)


def _greedy(self: Any, rows: Batch) -> Batch:
    rows.sensitive[:, 0] = 0
    return rows


def _raising(self: Any, *given: Any) -> Any:
    raise ValueError("a defect")


def _broken_rule(self: Any, *given: Any) -> Any:
    yield Problem(("most",), "bad-value", "never right", "give up")


class Audited(ValueModel):
    """The same as the auditor defines it."""

    code, meaning, attribute = "max_share", "a value with too large a share", "illness"

    @classmethod
    def read(cls, spec: dict[str, Any], columns: Any, folder: Path) -> Built:
        return cls(), ""

    def promise(self, who: str) -> str:
        return "no value has a share above a half"

    def failing(self, counts: Counts) -> Any:
        return counts.share > 0.5 + 1e-9


def audited(**changes: Any) -> Plant:
    """Check the model against a definition of the auditor with some of its methods replaced."""

    def plant() -> None:
        known = {"k_anonymity": KAnonymity, "max_share": with_(Audited, **changes)}
        with mock.patch("stream_anon.auditor.policy.known_models", return_value=known):
            model()()

    return plant


MODEL: dict[str, list[Plant]] = {
    "auditor-agrees": [
        audited(failing=lambda self, counts: counts.share > 0.4),
        audited(failing=lambda self, counts: np.zeros(len(counts.starts), dtype=np.bool_)),
    ],
    "valid-settings": [settings_of_models(forms=()), settings_of_models(rules=_broken_rule)],
    "follows-its-definition": [model(definition=lambda rows: True)],
    "never-negative": [model(judge=lambda self, *given: -1.0), model(judge=lambda self, *given: float("nan"))],
    "many-as-one": [model(shortfalls=lambda self, rows, starts: np.zeros(len(starts) - 1))],
    "order-does-not-matter": [model(definition=None, shortfall=lambda self, rows: float(rows.ref[0, 1]))],
    "people-not-rows": [model(definition=None, shortfall=lambda self, rows: float(len(rows) > 4))],
    "absent-values-do-not-count": [model(with_value=lambda self, rows: rows)],
    "k-is-kept": [model(k=5)],
    "gains-are-differences": [model(gains=lambda self, rows, others: np.ones(len(others)))],
    "monotone-if-it-says-so": [model(monotone=True)],
    "counted-if-it-says-so": [model(counted=lambda self: ())],
    "repair-helps": [model(definition=None, repair=_greedy)],
    "impossible-is-impossible": [model(impossible=lambda self, rows: np.ones(len(rows), dtype=bool))],
    "some-pass-some-fail": [model(most=0.05, definition=None), model(most=1.0, definition=None)],
    "raises-nothing": [model(judge=_raising)],
}

# --- hierarchies ------------------------------------------------------------------------------------------------------


class CodesHierarchy(HierarchySettings):
    """Codes of three digits."""

    kind: Literal["codes"]
    built: ClassVar[type[Prefix]] = Prefix

    def build(self, folder: Path, leaves: Leaves) -> Prefix:
        return self.built(3, "digits", leaves)


KNOWN, UNKNOWN = ["021", "022", "100", "139", "999"], ["abc", "02"]


def hierarchy(known: list[str] = KNOWN, **changes: Any) -> Plant:
    """Check the hierarchy with some of its methods replaced."""
    settings = with_(CodesHierarchy, built=with_(Prefix, **changes))
    return lambda: check_hierarchy(settings(kind="codes"), known, UNKNOWN)


def settings_of_hierarchies(**changes: Any) -> Plant:
    return lambda: check_hierarchy(with_(CodesHierarchy, **changes)(kind="codes"), KNOWN, UNKNOWN)


def _shifted(self: Prefix, values: Any) -> Any:
    codes, trouble = Prefix.encode(self, values)
    return codes + (len(values) > 1), trouble


def _dearer(self: Prefix) -> CostTable:
    table = Prefix.cost_table(self)
    return CostTable(table.kind, units=table.units, levels=(0.1, 0.2, 0.3), highest=table.highest)


def scale(**changes: Any) -> Plant:
    """Check the hierarchy against a scale of the auditor with some of its methods replaced."""
    of = classmethod(lambda cls, attribute, absent, folder: cls(3, False, absent))
    known = {"codes": with_(PrefixScale, of=of, **changes)}

    def plant() -> None:
        with mock.patch("stream_anon.testing.checks.hierarchies.known_scales", return_value=known):
            hierarchy()()

    return plant


HIERARCHY: dict[str, list[Plant]] = {
    "auditor-agrees": [
        scale(read=lambda self, label: "outside-hierarchy"),
        scale(read=lambda self, label: PrefixScale.read(self, label)._replace(least=0.0, most=0.0)),  # type: ignore[union-attr]
        scale(place=lambda self, value: PrefixScale.place(self, value) + 1.0),
        scale(covers=lambda self, label, places: np.ones(len(places), dtype=np.bool_)),
    ],
    "valid-settings": [settings_of_hierarchies(rules=_broken_rule), settings_of_hierarchies(types=("integer",))],
    "known-values-have-places": [hierarchy(known=["021", "none"])],
    "unknown-values-are-refused": [hierarchy(encode=lambda self, values: (np.zeros(len(values), np.int64), None))],
    "absence-has-a-place": [settings_of_hierarchies(build=lambda self, folder, leaves: Prefix(3))],
    "together-as-alone": [hierarchy(encode=_shifted)],
    "loss-grows": [hierarchy(loss=lambda self, low, high: 1.0 - Prefix.loss(self, low, high))],
    "kernels-agree": [hierarchy(cost_table=_dearer)],
    "labels-cover": [hierarchy(contains=lambda self, label, value: False)],
    "labels-can-be-written": [hierarchy(label=lambda self, low, high: {low, high})],
    "same-again": [
        hierarchy(signature=lambda self: f"{id(self)} {random.random()}"),
        hierarchy(label=lambda self, low, high: str(random.random()), contains=lambda self, label, value: True),
    ],
    "signature-tells": [hierarchy(signature=lambda self: "codes")],
    "raises-nothing": [hierarchy(loss=_raising)],
}

# --- batch algorithms -------------------------------------------------------------------------------------------------


class SlicesSettings(Settings):
    """Settings of slices."""

    name: Literal["slices"] = "slices"


class Slices:
    """Rows in the order of their quasi-identifiers, cut as soon as a slice satisfies the policy."""

    settings: ClassVar[Any] = SlicesSettings
    support: ClassVar[Support] = Support(repairs=False)
    nanoseconds: ClassVar[float] = 0.0

    def __init__(self, settings: Any, seed: int = 0) -> None:
        pass

    def order(self, rows: Batch) -> Any:
        return np.lexsort(rows.qi.T[::-1])

    def __call__(self, rows: Batch, schema: Any, watch: Any = unwatched) -> list[Any]:
        judge, order, found, start = Judge(rows, schema), self.order(rows), [], 0
        for end in range(1, len(order) + 1):
            if judge.holds(order[start:end]):
                found.append(order[start:end])
                start = end
        return found


def batch(**changes: Any) -> Plant:
    return lambda: check_algorithm(with_(Slices, **changes))


def _unlike(self: Slices, rows: Batch, schema: Any, watch: Any = unwatched) -> list[Any]:
    alike = (rows.qi == rows.qi[:1]).all()
    return [] if alike else Slices.__call__(self, rows, schema)


BATCH: dict[str, list[Plant]] = {
    "named": [batch(settings=Settings), batch(settings=None)],
    "honours-some-model": [batch(support=Support(only=()))],
    "safe-groups": [
        batch(__call__=lambda self, rows, schema, watch: [np.arange(len(rows))[i : i + 2] for i in (0, 2)])
    ],
    "each-row-once": [batch(__call__=lambda self, rows, schema, watch: [np.arange(len(rows))] * 2)],
    "most-rows-published": [batch(__call__=lambda self, rows, schema, watch: [])],
    "same-input-same-output": [batch(order=lambda self, rows: np.random.default_rng().permutation(len(rows)))],
    "equal-rows-lose-nothing": [batch(__call__=_unlike)],
    "raises-nothing": [batch(order=_raising)],
}

# --- stream algorithms ------------------------------------------------------------------------------------------------


class Oldest(Algorithm):
    """A row that is due leaves with the rows that have waited longest."""

    def __init__(self, schema: Any, buffer: Any) -> None:
        self._schema, self._buffer = schema, buffer

    def arrive(self, slots: Any) -> Any:
        self._buffer.admit(slots)
        return len(slots), None

    def others(self, slot: int) -> Any:
        waiting = self._buffer.waiting()
        return waiting[waiting != slot]

    def complete(self, slot: int) -> Any:
        others = self.others(slot)
        for size in range(self._schema.requirements.k - 1, len(others) + 1):
            group = np.concatenate([[slot], others[:size]])
            if self._schema.requirements.holds(self._buffer.rows(group)):
                return [group]
        return []

    def leave(self, slots: Any) -> None:
        pass


class OldestSettings(StreamAlgorithmSettings):
    """The rows that have waited longest leave together."""

    name: Literal["oldest"]
    built: ClassVar[type[Oldest]] = Oldest

    def build(self, schema: Any, buffer: Any) -> Oldest:
        return self.built(schema, buffer)


def stream(**changes: Any) -> Plant:
    settings = with_(OldestSettings, built=with_(Oldest, **changes))
    return lambda: check_algorithm(settings(name="oldest"))


def _shuffled(self: Oldest, slot: int) -> Any:
    return np.random.default_rng().permutation(Oldest.others(self, slot))


def _eager(self: Oldest, slots: Any) -> Any:
    self._buffer.admit(slots)
    whole = self._buffer.waiting().copy()
    ready = len(slots) > 3 and self._schema.requirements.holds(self._buffer.rows(whole))
    return len(slots), whole if ready else None


class Engine:
    """An engine that does one thing wrong, whatever the algorithm."""

    def __init__(self, real: Any, **wrong: Any) -> None:
        self._real, self._wrong = real, wrong

    def __getattr__(self, name: str) -> Any:
        if name in self._wrong:
            return lambda *given, **named: self._wrong[name](self._real, *given, **named)
        return getattr(self._real, name)

    def __len__(self) -> int:
        return len(self._real) + self._wrong.get("more", 0)


def watched(then: Callable[[Run], object] = lambda run: run.flush(), **wrong: Any) -> Plant:
    """Run rows through an engine with a fault, then do something with the run."""

    def plant() -> None:
        settings = StreamSettings(max_delay=MaxDelay(time=4.0))
        schema = schema_under("k", OldestSettings(name="oldest"), settings)
        run = Run("k", Engine(build(schema), **wrong), schema)
        deliver(run, [dict(row) for row in ROWS], lambda: 2, lambda: 1)
        then(run)

    return plant


ROWS = [row_of(7919 * i) | {"person": i} for i in range(12)]


def _twice(real: Any, *given: Any, **named: Any) -> Outcome:
    outcome = real.flush()
    return Outcome(groups=[*outcome.groups, *outcome.groups])


def _giving_up(real: Any, batch: Batch, now: float) -> Outcome:
    real.push(batch, now)
    return Outcome(suppressed=real.remove(batch.ref))


def _wrong_row(run: Run) -> None:
    for account in run.inside.values():
        account.row["age"] = -1
    run.flush()


STREAM: dict[str, list[Plant]] = {
    "safe-groups": [stream(complete=lambda self, slot: [np.array([slot])])],
    "each-row-once": [stream(complete=lambda self, slot: [np.array([slot] * 3)]), watched(flush=_twice)],
    "nothing-given-up-needlessly": [stream(complete=lambda self, slot: [])],
    "same-input-same-output": [stream(others=_shuffled)],
    "batches-change-nothing": [stream(arrive=_eager)],
    "raises-nothing": [stream(complete=_raising)],
    "in-time": [watched(push=lambda real, batch, now: real.push(batch, 0.0))],
    "waits-as-long-as-it-may": [watched(push=_giving_up)],
    "all-leave-at-the-end": [watched(flush=lambda real: Outcome())],
    "takes-what-it-can": [watched(push=lambda real, batch, now: Outcome(rest=len(batch)))],
    "count-told": [watched(more=1)],
    "deadline-told": [watched(next_deadline=lambda real: None)],
    "true-records": [watched(_wrong_row)],
    "hands-back-what-is-asked": [
        watched(lambda run: run.remove([11]), remove=lambda real, refs: real.remove(refs[:0]))
    ],
    "rows-can-be-read": [watched(lambda run: run.push([ROWS[0] | {"age": "old"}]))],
    "nothing-before-the-deadline": [
        watched(
            lambda run: meet_deadlines_alone(run, [row | {"person": 50} for row in ROWS[:6]], [0], 4.0),
            tick=lambda real, now: real.tick(now + 1e-6),
        )
    ],
}

# --- formats ----------------------------------------------------------------------------------------------------------


class Writer:
    """One record a line, cells between bars."""

    def __init__(self, file: Any) -> None:
        self._file, self._names = file, None

    def write(self, groups: Any) -> None:
        for group in groups:
            for record in group.records():
                told = record.pop("_anon")
                cells = {**record, **{f"_anon.{name}": value for name, value in told.items()}}
                if self._names is None:
                    self._names = list(cells)
                    self._file.write("|".join(self._names).encode() + b"\n")
                texts = [value if isinstance(value, str) else json.dumps(value) for value in cells.values()]
                self._file.write("|".join(texts).encode() + b"\n")

    def close(self) -> None:
        pass


class Bars(Format):
    """Lines of cells between bars; the first line names the columns."""

    name = "bars"
    suffixes = (".bars",)

    def lines(self, path: Path) -> list[str]:
        try:
            return path.read_text("utf-8").splitlines()
        except UnicodeDecodeError:
            raise TableError(f"{path}: not UTF-8") from None

    def cells(self, line: str, at_once: int) -> list[str]:
        return line.split("|")

    def first(self, start: int) -> int:
        return start + 1

    def read(self, path: Path, at_once: int) -> Any:
        lines = self.lines(path) or [""]
        names = lines[0].split("|")
        for start in range(0, len(lines) - 1, at_once):
            cells = [self.cells(line, at_once) for line in lines[start + 1 : start + 1 + at_once]]
            rows = [dict(zip(names, row, strict=True)) if len(row) == len(names) else Reject.NOT_CSV for row in cells]
            numbers = np.arange(start + 2, start + 2 + len(rows))
            yield Part(self.first(start), numbers, rows, (start + len(rows)) / (len(lines) - 1))

    def writer(self, file: Any, quote_formulas: bool = True) -> Any:
        return Writer(file)


def make(path: Path, records: Any) -> None:
    lines = ["|".join(records[0]), *("|".join(map(str, record.values())) for record in records)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def table(**changes: Any) -> Plant:
    return lambda: check_format(with_(Bars, **changes), make)


def _no_rows(self: Bars, path: Path) -> list[str]:
    return Bars.lines(self, path) if path.exists() else []


class Closing(Writer):
    """A writer that closes what it did not open."""

    def close(self) -> None:
        self._file.close()


class Sparing(Writer):
    """A writer that leaves out a column."""

    def write(self, groups: Any) -> None:
        super().write(groups[:0])


def read_by_the_auditor(found: list[Any]) -> Plant:
    """Check the format as if the auditor knew it, and found these columns."""

    def plant() -> None:
        place = "stream_anon.testing.checks.formats"
        with mock.patch(f"{place}.auditors"), mock.patch(f"{place}.raw_columns", return_value=found):
            table()()

    return plant


FORMAT: dict[str, list[Plant]] = {
    "auditor-agrees": [read_by_the_auditor([]), read_by_the_auditor([({"who": ["p1"]}, [])])],
    "known-by-suffix": [table(suffixes=("BARS",)), table(suffixes=())],
    "reads-what-is-there": [table(lines=lambda self, path: Bars.lines(self, path)[:-1])],
    "parts-follow-one-another": [table(first=lambda self, start: 1)],
    "parts-change-nothing": [table(cells=lambda self, line, n: (line.upper() if n == 7 else line).split("|"))],
    "refuses-what-is-missing": [table(lines=_no_rows)],
    "refuses-what-is-broken": [table(lines=lambda self, path: path.read_text("utf-8").splitlines())],
    "writes-what-can-be-read": [table(writer=lambda self, file: Sparing(file))],
    "leaves-the-file-open": [table(writer=lambda self, file: Closing(file))],
    "raises-nothing": [table(lines=_raising)],
}

# ----------------------------------------------------------------------------------------------------------------------

PLANTED = {"models": MODEL, "hierarchies": HIERARCHY, "batches": BATCH, "streams": STREAM, "formats": FORMAT}
CASES = [(kind, rule, plant) for kind, rules in PLANTED.items() for rule, plants in rules.items() for plant in plants]


@pytest.mark.parametrize(("kind", "rule", "plant"), CASES, ids=[f"{kind}: {rule}" for kind, rule, _ in CASES])
def test_the_broken_rule_is_named(kind: str, rule: str, plant: Plant) -> None:
    with pytest.raises(AssertionError) as raised:
        plant()
    assert str(raised.value).startswith(f"{rule}: "), raised.value


SOUND = {
    "models": model(),
    "audited models": audited(),
    "hierarchies": hierarchy(),
    "scales": scale(),
    "batches": batch(),
    "formats": table(),
    "streams": watched(lambda run: meet_deadlines_alone(run, [row | {"person": 50} for row in ROWS[:6]], [0], 4.0)),
}


@pytest.mark.parametrize("kind", SOUND)
def test_what_the_defects_are_planted_in_is_sound(kind: str) -> None:
    SOUND[kind]()


RAISED_FOR_ALL = {"safe-groups", "each-row-once", "raises-nothing"}
"""Rules that `judged` names: of these a check has those that can be broken."""


def rules_in(*modules: str) -> set[str]:
    folder, found = Path(str(testing.__file__)).parent, set()
    for module in modules:
        for node in ast.walk(ast.parse((folder / module).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "rule":
                found.add(ast.literal_eval(node.args[0]))
    return found


@pytest.mark.parametrize("kind", PLANTED)
def test_every_rule_has_a_planted_defect(kind: str) -> None:
    modules = [f"checks/{kind}.py", *(["contract/run.py"] if kind == "streams" else [])]
    assert rules_in(*modules) | {"raises-nothing"} == set(PLANTED[kind]) - (RAISED_FOR_ALL - rules_in(*modules)) | {
        "raises-nothing"
    }
    text = (Path(str(testing.__file__)).parent / modules[0]).read_text(encoding="utf-8")
    told = text.replace("-\n    ", "-")
    internal = {"rows-can-be-read", "hands-back-what-is-asked"}
    assert [rule for rule in PLANTED[kind] if f"`{rule}`" not in told and rule not in internal] == []
