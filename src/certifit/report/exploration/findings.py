"""What can be said of a table without a target: a map, groups, the columns that drive them, holes and outliers.

Every column of the table has the same say: what it becomes as numbers is scaled to a total variance of 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.stats import chi2
from sklearn.metrics import adjusted_rand_score

from certifit.cluster.choose_k import ClusterChoice, choose_clusters
from certifit.cluster.kmeans import KMeans
from certifit.decomposition.pca.pca import PCA
from certifit.exceptions import DataError
from certifit.mixture.choose_components import MixtureChoice, select_mixture
from certifit.rows import Array
from certifit.table.columns import Column, as_numbers, as_text, encode_columns, is_text
from certifit.table.learning.learn_columns import learn_columns
from certifit.table.text.holes import with_holes
from certifit.table.text.readings import read_text


@dataclass(frozen=True)
class ExploreTuning:
    """How much is looked at, and when something is worth saying."""

    most_rows: int = 50_000  # drawn from a table that is large beside the memory
    most_groups: int = 8
    choice_rows: int = 5000  # on which the number of groups is chosen
    weak: float = 0.25  # silhouette below which no groups stand out (Kaufman & Rousseeuw 1990)
    most_axes: int = 10
    mixture_axes: int = 4
    most_components: int = 6  # of the mixture
    few_values: int = 10  # a column of numbers with so many different ones is no part of the mixture
    explained: float = 0.95  # share of the variance that the axes for outliers hold
    most_outliers: int = 12
    chance: float = 0.01  # that a normal table of this size has a row as far out as an outlier


class ColumnShare(NamedTuple):
    """How much of a column's variance the groups explain, and what the column is like in each."""

    name: str
    share: float
    in_groups: tuple[str, ...]


class OutlierRow(NamedTuple):
    """A row far from the others: its number, squared distance, and the columns in which it is unusual."""

    row: int  # in the whole table, from 1
    distance: float
    why: str


class HolePair(NamedTuple):
    """Two columns that are often missing together."""

    first: str
    second: str
    together: int


@dataclass(frozen=True)
class DrawnRows:
    """Rows of a table that are looked at: all of them, or some drawn at random."""

    table: pa.Table
    numbers: Array  # (n,) of the rows in the whole table, from 0
    n_all: int  # rows of the whole table

    @classmethod
    def all_of(cls, table: pa.Table) -> DrawnRows:
        return cls(table, np.arange(table.num_rows), table.num_rows)

    @property
    def in_words(self) -> str:
        n = self.table.num_rows
        drawn = f", of which {n:,} drawn at random are looked at" if n < self.n_all else ""
        return f"{self.n_all:,} rows{drawn}"


@dataclass(frozen=True)
class TableFindings:
    """What was found in a table without a target."""

    rows: DrawnRows
    columns: tuple[Column, ...]
    pca: PCA
    scores: Array  # (n, axes)
    choice: ClusterChoice | None  # None where there are too few rows to choose
    groups: KMeans | None  # None where no groups stand out
    labels: Array  # (n,) numbers of groups, from 0
    mixture: MixtureChoice | None
    agreement: float  # adjusted Rand index of the groups and the mixture's components
    shares: tuple[ColumnShare, ...]
    holes: tuple[HolePair, ...]
    outliers: tuple[OutlierRow, ...]
    outlier_limit: float

    @property
    def table(self) -> pa.Table:
        return self.rows.table

    @property
    def n_groups(self) -> int:
        return 1 if self.groups is None else len(self.groups.cluster_centers_)


