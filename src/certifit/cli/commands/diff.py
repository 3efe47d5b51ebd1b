"""`certifit diff`: why do two models of a table differ? Data, settings, seeds, solver error, rows that moved."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from certifit.cli.files import TableFiles, block_source
from certifit.cli.saved_model import load_table_model, warnings_as_notes
from certifit.cli.screen import Screen
from certifit.exceptions import DataError
from certifit.rows import Array
from certifit.table.table_model import TableModel

STOPPING = ("tol", "max_iter", "max_time", "n_jobs", "verbose")  # say when a solver stops, not what it solves


@dataclass(frozen=True)
class ModelDifferences:
    """What tells two fitted models of a table apart."""

    first: TableModel
    second: TableModel

    def data(self) -> list[str]:
        """Differences of target, rows and columns, in words."""
        a, b = self.first, self.second
        found = []
        for name, words in (("target_", "target"), ("weight_", "weights"), ("n_rows_", "rows")):
            if getattr(a, name) != getattr(b, name):
                found.append(f"{words}: {getattr(a, name)} -> {getattr(b, name)}")
        before, after = ({column.name: column for column in model.columns_} for model in (a, b))
        found += [f"column {name!r} is gone" for name in before if name not in after]
        found += [f"column {name!r} is new" for name in after if name not in before]
        for name in before:
            if name in after and not before[name].is_like(after[name]):
                found.append(f"column {name!r}: {_column_words(before[name])} -> {_column_words(after[name])}")
        if not found and a.fingerprint_ != b.fingerprint_:
            found.append("the numbers of some rows, or their order (the fingerprints differ)")
        return found

    def settings(self) -> list[str]:
        """Settings, of the models of the table and of those inside, that differ."""
        found: dict[str, str] = {}
        if type(self.first.model_) is not type(self.second.model_):
            found["model"] = f"{type(self.first.model_).__name__} -> {type(self.second.model_).__name__}"
        before, after = (_params(model) for model in (self.first, self.second))
        for name in sorted({*before, *after}):
            if before.get(name) != after.get(name):
                found[name] = f"{before.get(name, 'none')} -> {after.get(name, 'none')}"
        return [f"{name}: {words}" for name, words in found.items()]

    @property
    def same_problem(self) -> bool:
        """Whether both were asked the same of the same rows, up to when to stop."""
        asked = [words for words in self.settings() if words.partition(":")[0] not in STOPPING]
        return self.first.fingerprint_ == self.second.fingerprint_ and not asked

    def same_bits(self) -> bool:
        """Whether both have the same numbers, bit for bit."""
        names = ("coef_", "intercept_")
        a, b = self.first.model_, self.second.model_
        known = all(hasattr(model, name) for model in (a, b) for name in names)
        return known and self.same_problem and all(np.array_equal(getattr(a, n), getattr(b, n)) for n in names)

    def solver_words(self) -> str:
        """What the gaps say of the difference of both objectives."""
        a, b = self.first.certificate_, self.second.certificate_
        if not self.same_problem:
            return "they solve different problems, so that their objectives cannot be compared"
        apart, larger = abs(a.objective - b.objective), max(a.gap, b.gap)
        if not np.isfinite(apart):
            return "their certificates have no objectives to compare"
        if not np.isfinite(larger):
            return f"their objectives are {apart:.3g} apart, and no gap is proved for one of them"
        gaps = f"gaps {a.gap:.3g} and {b.gap:.3g}"
        # Both lie above the minimum, each by its gap at most.
        if apart <= larger + 1e-12 * abs(a.objective):
            known = "the difference is smaller than what either solver proved"
            return f"their objectives are {apart:.3g} apart: {known} ({gaps})"
        worse = "B" if a.objective < b.objective else "A"
        return (
            f"their objectives are {apart:.3g} apart, more than can be ({gaps}): the certificate of {worse} is wrong"
        )


def run_diff(first: Path, second: Path, table: TableFiles | None, screen: Screen) -> bool:
    """Say what differs; True where nothing does, but for what the solvers leave open."""
    found = ModelDifferences(load_table_model(first), load_table_model(second))
    data, settings = found.data(), found.settings()
    screen.say(f"A  {first.name}: {_model_words(found.first)}")
    screen.say(f"B  {second.name}: {_model_words(found.second)}")
    _list(screen, "Data", data, "the same rows (the fingerprints agree)")
    _list(screen, "Settings and seeds", settings, "the same")
    screen.heading("Solvers")
    screen.say("the same coefficients, bit for bit" if found.same_bits() else found.solver_words())
    document: dict[str, Any] = {
        "data": data,
        "settings": settings,
        "same_problem": found.same_problem,
        "same_bits": found.same_bits(),
        "gaps": [_finite(model.certificate_.gap) for model in (found.first, found.second)],
        "objectives": [_finite(model.certificate_.objective) for model in (found.first, found.second)],
        "solvers": found.solver_words(),
    }
    moved = 0
    if table is not None:
        document["rows"] = _compare_rows(found, table, screen)
        moved = document["rows"]["changed"]
    reasons = [name for name, words in (("data", data), ("settings", settings)) if words]
    screen.heading("Why")
    screen.say(_verdict(reasons, found, moved, table is not None))
    screen.document(document | {"why": _verdict(reasons, found, moved, table is not None)})
    return not reasons and not moved


def _verdict(reasons: list[str], found: ModelDifferences, moved: int, looked: bool) -> str:
    if reasons:
        return f"the models differ in {' and '.join(reasons)}: see above"
    if found.same_bits():
        return "nothing differs"
    rows = f"; {moved:,} rows are judged otherwise" if moved else "; no row is judged otherwise" if looked else ""
    return f"the same problem on the same rows: {found.solver_words()}{rows}"


# Rows. -----------------------------------------------------------------------------------------------------------


@dataclass
class RowComparison:
    """Two models' answers for the same rows, added up block by block."""

    classes: bool  # whether answers are classes
    most: int = 10  # rows that are listed
    n: int = 0
    losses: Array = field(default_factory=lambda: np.zeros(2))  # of A and B, summed over the rows
    centre: float = 0.0  # of the differences of the rows' losses
    squares: float = 0.0  # of their distances from it
    changed: int = 0  # rows that are judged otherwise
    largest: float = 0.0  # by which an answer moves
    moved: list[tuple[int, str, str, str, float]] = field(default_factory=list)  # row, true, A, B, by: the largest

    def add(self, y: Array, said: list[tuple[Array, Array]]) -> None:
        """Further rows: their truth (m,), and what both models say of them."""
        loss = [(labels != y).astype(float) if self.classes else np.abs(labels - y) for labels, _ in said]
        apart, m = loss[1] - loss[0], len(y)
        off, total = float(apart.mean()) - self.centre, self.n + m
        self.squares += float(((apart - apart.mean()) ** 2).sum()) + off**2 * self.n * m / total
        self.centre += off * m / total
        self.losses += [part.sum() for part in loss]
        distance = np.abs(said[1][1] - said[0][1]).reshape(m, -1).max(axis=1) if _alike(said) else np.zeros(m)
        changed = np.flatnonzero(said[0][0] != said[1][0]) if self.classes else np.flatnonzero(distance > 0)
        self.changed += len(changed)
        self.largest = max(self.largest, float(distance.max(initial=0.0)))
        order = changed[np.argsort(-distance[changed], kind="stable")][: self.most]
        self.moved += [
            (self.n + int(i) + 1, _plain(y[i]), _plain(said[0][0][i]), _plain(said[1][0][i]), float(distance[i]))
            for i in order
        ]
        self.moved = sorted(self.moved, key=lambda line: -line[-1])[: self.most]
        self.n = total

    @property
    def error(self) -> float:
        """The standard error of the mean difference of losses, over rows."""
        return float(np.sqrt(self.squares / (self.n - 1) / self.n)) if self.n > 1 else np.inf


