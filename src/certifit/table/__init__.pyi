# Written by tools/stubs.py from certifit/registry.py.
from certifit.table.table_classifier import TableClassifier as TableClassifier
from certifit.table.table_regressor import TableRegressor as TableRegressor
from certifit.table.portfolio.fitting import fit as fit