def explore_table(
    rows: pa.Table | DrawnRows, *, groups: int = 0, seed: int = 0, tuning: ExploreTuning = ExploreTuning()
) -> TableFindings:
    """Look at a table, or at rows drawn from one; `groups` of 0 chooses their number."""
    rows = rows if isinstance(rows, DrawnRows) else DrawnRows.all_of(rows)
    table, n = rows.table, rows.table.num_rows
    columns = learn_columns(table, np.ones(n))
    if n < 3 or all(column.kind == "left out" for column in columns):
        raise DataError(
            got=f"{n} rows and no column that varies" if n >= 3 else f"{n} rows", wanted="a table to look at"
        )
    X, places = _equal_columns(columns, table)
    pca = PCA(min(tuning.most_axes, X.shape[1], n - 1)).fit(X)
    scores = pca.transform(X)
    choice = _choose(X, seed, tuning) if groups == 0 else None
    wanted = groups or _wanted(choice, tuning)
    if wanted > n:
        raise DataError(got=f"{wanted} groups of {n} rows", wanted="at most as many groups as rows")
    model = _group(X, wanted, choice, seed)
    labels = np.zeros(n, dtype=int) if model is None else np.asarray(model.labels_)
    mixture, parts = _mixture(_numbers(columns, X, places, tuning), seed, tuning)
    agreement = np.nan if model is None or parts is None else float(adjusted_rand_score(labels, parts))
    limit = float(chi2.isf(tuning.chance / n, _axes_for_outliers(pca, tuning)))
    return TableFindings(
        rows, columns, pca, scores, choice, model, labels, mixture, agreement,
        _shares(columns, table, X, places, labels), _hole_pairs(table, columns),
        _outliers(columns, X, places, (pca, scores), limit, rows.numbers, tuning), limit,
    )  # fmt: skip


def _equal_columns(columns: tuple[Column, ...], table: pa.Table) -> tuple[Array, dict[str, slice]]:
    """The encoded rows with a total variance of 1 for every column, and the place of each column's numbers."""
    X, _, _ = encode_columns(columns, table)
    places, first = {}, 0
    for column in columns:
        wide = len(column.features) if column.kind != "left out" else 0
        if wide:
            place = places[column.name] = slice(first, first + wide)
            spread = float(X[:, place].var(axis=0).sum())
            X[:, place] = (X[:, place] - X[:, place].mean(axis=0)) / (np.sqrt(spread) if spread > 0 else 1.0)
        first += wide
    return X, places


