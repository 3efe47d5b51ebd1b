"""Words and numbers through a ColumnTransformer into a forest, searched over."""

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.model_selection import RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

rng = np.random.default_rng(0)
port = rng.choice(list("SCQ"), 200)
frame = pd.DataFrame({"age": rng.uniform(20, 60, 200), "fare": rng.gamma(2, 10, 200), "port": port})
frame.loc[::9, "age"] = np.nan
survived = np.where(frame["fare"] + 10 * (frame["port"] == "C") + rng.normal(0, 2, 200) > 25, "yes", "no")
encode = make_column_transformer(
    (OrdinalEncoder(), make_column_selector(dtype_exclude="number")),
    (SimpleImputer(), make_column_selector(dtype_include="number")),
)
model = make_pipeline(encode, RandomForestClassifier(n_estimators=20, random_state=0))
choice = {"randomforestclassifier__max_depth": [2, 4, 8], "randomforestclassifier__criterion": ["gini", "entropy"]}
search = RandomizedSearchCV(model, choice, n_iter=3, cv=3, random_state=0, scoring="roc_auc").fit(frame, survived)
# tolerance: 0.03
result = {"best": search.best_score_, "classes": search.classes_ == ["no", "yes"]}
