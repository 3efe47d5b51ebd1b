"""Settings that go together: what `preset` stands for, of every setting that is left at its default."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np

from certifit.core import Setting

PRESET = Setting(choices=("tabular",), none=True)
# After RealMLP (Holzmüller, Grinsztajn & Steinwart 2024). Its three layers of 256, rate of 0.04, 256 epochs and
# the validation rows by which it chooses one of them are for thousands of rows: small tables are learnt by heart.
PRESETS: dict[str, dict[str, Any]] = {
    "tabular": {
        "hidden_layer_sizes": (128, 128),
        "activation": "gelu",
        "solver": "adamw",
        "alpha": 0.02,
        "learning_rate": "flat_cosine",
        "learning_rate_init": 0.01,
        "beta_2": 0.95,
        "max_iter": 64,
        "n_iter_no_change": math.inf,
        "label_smoothing": 0.1,
    }
}


def setting_in_use(model: Any, name: str, default: Any = None) -> Any:
    """A setting as the fit used it: the preset's, where there is one and the setting was left at its default."""
    value = getattr(model, name, default)
    preset = PRESETS.get(getattr(model, "preset", None) or "", {})
    usual = inspect.signature(type(model).__init__).parameters.get(name) if name in preset else None
    return preset[name] if usual is not None and np.array_equal(value, usual.default) else value


def checked_setting(model: Any, name: str, allowed: Setting, default: Any = None) -> Any:
    """The same, refused where no fit could have had it."""
    value = setting_in_use(model, name, default)
    allowed.check(f"{type(model).__name__}.{name}", value)
    return value