def _choose(X: Array, seed: int, tuning: ExploreTuning) -> ClusterChoice | None:
    """Fits with several numbers of groups, on a part of many rows."""
    part = X
    if len(X) > tuning.choice_rows:
        part = X[np.random.default_rng(seed).permutation(len(X))[: tuning.choice_rows]]
    most = min(tuning.most_groups, len(np.unique(part, axis=0)) - 1, len(part) // 2)
    return choose_clusters(part, range(1, most + 1), random_state=seed, references=5) if most >= 2 else None


def _group(X: Array, wanted: int, choice: ClusterChoice | None, seed: int) -> KMeans | None:
    """The clustering of all rows, which the choice may have made already."""
    if wanted < 2:
        return None
    for model in () if choice is None else choice.models:
        if model.n_clusters == wanted and len(model.labels_) == len(X):
            return model
    return KMeans(wanted, n_init=5, random_state=seed).fit(X)


def _wanted(choice: ClusterChoice | None, tuning: ExploreTuning) -> int:
    """The number of groups with the largest silhouette, or 1 where no groups stand out."""
    if choice is None or not np.nanmax(choice.silhouette) >= tuning.weak:
        return 1
    return int(choice.n_clusters[np.nanargmax(choice.silhouette)])


def _numbers(columns: tuple[Column, ...], X: Array, places: dict[str, slice], tuning: ExploreTuning) -> Array:
    """The first axes of the columns of numbers with many values (n, a): a normal distribution has no other."""
    many = [c.name for c in columns if c.kind == "number" and c.distinct > tuning.few_values]
    Z = X[:, [places[name].start for name in many]]
    if Z.shape[1] > tuning.mixture_axes:
        Z = PCA(tuning.mixture_axes).fit(Z).transform(Z)
    return Z


def _mixture(Z: Array, seed: int, tuning: ExploreTuning) -> tuple[MixtureChoice | None, Array | None]:
    """The Gaussian mixture with the best BIC, and the component of every row."""
    if not Z.shape[1]:
        return None, None
    part = Z[np.random.default_rng(seed).permutation(len(Z))[: tuning.choice_rows]]
    if len(part) < 10 * Z.shape[1]:
        return None, None
    found = select_mixture(part, range(1, tuning.most_components + 1), ["full", "diag"], random_state=seed)
    return found, np.asarray(found.model.predict(Z))


def _shares(
    columns: tuple[Column, ...], table: pa.Table, X: Array, places: dict[str, slice], labels: Array
) -> tuple[ColumnShare, ...]:
    """How much of each column's variance lies between the groups, the largest first."""
    numbers = np.unique(labels)
    if len(numbers) < 2:
        return ()
    found = []
    for column in columns:
        if column.name not in places:
            continue
        block = X[:, places[column.name]]
        between = sum(np.mean(labels == g) * (block[labels == g].mean(axis=0) ** 2).sum() for g in numbers)
        total = float(block.var(axis=0).sum())
        values = table[column.name]
        words = tuple(_usual(column, values.filter(pa.array(labels == g))) for g in numbers)
        found.append(ColumnShare(column.name, float(between / total) if total > 0 else 0.0, words))
    return tuple(sorted(found, key=lambda share: -share.share))


def _usual(column: Column, values: pa.ChunkedArray) -> str:
    """What a column is like in a group: its mean, its mean day, or its most frequent value with its share."""
    if column.reading and is_text(values):
        values = read_text(with_holes(as_text(column.name, values)), column.reading)
    values = values.drop_null()
    if not len(values):
        return "missing"
    if column.kind in ("number", "date"):
        mean = float(np.nanmean(as_numbers(column.name, values, column.kind)))
        return f"{mean:.4g}" if column.kind == "number" else str(np.datetime64(round(mean), "D"))
    counts = pc.value_counts(values.combine_chunks()).to_pylist()
    top = max(counts, key=lambda one: one["counts"])
    return f"{top['values']} ({100 * top['counts'] / len(values):.0f} %)"


def _hole_pairs(table: pa.Table, columns: tuple[Column, ...], most: int = 8) -> tuple[HolePair, ...]:
    """Columns that are missing together, the most frequent first."""
    holes = {c.name: pc.is_null(table[c.name], nan_is_null=True).to_numpy() for c in columns if c.missing}
    names = sorted(holes, key=lambda name: -int(holes[name].sum()))[:40]
    found = [HolePair(a, b, int((holes[a] & holes[b]).sum())) for i, a in enumerate(names) for b in names[i + 1 :]]
    return tuple(sorted((pair for pair in found if pair.together), key=lambda pair: -pair.together)[:most])


def _axes_for_outliers(pca: PCA, tuning: ExploreTuning) -> int:
    """The number of axes that hold most of the variance."""
    share = np.cumsum(pca.explained_variance_ratio_)
    return int(min(np.searchsorted(share, tuning.explained) + 1, np.sum(pca.explained_variance_ > 0)))


def _outliers(
    columns: tuple[Column, ...],
    X: Array,
    places: dict[str, slice],
    axes_and_scores: tuple[PCA, Array],
    limit: float,
    numbers: Array,
    tuning: ExploreTuning,
) -> tuple[OutlierRow, ...]:
    """Rows whose squared distance from the middle, in standard deviations of the axes, is beyond the limit."""
    pca, scores = axes_and_scores
    axes = _axes_for_outliers(pca, tuning)
    distance = (scores[:, :axes] ** 2 / pca.explained_variance_[:axes]).sum(axis=1)
    order = np.argsort(-distance, kind="stable")[: tuning.most_outliers]
    kinds = {column.name: column.kind for column in columns}
    found: list[OutlierRow] = []
    for i in order:
        if distance[i] <= limit:
            break
        sizes = {name: float(np.sqrt((X[i, place] ** 2).sum())) for name, place in places.items()}
        worst = sorted(sizes, key=lambda name: -sizes[name])[:3]
        words = ", ".join(f"{name} ({sizes[name]:.1f} sd)" if kinds[name] == "number" else name for name in worst)
        found.append(OutlierRow(int(numbers[i]) + 1, float(distance[i]), words))
    return tuple(found)


def findings_document(found: TableFindings) -> dict[str, Any]:
    """The findings as plain data, for JSON."""
    return {
        "rows": found.rows.n_all,
        "rows_looked_at": found.table.num_rows,
        "columns": [
            {name: getattr(c, name) for name in ("name", "type", "kind", "missing", "distinct", "done")}
            for c in found.columns
        ],
        "axes": {
            "explained": found.pca.explained_variance_ratio_.tolist(),
            "certificate": found.pca.certificate_.to_dict(),
        },
        "groups": found.n_groups,
        "sizes": np.bincount(found.labels).tolist(),
        "groups_certificate": None if found.groups is None else found.groups.certificate_.to_dict(),
        "mixture_components": None if found.mixture is None else found.mixture.best.n_components,
        "agreement": None if np.isnan(found.agreement) else found.agreement,
        "drivers": [share._asdict() for share in found.shares],
        "holes": [pair._asdict() for pair in found.holes],
        "outliers": [row._asdict() for row in found.outliers],
    }
