"""Generalised linear models against what R, Stata, GLM.jl and textbooks print, to every digit in print.

Tables of more than a few lines are in data/. Where a row stands for several, its count is the sample weight.
These prints were carried over without the publication at hand, and still want checking against it: clotting lot 2 and
the null deviances, budworm's standard errors and deviances, the beetles' probit and cloglog lines, the plant weights,
Dobson's standard errors, anorexia's p-values, the warp breaks' table and deviances, the school absences' deviances.
"""

import numpy as np
import pytest

from certifit import GeneralizedLinearRegressor
from tests.published import irls
from tests.published.printed import assert_printed, columns, indicators


def fit(family, link, X, y, weights=None, *, offset=None, exposure=None, trials=None, clusters=None, **params):
    model = GeneralizedLinearRegressor(family, link, tol=1e-12, **params)
    model.fit(X, y, weights, offset=offset, exposure=exposure, trials=trials, clusters=clusters)
    assert model.certificate_.holds
    return model


def estimates_of(model):
    """Intercept, where there is one, and coefficients."""
    return np.append(model.intercept_, model.coef_) if model.fit_intercept else model.coef_


def check(model, estimates=None, **printed):
    """`estimates` and, by their names without the `_`, other fitted attributes."""
    if estimates is not None:
        assert_printed(estimates_of(model), estimates)
    for name, text in printed.items():
        assert_printed(getattr(model, f"{name}_"), text)


def check_limit(family, link, X, y, weights=None, *, offset=None, trials=None, fit_intercept=True, **printed):
    """For digits that R's rule for stopping decides: print is where its iterations stop, our fit where they lead."""
    model = fit(family, link, X, y, weights, offset=offset, trials=trials, fit_intercept=fit_intercept)
    Z = np.column_stack([np.ones(len(X)), X]) if fit_intercept else X
    share, w = (y, 1.0 if weights is None else weights) if trials is None else (y / trials, trials)
    shift = 0.0 if offset is None else offset
    stopped = irls.glm(family, link, Z, share, w, shift)
    for name, text in printed.items():
        assert_printed(getattr(stopped, name), text)
    limit = irls.glm(family, link, Z, share, w, shift, epsilon=0.0)
    np.testing.assert_array_less(np.abs(estimates_of(model) - limit.estimates), 1e-6 * limit.standard_errors)
    np.testing.assert_allclose(model.standard_errors_, limit.standard_errors, rtol=1e-6)
    np.testing.assert_allclose([model.dispersion_, model.deviance_], [limit.dispersion, limit.deviance], rtol=1e-6)
    return model


# Hurn, Barker & Magath (1945): percentage of plasma, and clotting times in seconds for two lots of thromboplastin
PLASMA = np.log([[5], [10], [15], [20], [30], [40], [60], [80], [100]])
LOT1 = np.array([118, 58, 42, 35, 27, 25, 21, 19, 18])
LOT2 = np.array([69, 35, 26, 21, 18, 16, 13, 12, 12])

# Dobson (1990), An Introduction to Generalized Linear Models, page 93: three outcomes x three treatments
COUNTS = np.array([18, 17, 15, 20, 10, 20, 25, 13, 12])
DESIGN = np.hstack(
    [indicators(np.tile([1, 2, 3], 3), 2, 3), indicators(np.repeat([1, 2, 3], 3), 2, 3)]
)  # outcome 2, outcome 3, treatment 2, treatment 3

# Dobson (1990), page 9: dried weights of plants, control and treated
PLANTS = """
4.17 5.58 5.18 6.11 4.50 4.61 5.17 4.53 5.33 5.14
4.81 4.17 4.41 3.59 5.87 3.83 6.03 4.89 4.32 4.69
"""

