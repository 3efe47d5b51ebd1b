"""Write docs/start/differences.md: where certifit's classes differ from scikit-learn's of the same name, and why.

python tools/differences.py            # writes the page
python tools/differences.py --check    # fails where the page is not what it would write
"""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path

from certifit.migration.counterparts import Counterpart
from certifit.migration.differences import Difference, all_differences

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "start" / "differences.md"
HEAD = """# Differences from scikit-learn

`python tools/differences.py` writes this page. Change `from sklearn.cluster import KMeans` to
`from certifit.cluster import KMeans`: parameters, fitted attributes and methods have scikit-learn's names and
meanings, but for what is listed here. `certifit check script.py` says which of it a script meets, without running it.

- *ignored*: the parameter only steers scikit-learn's solver. It is accepted, kept and not used.
- *not there*: a call that names it is refused, with the sentence given here.
- Errors are `ValueError`s as in scikit-learn; their words say what was got, what was wanted and what to do.
- Every class has more than its namesake: `certificate_`, `objective`, `max_time`, tables that do not fit in memory.

`tests/migration/test_differences.py` compares the classes name by name and fails for a difference without a reason.
"""
TAIL = """
## scikit-learn's own tests

scikit-learn's tests of these classes can be run with certifit's in their place (those that use its private functions
left out). What such a test asks and does not get is of these kinds:

- An error or warning for a combination of solver and penalty, of solver and sparse rows, or of solver and sizes:
  there is nothing to refuse: the solver's name is ignored, and the problem is solved.
- A `ConvergenceWarning` in a solver's own words, or `n_iter_` equal to `max_iter`: `CertificateWarning`, which is
  one, states the gap that is proved; iterations are those of another algorithm.
- An error for what is done here: sparse rows for a kernel machine fitted on dense ones, sparse precomputed kernels,
  sparse rows with indices of 64 bits or with `positive=True`, sparse or small batches of IncrementalPCA and another
  `n_components` for its next one, starting weights of a mixture that are not normalised.
- Rows that were changed in place by `copy_X=False`: they never are.
- More digits of a coefficient than the `tol` that is asked for proves.
- A kernel function of rows that are not numbers, or that gives a wrong shape: `fit` refuses it.
- A FutureWarning that something is deprecated there, such as `probability` of SVC: it is a part of the class here.
- Centres or components of dtype float32 for rows of float32: they are float64, because an audit holds them to the
  digits that means and directions of such rows have; transformed rows and probabilities have the dtype of the rows.
  Coefficients of a logistic regression are float32 then, also with solver='liblinear'.
- A higher likelihood of PCA without `whiten=True` than with it: both are the same model here.
- Elastic net logistic regression judged by another objective than its own (the mean loss for the sum).
- An estimate without a penalty for classes that can be separated: `NoSolutionError` with the direction that shows
  that no maximum exists.
- A log-likelihood of rows with no variance in some direction: an error: there is no density.
- The words of an error: got, wanted and what to do, often with scikit-learn's words beside them.
- The numbers that a seed leads to, printed progress, the number of callbacks' tasks: those of another algorithm.
- A fitted model after a later fit that failed, or attributes that are set by hand: a fit that fails leaves nothing;
  attributes that follow from others are read-only.
- Metadata that is routed to a scorer or a splitter, and warnings for settings of k-means that are ignored.
- The sign of a vote between two machines whose values are equal but for rounding (`break_ties`).
- Weights of classes or rows that are zero or negative: zero weights leave rows out; classes of weight zero are
  refused, and negative weights too, but by kernel machines, which leave their rows out with a warning.
"""


def section(pair: Counterpart, found: tuple[Difference, ...]) -> str:
    """One class: its ignored parameters in a line, all else in a table."""
    lines = [f"### {pair.name}", ""]
    ignored = [f"`{one.name}`" for one in found if one.ignored]
    if ignored:
        lines += [f"Ignored: {', '.join(ignored)}.", ""]
    rest = [one for one in found if not one.ignored]
    behaviour = {name: reason for name, reason in pair.reasons.items() if name not in {one.name for one in found}}
    if rest or behaviour:
        lines += ["| name | scikit-learn | here | why |", "| --- | --- | --- | --- |"]
        lines += [
            f"| `{one.name}` | {_cell(one, one.theirs)} | {_cell(one, one.ours)} | {one.reason} |" for one in rest
        ]
        lines += [f"| `{name}` | | | {reason} |" for name, reason in behaviour.items()]
        lines += [""]
    return "\n".join(lines)


def _cell(one: Difference, value: str) -> str:
    """A default as code; else what stands there, or what kind of name it is."""
    if one.kind == "default":
        return f"`{value}`"
    return value if value in ("not there", "by name") or value.startswith("at place") else one.kind


def page() -> str:
    parts = [HEAD]
    for room, pairs in groupby(all_differences(), key=lambda entry: entry[0].room):
        listed = [*pairs]
        same = [f"`{pair.name}`" for pair, found in listed if not found and not pair.reasons]
        parts.append(f"## {room}\n")
        if same:
            parts.append(f"No difference: {', '.join(same)}.\n")
        parts += [section(pair, found) for pair, found in listed if found or pair.reasons]
    return "\n".join(parts).rstrip() + "\n" + TAIL


if __name__ == "__main__":
    text = page()
    if "--check" in sys.argv and (not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text):
        sys.exit("docs/start/differences.md is not current: run python tools/differences.py")
    if "--check" not in sys.argv:
        PAGE.write_text(text, encoding="utf-8")
