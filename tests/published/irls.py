"""Fisher scoring as R's glm does it, in plain NumPy: R's starts, and R's rule for stopping.

R stops when the deviance changes by less than 1e-8 of itself. That leaves errors of about 1e-5 in the coefficients
where the link is not canonical, and R takes standard errors and dispersion from the weights of the step before;
publications print more digits than that. `epsilon=0` goes on until nothing changes.
"""

from types import SimpleNamespace

import numpy as np
from scipy.special import expit, logit, xlogy

LINKS = {  # score of a mean, mean of a score, its derivative
    "identity": (lambda mu: mu, lambda eta: eta, np.ones_like),
    "log": (np.log, np.exp, np.exp),
    "logit": (logit, expit, lambda eta: expit(eta) * expit(-eta)),
    "inverse": (lambda mu: 1 / mu, lambda eta: 1 / eta, lambda eta: -1 / eta**2),
    "inverse_squared": (lambda mu: mu**-2.0, lambda eta: eta**-0.5, lambda eta: -0.5 * eta**-1.5),
}


def tweedie_deviance(y, mu, p=1.5):
    return 2 * (y ** (2 - p) / ((1 - p) * (2 - p)) - y * mu ** (1 - p) / (1 - p) + mu ** (2 - p) / (2 - p))


FAMILIES = {  # variance, unit deviance, means to start from, is the dispersion estimated?
    "binomial": (
        lambda mu: mu * (1 - mu),
        lambda y, mu: 2 * (xlogy(y, y / mu) + xlogy(1 - y, (1 - y) / (1 - mu))),
        lambda y, w: (w * y + 0.5) / (w + 1),
        False,
    ),
    "poisson": (lambda mu: mu, lambda y, mu: 2 * (xlogy(y, y / mu) - (y - mu)), lambda y, _: y + 0.1, False),
    "gamma": (lambda mu: mu**2, lambda y, mu: 2 * ((y - mu) / mu - np.log(y / mu)), lambda y, _: y, True),
    "inverse_gaussian": (lambda mu: mu**3, lambda y, mu: (y - mu) ** 2 / (y * mu**2), lambda y, _: y, True),
    "tweedie": (lambda mu: mu**1.5, tweedie_deviance, lambda y, _: y + 0.1 * (y == 0), True),  # power 1.5
}


def glm(family, link, Z, y, w=1.0, offset=0.0, *, epsilon=1e-8):
    """Estimates (d,), standard errors (d,), dispersion and deviance; a column of ones in Z is the intercept."""
    variance, unit_deviance, start, free = FAMILIES[family]
    score, mean, slope = LINKS[link]
    w = np.broadcast_to(w, y.shape)
    mu, before = start(y, w), np.inf
    eta = score(mu)
    for _ in range(25 if epsilon else 200):
        weight = w * slope(eta) ** 2 / variance(mu)
        q, r = np.linalg.qr(Z * np.sqrt(weight)[:, None])
        theta = np.linalg.solve(r, q.T @ (np.sqrt(weight) * (eta - offset + (y - mu) / slope(eta))))
        eta = Z @ theta + offset
        mu = mean(eta)
        deviance = float((w * unit_deviance(y, mu)).sum())
        if abs(deviance - before) < epsilon * (abs(deviance) + 0.1):
            break
        before = deviance
    pearson = float((weight * ((y - mu) / slope(eta)) ** 2).sum())
    dispersion = pearson / (w.sum() - len(theta)) if free else 1.0
    errors = np.sqrt(dispersion * np.diag(np.linalg.inv(r.T @ r)))
    return SimpleNamespace(estimates=theta, standard_errors=errors, dispersion=dispersion, deviance=deviance)
