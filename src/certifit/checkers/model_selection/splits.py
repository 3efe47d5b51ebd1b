"""Whether splits of a table are what they say: nothing is fitted that is tested, everything is used as declared.

Sides are compared by row numbers; contents by a hash of every row, so that rows that are equal and stand on both
sides of a border are found wherever the table is. Equal rows have equal hashes: where no hash is on both sides, no
row is. Different rows have equal hashes with a probability of about 2^-64 a pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np
from scipy import sparse

from certifit.core import Certificate, Check
from certifit.rows import Array, Block, Rows

Split = tuple[Array, Array]  # numbers of the rows to fit and of the rows to test


@dataclass(frozen=True)
class SplitDeclaration:
    """What is declared of splits, beside that no row is fitted and tested in the same one."""

    tested: int | None = None  # how often each row is tested in all; None where nothing is declared
    whole: bool = False  # whether every split uses every row
    groups: Array | None = None  # (n,) rows of a group are on one side
    times: Array | None = None  # (n,) rows that are tested are later than all that are fitted
    duplicates: bool = True  # whether equal rows may stand on both sides


@dataclass(frozen=True)
class SplitSizes:
    """How many splits there are, and what an average one fits and tests."""

    splits: int
    tested: int  # rows, in all splits together
    ratio: float  # rows tested over different rows fitted

    @classmethod
    def of(cls, splits: Sequence[Split]) -> SplitSizes:
        """Count the rows of splits."""
        tested = sum(len(test) for _, test in splits)
        fitted = sum(int(np.count_nonzero(np.bincount(train))) for train, _ in splits)
        return cls(len(splits), tested, tested / max(fitted, 1))

    @classmethod
    def of_folds(cls, folds: Array) -> SplitSizes:
        """Count the rows of folds (draws, n) that are tested in turn."""
        n_draws, n = folds.shape
        n_folds = int(folds.max()) + 1
        return cls(n_draws * n_folds, n_draws * n, 1 / max(n_folds - 1, 1))


@dataclass
class SplitFaults:
    """What is wrong with splits, counted over all of them."""

    outside: int = 0
    both: int = 0
    empty: int = 0
    unused: int = 0
    groups: int = 0
    early: int = 0
    equal: int = 0


def certify_splits(
    splits: Sequence[Split], keys: Array, terms: SplitDeclaration, most_witnesses: int = 100
) -> Certificate:
    """Prove that splits of rows with hashes `keys` (n,) are what is declared of them."""
    n, faults = len(keys), SplitFaults()
    pairs: list[tuple[float, ...]] = []
    tested = np.zeros(n, dtype=np.int64)
    for number, (train, test) in enumerate(splits):
        good = [side[(side >= 0) & (side < n)] for side in (train, test)]
        faults.outside += len(train) + len(test) - len(good[0]) - len(good[1])
        fitted = np.zeros(n, dtype=bool)
        fitted[good[0]] = True
        np.add.at(tested, good[1], 1)
        held_out = np.zeros(n, dtype=bool)
        held_out[good[1]] = True
        faults.empty += not fitted.any() or not held_out.any()
        faults.both += int(np.count_nonzero(fitted & held_out))
        faults.unused += int(np.count_nonzero(~(fitted | held_out)))
        _count_relations(faults, fitted, held_out, terms)
        equal = _equal_pairs(keys, fitted, held_out)
        faults.equal += len(equal)
        pairs += [(float(number), float(i), float(j)) for i, j in equal[: max(0, most_witnesses - len(pairs))]]
    checks = _checks(faults, tested, len(splits), terms)
    facts = _facts(splits, keys, faults, terms)
    return Certificate("exact", _claim(terms), checks=checks, facts=facts, witness=tuple(pairs))


def certify_partition(folds: Array, keys: Array, terms: SplitDeclaration) -> Certificate:
    """Prove the same of folds (draws, n), the number of each row's, that are tested in turn by what all others fit.

    Every row then is tested once a draw and fitted in all other splits of it: what is left to look at are groups and
    equal rows in several folds. Nothing is counted fold by fold, so that a fold may be a single row.
    """
    n_draws, n = folds.shape
    n_folds = int(folds.max()) + 1
    faults = SplitFaults()
    # Rows that equal no other row cannot be on both sides.
    ordered = np.sort(keys)
    twins = np.flatnonzero(np.isin(keys, np.unique(ordered[1:][ordered[1:] == ordered[:-1]])))
    kinds = np.unique(keys[twins], return_inverse=True)[1]
    members = None if terms.groups is None else np.unique(terms.groups, return_inverse=True)[1]
    for draw in folds:
        sizes = np.bincount(draw, minlength=n_folds)
        faults.empty += int(np.count_nonzero(sizes == 0)) + (n_folds < 2)
        if len(twins):
            faults.equal += int(np.count_nonzero(_in_several_folds(kinds, draw[twins])[kinds]))
        if members is not None:
            faults.groups += int(np.count_nonzero(_in_several_folds(members, draw)))
    declared = replace(terms, tested=n_draws, whole=True, times=None)
    checks = _checks(faults, np.full(n, n_draws), n_draws * n_folds, declared)
    facts: dict[str, float | str] = {"splits": n_draws * n_folds, "rows": n}
    if terms.duplicates:
        facts["tested rows equal to a fitted row"] = faults.equal
    facts["fingerprint"] = _hash_of_all(keys, [draw.astype(np.min_scalar_type(n_folds)) for draw in folds])
    return Certificate("exact", _claim(declared), checks=checks, facts=facts)


def _in_several_folds(kinds: Array, folds: Array) -> Array:
    """Return, for kinds of rows numbered 0, 1, … (n,), whether each has rows in several folds."""
    m = int(kinds.max()) + 1
    first, last = np.full(m, np.iinfo(np.int64).max), np.full(m, -1)
    np.minimum.at(first, kinds, folds)
    np.maximum.at(last, kinds, folds)
    return first < last


def _count_relations(faults: SplitFaults, fitted: Array, held_out: Array, terms: SplitDeclaration) -> None:
    """Count groups on both sides, and tested rows that are not later than every fitted one."""
    if terms.groups is not None:
        faults.groups += len(np.intersect1d(terms.groups[fitted], terms.groups[held_out]))
    if terms.times is not None and fitted.any():
        faults.early += int(np.count_nonzero(terms.times[held_out] <= terms.times[fitted].max()))


def _equal_pairs(keys: Array, fitted: Array, held_out: Array) -> Array:
    """Return (tested row, a fitted row equal to it) for each such tested row (m, 2)."""
    rows = np.flatnonzero(fitted)
    order = rows[np.argsort(keys[rows], kind="stable")]
    tested = np.flatnonzero(held_out & ~fitted)
    if not len(order) or not len(tested):
        return np.empty((0, 2), dtype=np.intp)
    place = np.minimum(np.searchsorted(keys[order], keys[tested]), len(order) - 1)
    same = keys[order[place]] == keys[tested]
    return np.column_stack([tested[same], order[place[same]]])


def _checks(faults: SplitFaults, tested: Array, n_splits: int, terms: SplitDeclaration) -> tuple[Check, ...]:
    found = [
        ("row numbers outside the table", faults.outside),
        ("rows both fitted and tested", faults.both),
        ("splits with an empty side", faults.empty + (n_splits == 0)),
    ]
    if terms.tested is not None:
        found.append((f"rows not tested {terms.tested} times", int(np.count_nonzero(tested != terms.tested))))
    if terms.whole:
        found.append(("rows on neither side of a split", faults.unused))
    if terms.groups is not None:
        found.append(("groups on both sides of a split", faults.groups))
    if terms.times is not None:
        found.append(("tested rows not later than all fitted", faults.early))
    if not terms.duplicates:
        found.append(("tested rows equal to a fitted row", faults.equal))
    return tuple(Check(name, float(count), 0.0) for name, count in found)


def _claim(terms: SplitDeclaration) -> str:
    words = ["no row is fitted and tested in the same split"]
    if terms.tested is not None:
        words.append(f"every row is tested {'once' if terms.tested == 1 else f'{terms.tested} times'}")
    if terms.groups is not None:
        words.append("no group is on both sides")
    if terms.times is not None:
        words.append("tested rows are later than fitted ones")
    if not terms.duplicates:
        words.append("no tested row equals a fitted one")
    return "; ".join(words)


def _facts(
    splits: Sequence[Split], keys: Array, faults: SplitFaults, terms: SplitDeclaration
) -> dict[str, float | str]:
    facts: dict[str, float | str] = {"splits": len(splits), "rows": len(keys)}
    for name, sizes in (("fitted", [len(a) for a, _ in splits]), ("tested", [len(b) for _, b in splits])):
        low, high = min(sizes, default=0), max(sizes, default=0)
        facts[f"rows {name}"] = f"{low}" if low == high else f"{low} to {high}"
    if terms.duplicates:
        facts["tested rows equal to a fitted row"] = faults.equal
    facts["fingerprint"] = fingerprint(splits, keys)
    return facts


def fingerprint(splits: Sequence[Split], keys: Array) -> str:
    """Return a short hash of all rows and all splits: two runs with the same one used the same data alike."""
    return _hash_of_all(keys, [np.asarray(side, dtype=np.int64) for split in splits for side in split])


def _hash_of_all(keys: Array, sides: Sequence[Array]) -> str:
    digest = blake2b(np.ascontiguousarray(keys).data, digest_size=8)
    for side in sides:
        digest.update(np.ascontiguousarray(side).data)
        digest.update(b"|")
    return digest.hexdigest()


# Hashes of rows ---------------------------------------------------------------------------------------------------


def row_keys(X: Any) -> Array:
    """Return a hash of every row (n,) of an array, a sparse matrix, a data frame or `Rows`.

    >>> keys = row_keys(np.array([[1.0, 0.0], [2.0, np.nan], [1.0, -0.0], [2.0, np.nan]]))
    >>> keys[0] == keys[2], keys[1] == keys[3], keys[0] == keys[1]
    (np.True_, np.True_, np.False_)
    """
    if isinstance(X, Rows):
        return X.map(_block_keys)
    if sparse.issparse(X):
        return _sparse_keys(sparse.csr_array(X))
    table = np.asarray(X)
    table = table.reshape(len(table), -1)
    if table.dtype.kind in "biuf":
        return _number_keys(np.asarray(table, dtype=np.float64))
    return np.array([_digest(repr(row).encode()) for row in table.tolist()], dtype=np.uint64)


def _block_keys(block: Block) -> Array:
    return _sparse_keys(block.X) if sparse.issparse(block.X) else _number_keys(np.asarray(block.X, dtype=np.float64))


def _number_keys(X: Array, numbers_at_once: int = 65_536) -> Array:
    """Return hashes of rows of numbers (n, d): -0 is 0, and one NaN is any other; a stretch of rows at a time.

    Each number is multiplied and folded, so that all of its bits reach the lowest, and a row is the sum of its
    numbers times odd numbers of their columns (Carter & Wegman, Universal classes of hash functions, 1979).
    """
    n, d = X.shape
    keys, step = np.empty(n, dtype=np.uint64), max(1, numbers_at_once // max(d, 1))
    factors = _mix_bits(np.arange(1, d + 1, dtype=np.uint64)) | np.uint64(1)
    numbers, upper = np.empty((min(step, n), d)), np.empty((min(step, n), d), dtype=np.uint64)
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, n, step):
            part = np.add(X[start : start + step], 0.0, out=numbers[: min(step, n - start)])
            if np.isnan(part.sum()):
                part[np.isnan(part)] = np.nan
            bits, half = part.view(np.uint64), upper[: len(part)]
            bits *= np.uint64(0x9E3779B97F4A7C15)
            bits ^= np.right_shift(bits, np.uint64(32), out=half)
            np.einsum("ij,j->i", bits, factors, out=keys[start : start + step])
    return _mix_bits(keys + np.uint64(d))


def _sparse_keys(X: Any) -> Array:
    X = X.copy()
    X.sum_duplicates()
    X.eliminate_zeros()
    ends = [slice(a, b) for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)]
    data = X.data.astype(np.float64)
    return np.array(
        [_digest(X.indices[at].astype(np.int64).tobytes() + data[at].tobytes()) for at in ends], dtype=np.uint64
    )


def _digest(text: bytes) -> int:
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "little")


def _mix_bits(x: Array) -> Array:
    """Mix whole numbers of 64 bits well, in place (the finaliser of MurmurHash3)."""
    x ^= x >> np.uint64(33)
    x *= np.uint64(0xFF51AFD7ED558CCD)
    x ^= x >> np.uint64(33)
    x *= np.uint64(0xC4CEB9FE1A85EC53)
    x ^= x >> np.uint64(33)
    return x