def _compare_rows(found: ModelDifferences, path: TableFiles, screen: Screen) -> dict[str, Any]:
    """Both models' answers for the rows of a table: scores, their difference with its error, rows that moved."""
    rows, source = RowComparison(hasattr(found.first, "classes_")), block_source(path)
    models = (found.first, found.second)
    with warnings_as_notes(screen):
        for first, second in zip(*(model.encode_blocks(source) for model in models), strict=True):
            if first.n_rows != second.n_rows:
                screen.say("their targets are missing in different rows: rows are not compared")
                return {"changed": 0, "compared": 0}
            rows.add(
                first.data.y, [_answers(model, part.X) for model, part in zip(models, (first, second), strict=True)]
            )
    if not rows.n:
        raise DataError(got="a target that is missing in every row", wanted="rows with a label")
    name = "share of wrong answers" if rows.classes else "mean absolute error"
    scores = (rows.losses / rows.n).tolist()
    screen.heading(f"On the {rows.n:,} rows of {path.name}")
    screen.say(
        f"{name}: {scores[0]:.6g} -> {scores[1]:.6g}, a difference of {rows.centre:+.3g} ± {rows.error:.2g} "
        f"(standard error over rows{'' if abs(rows.centre) > 2 * rows.error else ': no more than chance'})"
    )
    screen.say(f"{rows.changed:,} rows are judged otherwise; answers move by {rows.largest:.3g} at most")
    if rows.moved:
        lines = [(f"{i:,}", t, a, b, f"{d:.3g}") for i, t, a, b, d in rows.moved]
        screen.table(["row", "true", "A", "B", "moved by"], lines, right=(0, 4))
    return {
        "compared": rows.n,
        "changed": rows.changed,
        "score": name,
        "scores": scores,
        "difference": rows.centre,
        "difference_error": _finite(rows.error),
        "largest_move": rows.largest,
        "moved": [dict(zip(("row", "true", "a", "b", "by"), line, strict=True)) for line in rows.moved],
    }