# Collett (1991), in Venables & Ripley (2002), section 7.2: budworms killed of 20 at log2 doses 0 … 5, males first
KILLED = np.array([1, 4, 9, 13, 18, 20, 0, 2, 6, 10, 12, 16])
MALE, DOSE = np.repeat([1.0, 0.0], 6), np.tile(np.arange(6.0), 2)

# Bliss (1935), in Dobson (1990), table 8.2: log10 dose of carbon disulphide, beetles, beetles killed
BEETLES = """
1.6907 59  6   1.7242 60 13   1.7552 62 18   1.7842 56 28
1.8113 63 52   1.8369 59 53   1.8610 62 61   1.8839 60 60
"""

# Tippett (1950), R's warpbreaks: nine looms each for wool A and tension L, M, H, then wool B
BREAKS = """
26 30 54 25 70 52 51 26 67 18 21 29 17 12 18 35 30 36 36 21 24 18 10 43 28 15 26
27 14 29 19 29 31 41 20 44 42 26 19 16 39 28 21 39 29 20 21 24 17 13 15 15 16 28
"""


def test_clotting():
    """McCullagh & Nelder (1989), section 8.4.2; summary(glm(lot ~ log(u), family = Gamma)) in R's ?glm."""
    model = check_limit(
        "gamma", "inverse", PLASMA, LOT1, estimates="-0.0165544 0.0153431", standard_errors="0.0009275 0.0004150",
        dispersion="0.002446059", deviance="0.01673",
    )  # fmt: skip
    check(model, p_values="4.28e-07 2.75e-09", null_deviance="3.51283", deviance="0.01673", aic="37.99")
    model = check_limit(
        "gamma", "inverse", PLASMA, LOT2, estimates="-0.0239085 0.0235992", standard_errors="0.0013265 0.0005768",
        dispersion="0.001813354", deviance="0.012672",
    )  # fmt: skip
    check(model, p_values="4.00e-07 1.36e-09", null_deviance="3.118557", deviance="0.012672", aic="27.032")


@pytest.mark.parametrize(
    ("family", "link", "stopped", "printed"),
    [
        ("gamma", "inverse", {"estimates": "-0.01655438172785 0.01534311491072"},
         {"deviance": "0.016729715", "loglikelihood": "-15.994962", "aic": "37.989924", "bic": "38.581598"}),
        ("gamma", "log", {"estimates": "5.50322528458221 -0.60191617825971",
                          "standard_errors": "0.19030107482720 0.05530784660144", "dispersion": "0.0243544229356"},
         {"deviance": "0.16260829", "loglikelihood": "-26.240828", "aic": "58.481656", "bic": "59.073330"}),
        ("gamma", "identity", {"estimates": "99.250446880986 -18.374324929002", "deviance": "0.60845414895344"},
         {"deviance": "0.60845415", "loglikelihood": "-32.216072", "aic": "70.432145", "bic": "71.023819"}),
        ("inverse_gaussian", "inverse_squared", {"deviance": "0.00693112834723"},
         {"deviance": "0.0069311283", "loglikelihood": "-27.787426", "aic": "61.574852", "bic": "62.166526"}),
    ],
    ids=["gamma inverse", "gamma log", "gamma identity", "inverse Gaussian"],
)  # fmt: skip
def test_clotting_with_other_families_and_links(family, link, stopped, printed):
    """R's numbers in the tests of GLM.jl (test/runtests.jl); log-likelihoods to the digits asked there."""
    check(check_limit(family, link, PLASMA, LOT1.astype(float), **stopped), **printed)


def test_randomised_trial():
    """glm(counts ~ outcome + treatment, family = poisson()) in R's ?glm; logLik and BIC from GLM.jl's tests."""
    model = fit("poisson", "log", DESIGN, COUNTS)
    check(
        model, "3.0445 -0.4543 -0.2930 0.0000 0.0000", standard_errors="0.1709 0.2022 0.1927 0.2000 0.2000",
        null_deviance="10.5814", deviance="5.1291", aic="56.76", loglikelihood="-23.380659", bic="57.747441",
    )  # fmt: skip
    assert_printed(model.p_values_[1:3], "0.0246 0.1285")


