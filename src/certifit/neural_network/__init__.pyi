# Written by tools/stubs.py from certifit/registry.py.
from certifit.neural_network.convolutional import ConvNetClassifier as ConvNetClassifier
from certifit.neural_network.perceptron_models import MLPClassifier as MLPClassifier
from certifit.neural_network.perceptron_models import MLPRegressor as MLPRegressor