def _answers(model: TableModel, X: Array) -> tuple[Array, Array]:
    """Labels or numbers (n,), and what can be compared as numbers: probabilities (n, k) or the numbers."""
    labels = np.asarray(model.model_.predict(X))
    return labels, np.asarray(model.model_.predict_proba(X)) if hasattr(model.model_, "predict_proba") else labels


def _alike(said: list[tuple[Array, Array]]) -> bool:
    first, second = said[0][1], said[1][1]
    return first.shape == second.shape and first.dtype.kind == second.dtype.kind == "f"


# Words. ------------------------------------------------------------------------------------------------------------


def _model_words(model: TableModel) -> str:
    certificate = model.certificate_
    holds = "holds" if certificate.holds else "does NOT hold"
    return f"{type(model.model_).__name__} on {model.n_rows_:,} rows; objective {certificate.objective:.10g}, {holds}"


def _column_words(column: Any) -> str:
    spread = f"mean {column.centre:.6g}, sd {column.scale:.4g}, " if column.kind in ("number", "date") else ""
    return f"{column.done} ({spread}{column.missing:,} missing)"


def _params(model: TableModel) -> dict[str, str]:
    """The settings of the model of the table, and of the one inside as `model_.…`, as text."""
    own = {name: repr(value) for name, value in model.get_params().items()}
    same = {name for name in own if not name.startswith("model_")}
    inner: dict[str, Any] = getattr(model.model_, "get_params", dict)()
    # What rows weigh in all is no setting: the penalty beside it is the outer model's.
    skipped = {*same, "alpha", "theta"}
    return own | {f"model_.{name}": repr(value) for name, value in inner.items() if name not in skipped}


def _list(screen: Screen, heading: str, lines: list[str], none: str) -> None:
    screen.heading(heading)
    for line in lines or [none]:
        screen.say(line)


def _plain(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, (float, np.floating)) else str(value)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