def test_plant_weights():
    """summary(lm(weight ~ group)) in R's ?lm; AIC(lm.D9) = 46.17648."""
    y = np.array(PLANTS.split(), dtype=float)
    model = fit("gaussian", "identity", np.repeat([[0.0], [1.0]], 10, axis=0), y)
    check(model, "5.0320 -0.3710", standard_errors="0.2202 0.3114", deviance="8.7292", aic="46.17648")
    assert_printed(np.sqrt(model.dispersion_), "0.6964")
    assert_printed(model.p_values_[1], "0.249")


def test_anorexia():
    """Venables & Ripley (2002), page 189, and R's ?glm: weight after treatment, weight before as an offset."""
    t = columns("anorexia")
    X = np.column_stack([t["before"], indicators(t["treatment"], "Cont", "FT")])
    model = fit("gaussian", "identity", X, t["after"], offset=t["before"])
    check(
        model, "49.7711 -0.5655 -4.0971 4.5631", standard_errors="13.3910 0.1612 1.8935 2.1333",
        p_values="0.000410 0.000803 0.033999 0.036035", dispersion="48.69504", null_deviance="4525.4",
        deviance="3311.3", aic="489.97", loglikelihood="-239.98665", bic="501.35663",
    )  # fmt: skip


def test_budworms():
    """summary(glm(cbind(dead, alive) ~ sex * ldose, binomial)) and sex + ldose - 1 in R's ?predict.glm and MASS."""
    twenty = np.full(12, 20)
    model = fit("binomial", "logit", np.column_stack([MALE, DOSE, MALE * DOSE]), KILLED, trials=twenty)
    check(
        model, "-2.9935 0.1750 0.9060 0.3529", standard_errors="0.5527 0.7783 0.1671 0.2700",
        null_deviance="124.8756", deviance="4.9937", aic="43.104",
    )  # fmt: skip
    model = fit(
        "binomial", "logit", np.column_stack([1 - MALE, MALE, DOSE]), KILLED, trials=twenty, fit_intercept=False
    )
    check(model, "-3.4732 -2.3724 1.0642", standard_errors="0.4685 0.3855 0.1311", deviance="6.7571", aic="42.867")


def test_beetles():
    """Dobson (1990), table 8.3, with the digits in the manual of glmlab, section 5.5."""
    dose, beetles, killed = np.array(BEETLES.split(), dtype=float).reshape(-1, 3).T
    check_limit(
        "binomial", "logit", dose[:, None], killed, trials=beetles, estimates="-60.717455 34.270326",
        standard_errors="5.180701 2.912134", deviance="11.232231",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("link", "estimates", "errors", "deviance"),
    [
        ("probit", "-34.935 19.728", "2.648 1.487", "10.12"),
        ("cloglog", "-39.572 22.041", "3.240 1.799", "3.4464"),
    ],
)
def test_beetles_with_other_links(link, estimates, errors, deviance):
    """Deviances in Dobson (1990), section 8.4; the rest as R's summary(glm(…, binomial(link))) prints it."""
    dose, beetles, killed = np.array(BEETLES.split(), dtype=float).reshape(-1, 3).T
    model = fit("binomial", link, dose[:, None], killed, trials=beetles)
    check(model, estimates, standard_errors=errors, deviance=deviance)


def test_ship_damage():
    """McCullagh & Nelder (1989), section 6.3.2; R's glm(incidents ~ type + year + period + offset(log(service)))."""
    t = columns("ships")
    X = np.hstack([indicators(t["ship"], *"BCDE"), indicators(t["built"], 2, 3, 4), t["late"][:, None]])
    estimates = "-6.40590 -0.54334 -0.68740 -0.07596 0.32558 0.69714 0.81843 0.45343 0.38447"
    check_limit(
        "poisson", "log", X, t["incidents"], offset=np.log(t["service"]), estimates=estimates,
        standard_errors="0.21744 0.17759 0.32904 0.29058 0.23588 0.14964 0.16977 0.23317 0.11827", deviance="38.695",
    )  # fmt: skip
    model = fit("poisson", "log", X, t["incidents"], exposure=t["service"])
    check(model, estimates, null_deviance="146.328", deviance="38.695", aic="154.56")


