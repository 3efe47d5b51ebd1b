"""Published numbers: the table, where the numbers were printed, and our fit.

The tables are public: R's `datasets` package carries them (USArrests, mtcars, iris); the flights are NASA's.
"""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from certifit import PCA, LogisticRegression, NoSolutionError, audit


def table(text, columns):
    return np.array(text.split(), dtype=float).reshape(-1, columns)


# McNeil (1977), Interactive Data Analysis: murder, assault, urban population, rape; Alabama … Wyoming
ARRESTS = """
13.2 236 58 21.2  10.0 263 48 44.5   8.1 294 80 31.0   8.8 190 50 19.5   9.0 276 91 40.6   7.9 204 78 38.7
 3.3 110 77 11.1   5.9 238 72 15.8  15.4 335 80 31.9  17.4 211 60 25.8   5.3  46 83 20.2   2.6 120 54 14.2
10.4 249 83 24.0   7.2 113 65 21.0   2.2  56 57 11.3   6.0 115 66 18.0   9.7 109 52 16.3  15.4 249 66 22.2
 2.1  83 51  7.8  11.3 300 67 27.8   4.4 149 85 16.3  12.1 255 74 35.1   2.7  72 66 14.9  16.1 259 44 17.1
 9.0 178 70 28.2   6.0 109 53 16.4   4.3 102 62 16.5  12.2 252 81 46.0   2.1  57 56  9.5   7.4 159 89 18.8
11.4 285 70 32.1  11.1 254 86 26.1  13.0 337 45 16.1   0.8  45 44  7.3   7.3 120 75 21.4   6.6 151 68 20.0
 4.9 159 67 29.3   6.3 106 72 14.9   3.4 174 87  8.3  14.4 279 48 22.5   3.8  86 45 12.8  13.2 188 59 26.9
12.7 201 80 25.5   3.2 120 80 22.9   2.2  48 32 11.2   8.5 156 63 20.7   4.0 145 73 26.2   5.7  81 39  9.3
 2.6  53 66 10.8   6.8 161 60 15.6
"""
ARRESTS = table(ARRESTS, 4)

# Motor Trend (1974): displacement, horsepower, weight, straight engine (vs), manual gearbox (am)
CARS = """
160.0 110 2.620 0 1  160.0 110 2.875 0 1  108.0  93 2.320 1 1  258.0 110 3.215 1 0  360.0 175 3.440 0 0
225.0 105 3.460 1 0  360.0 245 3.570 0 0  146.7  62 3.190 1 0  140.8  95 3.150 1 0  167.6 123 3.440 1 0
167.6 123 3.440 1 0  275.8 180 4.070 0 0  275.8 180 3.730 0 0  275.8 180 3.780 0 0  472.0 205 5.250 0 0
460.0 215 5.424 0 0  440.0 230 5.345 0 0   78.7  66 2.200 1 1   75.7  52 1.615 1 1   71.1  65 1.835 1 1
120.1  97 2.465 1 0  318.0 150 3.520 0 0  304.0 150 3.435 0 0  350.0 245 3.840 0 0  400.0 175 3.845 0 0
 79.0  66 1.935 1 1  120.3  91 2.140 0 1   95.1 113 1.513 1 1  351.0 264 3.170 0 1  145.0 175 2.770 0 1
301.0 335 3.570 0 1  121.0 109 2.780 1 1
"""
DISP, HP, WT, VS, AM = table(CARS, 5).T

# Dalal, Fowlkes & Hoadley (1989), JASA 84: temperature (°F) of 23 flights, damaged O-rings of 6
FLIGHTS = """
53 5  57 1  58 1  63 1  66 0  67 0  67 0  67 0  68 0  69 0  70 1  70 0
70 1  70 0  72 0  73 0  75 0  75 1  76 0  76 0  78 0  79 0  81 0
"""
FLIGHTS = table(FLIGHTS, 2)


def deviance(model):
    return 2 * model.certificate_.objective


def maximum_likelihood(X, y, w=None):
    model = LogisticRegression(penalty=None, tol=1e-12).fit(X, y, w)
    assert model.certificate_.holds
    assert audit(model, X, y, w).holds
    return np.append(model.intercept_, model.coef_), deviance(model)


