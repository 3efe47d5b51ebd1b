"""Words and numbers with missing entries, through a ColumnTransformer."""

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

rng = np.random.default_rng(0)
frame = pd.DataFrame(
    {"age": rng.uniform(20, 60, 200), "fare": rng.gamma(2, 10, 200), "port": rng.choice(list("SCQ"), 200)}
)
frame.loc[::9, "age"] = np.nan
survived = (frame["fare"] + 10 * (frame["port"] == "C") + rng.normal(0, 5, 200) > 25).astype(int)
numbers = Pipeline([("impute", SimpleImputer()), ("scale", StandardScaler())])
encode = ColumnTransformer([("numbers", numbers, ["age", "fare"]), ("words", OneHotEncoder(), ["port"])])
model = Pipeline([("encode", encode), ("classify", LogisticRegression())]).fit(frame, survived)
result = {"coefficients": model["classify"].coef_, "score": model.score(frame, survived)}