@pytest.mark.parametrize(
    ("covariance", "factor", "errors"),
    [
        ("classical", 1, "0.1325243 0.0579083 0.1215176"),
        ("sandwich", 34 / 33, "0.2558675 0.0914446 0.1610353"),
        ("clustered", 31 / 33, "0.0968657 0.0381769 0.0921316"),
    ],
    ids=["vce(oim)", "vce(robust)", "vce(cluster ship)"],
)
def test_ship_damage_in_stata(covariance, factor, errors):
    """Stata's poisson accident yr_con op_75_79, exposure(service) vce(…), stored by statsmodels (discrete/tests).

    The digits Stata shows. Its robust variance carries the factor n / (n - 1), and that of G clusters G / (G - 1),
    where ours carry 1 and G / (G - 1) · (n - 1) / (n - 3).
    """
    t = columns("ships")
    X = np.column_stack([t["built"], t["late"]])
    model = fit(
        "poisson", "log", X, t["incidents"], exposure=t["service"], covariance=covariance,
        clusters=np.unique(t["ship"], return_inverse=True)[1] if covariance == "clustered" else None,
    )  # fmt: skip
    check(model, "-6.974713 0.3063382 0.3559223", loglikelihood="-91.287279")
    assert_printed(np.sqrt(factor) * model.standard_errors_, errors)
    if covariance == "classical":
        assert_printed(model.confidence_intervals()[:, 0], "-7.234456 0.1928400 0.1177522")
        assert_printed(model.confidence_intervals()[:, 1], "-6.714970 0.4198364 0.5940924")


def test_warp_breaks():
    """summary(glm(breaks ~ wool + tension, poisson, warpbreaks)), in R's ?warpbreaks and many courses."""
    X = np.column_stack([np.repeat([0, 1], 27), indicators(np.tile(np.repeat(list("LMH"), 9), 2), "M", "H")])
    model = fit("poisson", "log", X, np.array(BREAKS.split(), dtype=float))
    check(
        model, "3.69196 -0.20599 -0.32132 -0.51849", standard_errors="0.04541 0.05157 0.06027 0.06396",
        null_deviance="297.37", deviance="210.39", aic="493.06",
    )  # fmt: skip
    assert_printed(model.p_values_[1:], "6.49e-05 9.73e-08 5.21e-16")


def test_days_absent_from_school():
    """Venables & Ripley (2002), section 7.4, quine: theta = 2 (GLM.jl's tests) and as found by R's glm.nb."""
    t = columns("quine")
    X = np.hstack(
        [indicators(t["eth"], "N"), indicators(t["sex"], "M"), indicators(t["age"], "F1", "F2", "F3"),
         indicators(t["lrn"], "SL")]
    )  # fmt: skip
    check(fit("negative_binomial", "log", X, t["days"], theta=2.0), deviance="239.11106", loglikelihood="-553.2596")
    model = fit("negative_binomial", "log", X, t["days"], theta=1.274892646)
    check(
        model, "2.89458 -0.56937 0.08232 -0.44843 0.08808 0.35690 0.29211",
        standard_errors="0.22842 0.15333 0.15992 0.23975 0.23619 0.24832 0.18647",
        null_deviance="195.29", deviance="167.95",
    )  # fmt: skip
    assert_printed(2 * model.loglikelihood_, "-1093.151")


