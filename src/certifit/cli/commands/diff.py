"""`certifit diff`: why do two models of a table differ? Data, settings, seeds, solver error, rows that moved."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from certifit.cli.files import TableFiles, read_table
from certifit.cli.saved_model import load_table_model, warnings_as_notes
from certifit.cli.screen import Screen
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


def _compare_rows(found: ModelDifferences, path: TableFiles, screen: Screen, most: int = 10) -> dict[str, Any]:
    """Both models' answers for the rows of a table: scores, their difference with its error, rows that moved."""
    with warnings_as_notes(screen):
        rows = [model.encode_labelled(read_table(path)) for model in (found.first, found.second)]
    if rows[0].n_rows != rows[1].n_rows:
        screen.say("their targets are missing in different rows: rows are not compared")
        return {"changed": 0, "compared": 0}
    y = rows[0].data.y
    said = [_answers(model, part.X) for model, part in zip((found.first, found.second), rows, strict=True)]
    classes = hasattr(found.first, "classes_")
    loss = [(labels != y).astype(float) if classes else np.abs(labels - y) for labels, _ in said]
    apart = loss[1] - loss[0]
    error = float(apart.std(ddof=1) / np.sqrt(len(y))) if len(y) > 1 else np.inf
    distance = np.abs(said[1][1] - said[0][1]).reshape(len(y), -1).max(axis=1) if _alike(said) else np.zeros(len(y))
    changed = np.flatnonzero(said[0][0] != said[1][0]) if classes else np.flatnonzero(distance > 0)
    name = "share of wrong answers" if classes else "mean absolute error"
    screen.heading(f"On the {len(y):,} rows of {path.name}")
    screen.say(
        f"{name}: {loss[0].mean():.6g} -> {loss[1].mean():.6g}, a difference of {apart.mean():+.3g} ± {error:.2g} "
        f"(standard error over rows{'' if abs(apart.mean()) > 2 * error else ': no more than chance'})"
    )
    far = f"; answers move by {distance.max():.3g} at most" if len(distance) else ""
    screen.say(f"{len(changed):,} rows are judged otherwise{far}")
    order = changed[np.argsort(-distance[changed], kind="stable")][:most]
    listed = [
        (int(i) + 1, _plain(y[i]), _plain(said[0][0][i]), _plain(said[1][0][i]), float(distance[i])) for i in order
    ]
    if listed:
        lines = [(f"{i:,}", t, a, b, f"{d:.3g}") for i, t, a, b, d in listed]
        screen.table(["row", "true", "A", "B", "moved by"], lines, right=(0, 4))
    return {
        "compared": len(y),
        "changed": len(changed),
        "score": name,
        "scores": [float(part.mean()) for part in loss],
        "difference": float(apart.mean()),
        "difference_error": _finite(error),
        "largest_move": float(distance.max(initial=0.0)),
        "moved": [dict(zip(("row", "true", "a", "b", "by"), line, strict=True)) for line in listed],
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
    return f"{column.done} (mean {column.centre:.6g}, sd {column.scale:.4g}, {column.missing:,} missing)"


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
