"""The classes that a model file may name: nothing else is ever built from one.

A record is stored under a name of its own, which stays when the class is renamed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from scipy import sparse

from certifit import families
from certifit.core import Certificate, Check, Mark, Objective
from certifit.ensemble.adaboost.stumps import Stumps
from certifit.ensemble.additive.pair_terms import PairTerm
from certifit.ensemble.additive.shape_functions import ShapeFunction
from certifit.ensemble.boosting.boosted_trees import BoostedTrees
from certifit.ensemble.forest.forest_trees import ForestTrees
from certifit.neural_network.training.optimisers import OptimiserState
from certifit.registry import PUBLIC
from certifit.svm.kernel import kernels
from certifit.table.columns import Column
from certifit.table.portfolio.ledger import Attempt, SearchLedger
from certifit.tree.fitted_tree import Tree


@dataclass(frozen=True)
class StoredClasses:
    """Classes by the name under which files know them."""

    records: dict[str, Any]  # dataclasses and named tuples, families and kernels among them
    families: dict[str, Any]  # which may also stand for themselves, as a setting
    sparse: dict[str, Any]  # CSR matrices
    renamed_fields: dict[str, dict[str, str]]  # of records in older files

    def name_of(self, cls: Any) -> str | None:
        """The name under which a class is stored."""
        return next((name for name, known in self.records.items() if known is cls), None)


@cache
def stored_classes() -> StoredClasses:
    """All classes that a file may name, but for estimators."""
    distributions = {
        f"families.{name}": cls
        for name, cls in vars(families).items()
        if isinstance(cls, type) and issubclass(cls, families.Family) and cls is not families.Family
    }
    return StoredClasses(
        records={
            **{cls.__name__: cls for cls in (Certificate, Check, Column, Mark, Objective, Stumps, Tree)},
            **{cls.__name__: cls for cls in (BoostedTrees, Certificate, Check, Column, Mark, Objective, Tree)},
            **{cls.__name__: cls for cls in (Certificate, Check, Column, Mark, Objective, ForestTrees, Tree)},
            **{
                cls.__name__: cls
                for cls in (Certificate, Check, Column, Mark, Objective, PairTerm, ShapeFunction, Stumps, Tree)
            },
            "OptimiserState": OptimiserState,
            "Attempt": Attempt,
            "SearchLedger": SearchLedger,
            "kernels.Constant": kernels.ConstantKernel,
            "kernels.Exponential": kernels.ExponentialKernel,
            "kernels.Linear": kernels.Linear,
            "kernels.Polynomial": kernels.Polynomial,
            "kernels.Product": kernels.KernelProduct,
            "kernels.RBF": kernels.RBF,
            "kernels.Sigmoid": kernels.Sigmoid,
            "kernels.Sum": kernels.KernelSum,
            **distributions,
        },
        families=distributions,
        sparse={cls.__name__: cls for cls in (sparse.csr_array, sparse.csr_matrix)},
        renamed_fields={"Column": {"holes": "missing", "marks_holes": "marks_missing"}},
    )


def stored_estimator(name: str) -> Any:
    """The only classes a file may name: certifit's public estimators. Anything else gives None."""
    entry = PUBLIC.get(name)
    return entry.load() if entry is not None and entry.is_estimator else None


def stored_function(name: str) -> Any:
    """A public function of certifit, such as the score function of a selector. Anything else gives None."""
    entry = PUBLIC.get(name)
    found = entry.load() if entry is not None and not entry.is_estimator else None
    return found if callable(found) and not isinstance(found, type) else None
