"""What models of mixed tables share: columns are encoded as numbers, and a model of numbers is fitted to these.

The encoding (`table.columns`) is learnt from the training rows; the certificate is the one of the model inside, on
the encoded rows. Files that are large beside the memory available are learnt and fitted block by block
(`table.streaming`), any others in memory; predictions of a path are made block by block.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, TypeAlias

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from certifit.core import LOOP, Estimator, Objective, Setting
from certifit.core.settings import Settings
from certifit.exceptions import CertificateWarning, DataError, warn_caller
from certifit.rows import Array, Block
from certifit.rows.sources.open_source import open_source
from certifit.table.columns import Column, add_up, encode_columns
from certifit.table.labelled_table import READING, EncodedRows, LabelledRows, LabelledTable
from certifit.table.portfolio.calibration import radius
from certifit.table.portfolio.leaderboard import leaderboard_summary
from certifit.table.portfolio.ledger import SearchLedger
from certifit.table.reading import table_blocks
from certifit.table.streaming.learning_pass import StreamPlan
from certifit.table.streaming.streamed_table import StreamedTable, labelled_rows, streamed_table
from certifit.table.targets import Task
from certifit.table.text.holes import without_words

LabelledData: TypeAlias = LabelledTable | StreamedTable


def _are_words(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and all(isinstance(name, str) for name in value)


def _is_estimator(value: Any) -> bool:
    return isinstance(value, Estimator) and not isinstance(value, TableModel)


class TableModel(Estimator):
    """A model of a table whose columns may be text and may have missing entries."""

    task: ClassVar[Task]
    missing = True
    settings: ClassVar[Settings] = {
        "tol": LOOP["tol"],
        "max_iter": LOOP["max_iter"],
        "keep": Setting(other=_are_words, other_words="a list of names of columns"),
        "categorical": Setting(other=_are_words, other_words="a list of names of columns"),
        "missing_words": Setting(other=_are_words, other_words="a list of words"),
        "dates": Setting(other=_are_words, other_words="a list of names of columns, or of name=format"),
        "estimator": Setting(none=True, other=_is_estimator, other_words="one of certifit's estimators"),
    }
    diagnostics: ClassVar[tuple[str, ...]] = ("n_iter_", "fingerprint_")

    keep: Any
    categorical: Any
    missing_words: Any
    dates: Any
    estimator: Any
    columns_: tuple[Column, ...]
    features_: list[str]
    model_: Any
    target_: str | None
    weight_: str | None
    n_rows_: int
    unlabelled_: int
    search_: SearchLedger  # of the comparison that chose this model; `certifit.fit` sets it

    def _rows_to_fit(self, X: Any, y: Any, sample_weight: Any, reset: bool = True, targets: int = 1) -> Any:
        """Labelled rows of a table (X may be labelled rows already), with the encoding learnt from them."""
        if "_columns" in vars(self):
            raise DataError(
                got=f"columns= for a {type(self).__name__}",
                wanted="a table of the columns to learn from, the target and the weights",
                fix="Leave the other columns out of the table.",
            )
        data = labelled_rows(X, y, sample_weight, task=self.task, **self._reading())
        self._check_learnable(data)
        self.n_features_in_ = len(data.column_names)
        if data.named:
            self.feature_names_in_ = np.array(data.column_names, dtype=object)
        return data.encode()

    def _check_learnable(self, data: LabelledData) -> None:
        """Refuse a table of one row, or without a column that varies."""
        if data.n_rows < 2:
            raise DataError(got="a table of one row (1 sample)", wanted="at least two rows")
        if all(column.kind == "left out" for column in data.columns):
            raise DataError(
                got="no column to learn from: " + ", ".join(f"{c.name!r} {c.done}" for c in data.columns),
                wanted="at least one column, beside the target, that varies",
            )

    @contextmanager
    def _inner_fit(self, model: Any) -> Iterator[None]:
        """While the model inside is fitted: it reports to the same callbacks, and warns through this estimator."""
        with self._watch.inner_fit(model), warnings.catch_warnings():
            warnings.simplefilter("ignore", CertificateWarning)
            yield

    def _fit_estimator(self, rows: LabelledRows) -> Any:
        """A copy of the estimator that was given, fitted to encoded rows."""
        model = clone(self.estimator)
        if "family" in model.get_params() and model.family == "auto":  # naive Bayes: as each column is encoded
            model.set_params(family=_column_families(rows.data.columns))
        with self._inner_fit(model):
            model.fit(rows)
        return model

    def _estimator_agreement(self) -> dict[str, bool]:
        """Whether the model inside is of the class and the settings of the estimator that was given."""
        same, wanted = type(self.model_) is type(self.estimator), self.estimator.get_params()
        found = self.model_.get_params() if same else {}
        if wanted.get("family") == "auto":
            wanted["family"] = _column_families(self.columns_)
        return {
            "model_ is not of the estimator's class": same,
            "model_ has other settings than the estimator": not same or repr(wanted) == repr(found),
        }

    def _fitted(self, rows: LabelledRows, model: Any) -> dict[str, Any]:
        """The fitted attributes that all models of tables have."""
        return {
            "columns_": rows.data.columns,
            "features_": rows.features,
            "model_": model,
            "n_iter_": getattr(model, "n_iter_", 1),
            "target_": rows.data.target,
            "weight_": rows.data.weight,
            "n_rows_": rows.data.n_rows,
            "unlabelled_": rows.data.unlabelled,
            "fingerprint_": rows.fingerprint,
            "certificate_": model.certificate_,
        }

    @property
    def left_out_(self) -> dict[str, str]:
        """The columns that the model does not use, and why."""
        return {c.name: c.done.removeprefix("left out: ") for c in self.columns_ if c.kind == "left out"}

    def encode(self, X: Any) -> tuple[Array, list[str]]:
        """The matrix (n, d) that the model sees, and the names of its columns.

        Columns are found by name, so their order and further columns do not matter. What training did not see
        (new categories, missing entries in a column that had none) is counted in a warning.
        """
        blocks = self._map_blocks(X, lambda matrix: matrix)
        return blocks, [*self.features_]

    def _map_blocks(self, X: Any, f: Callable[[Array], Array]) -> Array:
        """f of the encoded rows (n, d), block by block where X is read from files."""
        check_is_fitted(self)
        d, found, surprises = self.n_features_in_, [], []
        for table in table_blocks(X):
            if not table.num_rows:
                raise DataError(got="a table with no rows (0 samples)", wanted="at least one row to answer for")
            if not hasattr(self, "feature_names_in_") and table.num_columns != d:  # fitted to an array
                raise DataError(
                    got=f"an array of another width: X has {table.num_columns} features, but "
                    f"{type(self).__name__} is expecting {d} features as input",
                    wanted=f"the {d} columns of the training array",
                )
            matrix, _, new = encode_columns(self.columns_, without_words(table, self.missing_words))
            found.append(f(matrix))
            surprises += new
        for surprise in add_up(surprises):
            warn_caller(f"{type(self).__name__}: {surprise}")
        return found[0] if len(found) == 1 else np.concatenate(found)

    def encode_labelled(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Rows, targets and weights as `fit` encoded them; y and sample_weight default to the columns used there."""
        data = self._labelled(X, y, sample_weight)
        if isinstance(data, StreamedTable):
            return data.encode_as(self.columns_)
        matrix, features = self.encode(data.table)
        return EncodedRows(matrix, data, features)

    def encode_blocks(self, X: Any) -> Iterator[EncodedRows]:
        """Labelled rows as `fit` encoded them, block by block where X is files; blocks without labels are skipped."""
        surprises: list[Any] = []
        for table in table_blocks(X):
            if self.target_ in table.column_names and table[self.target_].null_count == table.num_rows:
                continue
            data = self._labelled(table, None, None)
            assert isinstance(data, LabelledTable)  # as the block is
            matrix, features, new = encode_columns(self.columns_, data.table)
            surprises += new
            yield EncodedRows(matrix, data, features)
        for surprise in add_up(surprises):
            warn_caller(f"{type(self).__name__}: {surprise}")

    def stream(self, X: Any) -> StreamedTable:
        """The labelled rows of files, read block by block; `audit`, `encode_labelled` and `score` take them.

        Files that are large beside the memory available are read so in any case.
        """
        check_is_fitted(self)
        if self.target_ is None:
            raise DataError(got="a model fitted to labels in an array", wanted="one fitted to a column of labels")
        used = {column.name for column in self.columns_} | {self.target_, self.weight_}
        source = open_source(X)
        other = () if source is None else tuple(name for name in source.schema.names if name not in used)
        return streamed_table(X, StreamPlan(self.target_, self.weight_, self.task, drop=other, **self._as_tuples()))

    def _as_tuples(self) -> dict[str, Any]:
        return {name: tuple(values) for name, values in self._reading().items()}

    def _labelled(self, X: Any, y: Any, sample_weight: Any) -> LabelledData:
        check_is_fitted(self)
        y = self.target_ if y is None else y
        sample_weight = self.weight_ if sample_weight is None else sample_weight
        if isinstance(X, LabelledTable | StreamedTable):
            y, sample_weight = None, None
        return labelled_rows(X, y, sample_weight, task=self.task, **self._reading())

    def _reading(self) -> dict[str, Any]:
        """How columns are read, as it was asked for."""
        return {name: getattr(self, name) for name in READING}

    def disagreements(self, X: Any, y: Any = None, sample_weight: Any = None) -> list[str]:
        """What is not as a fit to this table would have left it, in words; `audit` asks for it.

        The encoding is learnt again. The order of the columns and how they are stored do not matter.
        """
        data = self._labelled(X, y, sample_weight)
        again = {column.name: column for column in data.columns}
        found = [
            f"column {column.name!r} is encoded otherwise than these rows teach"
            for column in self.columns_
            if column.name not in again or not column.is_like(again[column.name])
        ]
        names = [column.name for column in self.columns_]
        same = {
            "features_ are not those of columns_": self.features_ == [f for c in self.columns_ for f in c.features],
            "n_rows_ is not the number of labelled rows": self.n_rows_ == data.n_rows,
            "unlabelled_ is not the number of rows without a label": self.unlabelled_ == data.unlabelled,
            "n_features_in_ is not the number of columns_": self.n_features_in_ == len(names),
            "feature_names_in_ are not those of columns_": [*getattr(self, "feature_names_in_", names)] == names,
            **(self._estimator_agreement() if self.estimator is not None else self._linear_agreement(data)),
        }
        return found + [words for words, right in same.items() if not right]

    def _linear_agreement(self, data: LabelledData) -> dict[str, bool]:
        """Whether the model inside is the linear one that these rows and the settings here ask for."""
        same = {
            f"{name} is not that of model_": getattr(self, name) == getattr(self.model_, name)
            for name in ("tol", "max_iter")
        }
        return {**same, **self._inner_agreement(data)}

    @abstractmethod
    def _inner_agreement(self, data: LabelledData) -> dict[str, bool]:
        """Whether the settings of the model inside are those that these rows and the settings here ask for."""

    def _said_and_true(self, rows: Any) -> tuple[Array, Array, Array | None]:
        """(n,) predictions for labelled rows, their labels, and their weights where there are any."""
        said = self.model_.predict(rows)
        if isinstance(rows, EncodedRows):
            return said, rows.data.y, rows.data.w
        return said, rows.map(_block_labels), rows.map(_block_weights)

    def predict(self, X: Any) -> Array:
        """(n,) predictions: the most probable label, or the mean.

        X is any table with the columns of the fit; a path is read block by block.
        """
        check_is_fitted(self)
        return self._map_blocks(X, self.model_.predict)

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """The fitted model's objective on these rows: total, data term and penalty."""
        return self.model_.objective(self.encode_labelled(X, y, sample_weight))

    def unseen_radius(self, coverage: float) -> float:
        """How strange so large a share of new rows looks at most, by the rows that folds had left out."""
        check_is_fitted(self)
        if not hasattr(self, "search_"):
            raise DataError(
                got=f"a {type(self).__name__} whose errors on unseen rows are not known",
                wanted="a model of `certifit.fit` or of the command `certifit fit`",
                fix="Conformal models give any model intervals or sets.",
            )
        return radius(self.search_.unseen_errors, coverage)

    def _check_places(self) -> None:
        """Refuse a model of a file whose ledger is none; a ledger looks at itself."""
        if not isinstance(getattr(self, "search_", None), (SearchLedger, type(None))):
            raise ValueError("a model of a table whose search_ is no SearchLedger")

    def __repr__(self, *arguments: Any, **keywords: Any) -> str:
        """The settings and, where models were compared, the leaderboard."""
        text = super().__repr__(*arguments, **keywords)
        return f"{text}\n\n{leaderboard_summary(self.search_)}" if hasattr(self, "search_") else text

    def _html_repr(self) -> str:
        """What a notebook shows: where models were compared, the leaderboard above scikit-learn's box."""
        box: str = super()._html_repr()
        if not hasattr(self, "search_"):
            return box
        board = leaderboard_summary(self.search_)._repr_html_()
        proof = self.certificate_
        verdict = f"Certificate: {proof.kind}, {'holds' if proof.holds else 'does NOT hold'}"
        folded = f"<details><summary>{verdict}</summary>{proof._repr_html_()}</details>"
        return f"<details open><summary>Leaderboard</summary>{board}</details>{folded}{box}"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        return tags


def _block_labels(block: Block) -> Array:
    return np.asarray(block.y)


def _block_weights(block: Block) -> Array:
    return block.w


def _column_families(columns: tuple[Column, ...]) -> list[str]:
    """The family of each column of numbers: 0 and 1 are Bernoulli's, all others Gaussian."""
    return [
        "gaussian" if column.kind in ("number", "date") and name == column.name else "bernoulli"
        for column in columns
        for name in column.features
    ]