def test_admissions():
    """GLM.jl's tests: eight cells of a table with their counts as weights, 400 applicants."""
    X = np.tile(np.eye(4)[:, 1:], (2, 1))
    model = fit("binomial", "logit", X, np.repeat([0, 1], 4), [28, 97, 93, 55, 33, 54, 28, 12])
    check(
        model, "0.16430305 -0.75002998 -1.3646980 -1.6867296", deviance="474.96672", loglikelihood="-237.48336",
        aic="482.96672", bic="498.93258",
    )  # fmt: skip


def test_low_birth_weight():
    """Hosmer & Lemeshow's 189 births, from Stata's lbw.dta: R's fit, stored by statsmodels (genmod/tests/results)."""
    t = columns("low_birth_weight")
    X = np.column_stack(
        [t["age"], t["lwt"], indicators(t["race"], "black", "other"), t["smoke"], t["ptl"], t["ht"], t["ui"]]
    )
    model = check_limit(
        "binomial", "logit", X, t["low"],
        estimates="0.46122388 -.02710031 -.01515082 1.26264728 .86207916 .92334482 .54183656 1.83251780 .75851348",
        standard_errors="1.204574885 0.036449917 0.006925765 0.526405169 0.439146744 0.400820976 0.346246857 "
        "0.691623875 0.459373871",
    )  # fmt: skip
    check(
        model, null_deviance="234.671996193", deviance="201.447991133", loglikelihood="-100.723995566",
        aic="219.447991133",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("link", "printed"),
    [
        ("log", {"estimates": "4.64604002 -0.04477778 0.57437126 1.05210726",
                 "standard_errors": "0.83534671 0.0147328 0.19694727 0.19772507", "deviance": "16.174635536991",
                 "dispersion": "0.31805268736386"}),
        ("identity", {"estimates": "38.96617431 -0.5369833 6.47296332 16.20336802",
                      "standard_errors": "8.19235553 0.13341238 2.1349966 3.87411875",
                      "deviance": "15.0937623276076"}),
    ],
    ids=["log", "identity"],
)  # fmt: skip
def test_drug_trial(link, printed):
    """Survival of 48 cancer patients, Stata's cancer.dta: R's gamma fits, stored by statsmodels."""
    t = columns("drug_trial")
    X = np.column_stack([t["age"], indicators(t["drug"], 2, 3)])
    check(check_limit("gamma", link, X, t["studytime"], **printed), null_deviance="27.922071374207")


@pytest.mark.parametrize(
    ("link", "printed"),
    [
        ("log", {"estimates": "1.05712336 0.09927544 -0.19161722", "deviance": "304.271883060128",
                 "standard_errors": "0.04915765 0.00600728 0.02632126", "dispersion": "0.102405995192"}),
        ("identity", {"estimates": "2.83947966 0.44538838 -1.05872706", "deviance": "305.336611910140",
                      "standard_errors": "0.20834864 0.02586783 0.13830023", "dispersion": "0.101153877935"}),
    ],
    ids=["log", "identity"],
)  # fmt: skip
def test_hospital_stays(link, printed):
    """Hardin & Hilbe's medpar1, 3676 stays counted by cell: R's inverse Gaussian fits, stored by statsmodels."""
    t = columns("hospital_stays")
    X = np.column_stack([t["codes"], t["type3"]])
    model = check_limit("inverse_gaussian", link, X, t["stay"], t["count"], **printed)
    check(model, null_deviance="335.153977798")


def test_affairs():
    """Fair (1978), 6366 answers counted by cell, most of them zero: R's tweedie(1.5, log), stored by statsmodels."""
    t = columns("affairs")
    X = np.column_stack([t["rate_marriage"], t["age"], t["yrs_married"]])
    check_limit(
        "tweedie", "log", X, t["affairs"], t["count"], fit_intercept=False, deviance="20741.82",
        estimates="-0.389168171340 0.0670222370665 -0.0970852004567",
        standard_errors="0.0323435784514 0.0063805300018 0.0089358017535",
    )  # fmt: skip
