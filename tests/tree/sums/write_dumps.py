"""Writes the small models of other libraries that the tests read: `python -m tests.tree.sums.write_dumps`.

It needs LightGBM, XGBoost and interpret; the tests need none of them. Versions are written down with the models.
"""

import json
from pathlib import Path

import numpy as np

DUMPS = Path(__file__).with_name("dumps.json")


def table():
    """90 rows of three columns, a tenth of one of them missing, with two classes and amounts."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(90, 3)).round(2)
    amount = (X[:, 0] + X[:, 1] ** 2 / 2 + 0.5 * rng.normal(size=90)).round(2)
    X[::10, 2] = np.nan
    return X, (amount > 0.5).astype(int), amount


def weights():
    """Weights of the table's rows, a third of them 0."""
    return np.arange(90) % 3.0


def main():
    import interpret
    import lightgbm
    import xgboost
    from interpret.glassbox import ExplainableBoostingClassifier

    X, label, amount = table()
    few = {"min_child_samples": 5, "verbose": -1, "n_jobs": 1, "learning_rate": 0.3}
    found = {
        "versions": {
            "lightgbm": lightgbm.__version__,
            "xgboost": xgboost.__version__,
            "interpret": interpret.__version__,
        }
    }
    cases = {
        "classes": (lightgbm.LGBMClassifier(n_estimators=6, max_depth=2, **few), label),
        "stumps": (lightgbm.LGBMClassifier(n_estimators=8, max_depth=1, **few), label),
        "rising": (
            lightgbm.LGBMRegressor(n_estimators=6, max_depth=3, monotone_constraints=[1, 0, 0], **few),
            amount,
        ),
        "amounts": (lightgbm.LGBMRegressor(n_estimators=6, max_depth=3, **few), amount),
        "weights": (lightgbm.LGBMClassifier(n_estimators=6, max_depth=2, scale_pos_weight=3.0, **few), label),
    }
    for name, (model, y) in cases.items():
        booster = model.fit(X, y, sample_weight=weights() if name == "weights" else None).booster_
        text = [line for line in booster.model_to_string().splitlines() if line.startswith("[")]
        found[f"lightgbm {name}"] = {
            "dump": booster.dump_model(), "parameters": "\n".join(text),
            "scores": booster.predict(X, raw_score=True).tolist(),
        }  # fmt: skip
    few = {"n_jobs": 1, "tree_method": "exact"}
    cases = {
        "classes": (xgboost.XGBClassifier(max_depth=2, n_estimators=6, **few), label),
        "stumps": (xgboost.XGBClassifier(max_depth=1, n_estimators=8, **few), label),
        "rising": (xgboost.XGBRegressor(max_depth=3, n_estimators=6, monotone_constraints=(1, 0, 0), **few), amount),
        "amounts": (xgboost.XGBRegressor(max_depth=3, n_estimators=6, **few), amount),
    }
    for name, (model, y) in cases.items():
        booster = model.fit(X, y).get_booster()
        found[f"xgboost {name}"] = {
            "raw": json.loads(bytes(booster.save_raw("json"))), "config": json.loads(booster.save_config()),
            "scores": booster.inplace_predict(X, predict_type="margin").astype(float).tolist(),
        }  # fmt: skip
    model = ExplainableBoostingClassifier(interactions=0, max_bins=12, random_state=0, n_jobs=1).fit(X, label)
    found["interpret classes"] = {
        "term_scores_": [scores.tolist() for scores in model.term_scores_],
        "bin_weights_": [weights.tolist() for weights in model.bin_weights_],
        "bins_": [levels[0].tolist() for levels in model.bins_],
        "intercept_": model.intercept_.tolist(), "scores": model.decision_function(X).tolist(),
    }  # fmt: skip
    DUMPS.write_text(json.dumps(found, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