def test_arrests():
    """James, Witten, Hastie & Tibshirani (2013), An Introduction to Statistical Learning, section 10.4."""
    Z = (ARRESTS - ARRESTS.mean(axis=0)) / ARRESTS.std(axis=0, ddof=1)
    model = PCA().fit(Z)
    np.testing.assert_allclose(
        np.sqrt(model.explained_variance_), [1.5748783, 0.9948694, 0.5971291, 0.4164494], atol=5e-8
    )
    np.testing.assert_allclose(
        model.explained_variance_ratio_, [0.62006039, 0.24744129, 0.08914080, 0.04335752], atol=5e-9
    )
    printed = [
        [-0.5358995, -0.5831836, -0.2781909, -0.5434321],
        [0.4181809, 0.1879856, -0.8728062, -0.1673186],
        [-0.3412327, -0.2681484, -0.3780158, 0.8177779],
        [0.64922780, -0.74340748, 0.13387773, 0.08902432],
    ]
    for axis, theirs in zip(model.components_, np.array(printed), strict=True):
        np.testing.assert_allclose(axis * np.sign(axis @ theirs), theirs, atol=5e-8)


def test_arrests_in_their_own_units():
    """Eigenvalues of the covariance, as R prints prcomp(USArrests)$sdev^2."""
    np.testing.assert_allclose(
        PCA().fit(ARRESTS).explained_variance_, [7011.114851, 201.992366, 42.112651, 6.164246], atol=5e-7
    )


def test_iris():
    """R's prcomp(iris[1:4])$sdev and prcomp(iris[1:4], scale. = TRUE)$sdev."""
    X = load_iris().data
    np.testing.assert_allclose(
        np.sqrt(PCA().fit(X).explained_variance_), [2.0562689, 0.4926162, 0.2796596, 0.1543862], atol=5e-8
    )
    Z = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    np.testing.assert_allclose(
        np.sqrt(PCA().fit(Z).explained_variance_), [1.7083611, 0.9560494, 0.3830886, 0.1439265], atol=5e-8
    )


def test_challenger_any_damage():
    """R's glm(damage > 0 ~ temperature, binomial), in many textbooks: 15.0429, -0.2322, deviance 20.315."""
    theta, lost = maximum_likelihood(FLIGHTS[:, :1], FLIGHTS[:, 1] > 0)
    np.testing.assert_allclose(theta, [15.0429, -0.2322], atol=5e-5)
    np.testing.assert_allclose(lost, 20.315, atol=5e-4)


def test_challenger_rings():
    """Faraway (2006), Extending the Linear Model with R, section 2.1: 6 rings a flight, as weights."""
    temperature, damaged = FLIGHTS.T
    X, y = np.tile(temperature, 2)[:, None], np.repeat([1, 0], 23)
    theta, _ = maximum_likelihood(X, y, np.concatenate([damaged, 6 - damaged]))
    np.testing.assert_allclose(theta, [11.6630, -0.2162], atol=5e-5)


@pytest.mark.parametrize(
    ("y", "columns", "printed", "digits", "residual"),
    [
        (VS, (WT, DISP), [1.60859, 1.62635, -0.03443], 5, 21.40),
        (AM, (DISP, HP), [1.40342, -0.09518, 0.12170], 5, 16.713),
        (AM, (WT,), [12.040, -4.024], 3, 19.176),
    ],
    ids=["vs ~ wt + disp", "am ~ disp + hp", "am ~ wt"],
)
def test_cars(y, columns, printed, digits, residual):
    """Coefficients and residual deviance that R's summary(glm(…, binomial, mtcars)) prints."""
    theta, lost = maximum_likelihood(np.column_stack(columns), y)
    np.testing.assert_allclose(theta, printed, atol=0.6 * 10.0**-digits)
    np.testing.assert_allclose(lost, residual, atol=6e-3)


def test_iris_two_species():
    """R's glm(Species ~ ., binomial) on versicolor and virginica; deviance 11.899."""
    X, y = load_iris(return_X_y=True)
    theta, lost = maximum_likelihood(X[50:], y[50:])
    np.testing.assert_allclose(theta, [-42.638, -2.465, -6.681, 9.429, 18.286], atol=6e-4)
    np.testing.assert_allclose(lost, 11.899, atol=6e-4)


def test_iris_setosa_is_separable():
    """Known since Fisher (1936): one species is linearly separated from the others, so no fit to all three exists."""
    X, y = load_iris(return_X_y=True)
    with pytest.raises(NoSolutionError):
        LogisticRegression(penalty=None).fit(X, y == 0)
    with pytest.raises(NoSolutionError):
        LogisticRegression(penalty=None).fit(X, y)
