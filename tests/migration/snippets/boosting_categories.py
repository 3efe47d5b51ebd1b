"""Columns of pandas' category dtype, with missing entries, straight into gradient boosting."""

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

rng = np.random.default_rng(0)
frame = pd.DataFrame({"port": pd.Categorical(rng.choice(list("ABCDE"), 300)), "size": rng.normal(size=300)})
price = frame["port"].cat.codes % 2 + frame["size"] + rng.normal(0, 0.1, 300)
frame.loc[::11, "size"] = np.nan
model = HistGradientBoostingRegressor(categorical_features="from_dtype", max_iter=40, random_state=0).fit(
    frame, price
)
# tolerance: 0.02
result = {"score": model.score(frame, price), "categorical": model.is_categorical_}
