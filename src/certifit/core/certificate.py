"""The certificate of a fit: a claim about the model, the inequalities that prove it, and whether they hold.

A checker writes it from the rows and the fitted numbers. Its `kind` says how strong the claim is: from `exact` and
`optimal` (a lower bound on the objective is proved) to `stationary` (one more step gains next to nothing). Where the
proof of a fit is left to an audit, it is `unproved`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from certifit.core.text_table import html_text, text_pairs, wrapped

Kind = Literal["exact", "optimal", "bounded", "stationary", "greedy", "statistical", "impossible", "unproved"]
KINDS = get_args(Kind)


@dataclass(frozen=True)
class Check:
    """One inequality, residual <= limit, with the words that name the residual."""

    name: str
    residual: float
    limit: float

    @property
    def passed(self) -> bool:
        """Whether residual <= limit, with both finite and the limit not negative: infinity proves nothing."""
        return math.isfinite(self.residual) and math.isfinite(self.limit) and bool(self.residual <= self.limit >= 0)


def rounding_within(rounding: Any, size: Any, share: float = 0.25) -> Any:
    """What may be put down to rounding: at most a share of the size of the thing itself.

    Of numbers far from 0 the last digit may be larger than what they are compared by, a standard deviation, say.
    An allowance for it would then let anything pass; what is right in all its digits passes without.

    >>> rounding_within(1e-9, 1.0), rounding_within(5e231, 1.0)
    (1e-09, 0.25)
    """
    allowed = np.minimum(rounding, share * np.asarray(size))
    return allowed if np.ndim(allowed) else float(allowed)


@dataclass(frozen=True)
class Certificate:
    """A claim about a fitted model and the checks that prove it.

    `objective - optimum <= gap` follows from `bound`, a proved lower bound on the optimum, where there is one.
    `tol` is what was asked for, relative to the objective; `limit` is that tolerance in the objective's units plus
    an allowance for rounding. `scale` is the size of the terms that the objective sums up, for objectives that may be
    next to 0 at a perfect fit; a limit beyond it would allow anything, so such a certificate never holds.
    `witness` holds numbers that prove the claim and are not the model's own; `parameter_error` says how far each
    coefficient can be from the minimiser's, where the gap proves that.

    `proved` says whether the claim is true of the data, `holds` whether the fitted model is as good as was asked for:
    the proof that no solution exists is proved, and holds for no model.

    >>> c = Certificate("optimal", "objective within gap of the optimum", objective=10.0, bound=9.999, tol=1e-3)
    >>> c.holds, round(c.gap, 6)
    (True, 0.001)
    >>> print(c)
    optimal: objective within gap of the optimum
      objective    10
      lower bound  9.999
      gap          0.001 (0.01 %), allowed 0.01
      holds        yes
    """

    kind: Kind
    claim: str
    objective: float = math.nan
    bound: float = math.nan
    tol: float = 0.0
    limit: float = math.nan
    checks: tuple[Check, ...] = ()
    facts: Mapping[str, float | str] = field(default_factory=dict)
    witness: tuple[tuple[float, ...], ...] = ()
    scale: float = math.nan
    parameter_error: tuple[tuple[float, ...], ...] = ()  # a row of coefficients per machine, its intercept last

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"Got certificate kind {self.kind!r}; wanted one of {KINDS}.")
        if math.isnan(self.limit):
            object.__setattr__(self, "limit", self.tol * abs(self.objective))
        if math.isnan(self.scale):
            object.__setattr__(self, "scale", abs(self.objective))

    @property
    def gap(self) -> float:
        """The proved distance to the optimum in the objective's units: at least 0, or NaN where there is no bound."""
        gap = self.objective - self.bound
        return gap if math.isnan(gap) else max(0.0, gap)

    @property
    def relative_gap(self) -> float:
        """The gap as a share of the objective, or of its scale where the objective is nothing but rounding."""
        size = abs(self.objective) if self.limit <= abs(self.objective) else self.scale
        return self.gap / size if size else self.gap

    @property
    def ratio(self) -> float:
        """How many times the optimum the objective can be at most: objective / bound."""
        return self.objective / self.bound if self.bound > 0 else math.inf

    @property
    def proved(self) -> bool:
        """Whether the claim is proved: every number in it is finite, every check passes, and the gap is small."""
        known = self.kind != "unproved"
        return known and self._is_finite and all(c.passed for c in self.checks) and self._gap_is_small

    @property
    def holds(self) -> bool:
        """Whether the fitted model is proved to be as good as was asked for."""
        return self.proved and self.kind != "impossible"

    @property
    def _is_finite(self) -> bool:
        # NaN stands for a number that the claim does not speak of.
        needed = {"optimal": [self.objective, self.bound], "bounded": [self.objective, self.bound]}
        needed["stationary"] = [self.objective]
        spoken_of = [x for x in (self.objective, self.bound) if not math.isnan(x)]
        return all(map(math.isfinite, [*needed.get(self.kind, []), *spoken_of]))

    @property
    def _gap_is_small(self) -> bool:
        return self.kind != "optimal" or bool(self.gap <= self.limit <= self.scale)

    def failures(self) -> list[str]:
        """Return a phrase for each inequality that does not hold, with the number reached and the number allowed."""
        if self.kind == "unproved":
            return [self.claim]
        out = [f"{c.name}: {c.residual:.3g}, allowed {c.limit:.3g}" for c in self.checks if not c.passed]
        if not math.isfinite(self.objective) and not self._is_finite:
            out.insert(0, f"the objective is {self.objective:g}: nothing is proved about this model")
        elif not self._is_finite:
            out.insert(0, f"no lower bound was found: nothing is proved; asked for {self.tol:.2g}")
        elif not self._gap_is_small and not self.limit <= self.scale:
            out.insert(
                0, f"a gap of {self.limit:.3g} would be allowed, and the objective's scale is {self.scale:.3g}"
            )
        elif not self._gap_is_small:
            out.insert(
                0,
                f"objective within {self.gap:.3g} ({_percent(self.relative_gap)} of its value) of the optimum; "
                f"asked for {self.tol:.2g}",
            )
        return out

    def lines(self) -> list[tuple[str, str]]:
        """Return the certificate as (label, value) pairs, in the order in which they are printed."""
        out: list[tuple[str, str]] = []
        if not math.isnan(self.objective):
            out.append(("objective", f"{self.objective:.10g}"))
        if not math.isnan(self.bound):
            out.append(("lower bound", f"{self.bound:.10g}"))
        if self.kind == "optimal":
            out.append(("gap", f"{self.gap:.3g} ({_percent(self.relative_gap)}), allowed {self.limit:.3g}"))
        if self.kind == "bounded":
            out.append(("ratio", f"at most {self.ratio:.4g} times the optimum"))
        for check in self.checks:
            verdict = "" if check.passed else "  <- fails"
            out.append((check.name, f"{check.residual:z.3g} <= {check.limit:.3g}{verdict}"))
        for name, value in self.facts.items():
            out.append((name, value if isinstance(value, str) else f"{value:.6g}"))
        if self.parameter_error:
            out.append(("coefficients", self._coefficient_words()))
        if self.kind == "unproved":
            out.append(("holds", "not known yet"))
        elif self.kind == "impossible":
            out.append(("proved", "yes: holds for no model" if self.proved else "NO"))
        else:
            out.append(("holds", "yes" if self.holds else "NO"))
        return out

    def _coefficient_words(self) -> str:
        errors = [error for row in self.parameter_error for error in row]
        known = [error for error in errors if math.isfinite(error)]
        if not known:
            return "nothing is proved about single ones"
        words = f"within {max(known):.2g} of the minimiser's"
        missing = len(errors) - len(known)
        if not missing:
            return words
        # An intercept that is not penalised may have no unique best value.
        if all(math.isfinite(error) for row in self.parameter_error for error in row[:-1]):
            return f"{words}; nothing is proved about intercepts"
        return f"all but {missing} of {len(errors)} {words}; nothing is proved about those {missing}"

    def __str__(self) -> str:
        return f"{wrapped(f'{self.kind}: {self.claim}', indent=4)}\n{text_pairs(self.lines())}"

    def _repr_html_(self) -> str:
        colour = "#1a7f37" if self.proved else "#b42318"
        body = "".join(
            f"<tr><td style='text-align:left'>{html_text(a)}</td><td style='text-align:left'>{html_text(b)}</td></tr>"
            for a, b in self.lines()
        )
        return (
            f"<table style='border-left:4px solid {colour}'><caption style='text-align:left'><b>{self.kind}</b>: "
            f"{html_text(self.claim)}</caption>{body}</table>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and words; NaN and infinities, which JSON lacks, become words."""
        return {
            "kind": self.kind,
            "claim": self.claim,
            **{
                name: _to_json(getattr(self, name)) for name in ("objective", "bound", "gap", "tol", "limit", "scale")
            },
            "checks": [
                {"name": c.name, "residual": _to_json(c.residual), "limit": _to_json(c.limit), "passed": c.passed}
                for c in self.checks
            ],
            "facts": {k: v if isinstance(v, str) else _to_json(v) for k, v in self.facts.items()},
            "witness": [list(row) for row in self.witness],
            "parameter_error": [list(map(_to_json, row)) for row in self.parameter_error],
            "proved": self.proved,
            "holds": self.holds,
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Certificate:
        objective, bound, tol, limit = (_from_json(data[name]) for name in ("objective", "bound", "tol", "limit"))
        return cls(
            data["kind"],
            data["claim"],
            objective,
            bound,
            tol,
            limit,
            tuple(Check(c["name"], _from_json(c["residual"]), _from_json(c["limit"])) for c in data["checks"]),
            {k: v if isinstance(v, str) and v not in _WORDS else _from_json(v) for k, v in data["facts"].items()},
            tuple(tuple(row) for row in data["witness"]),
            # Files of older versions do not have these.
            _from_json(data.get("scale", "nan")),
            tuple(tuple(map(_from_json, row)) for row in data.get("parameter_error", ())),
        )


def _percent(share: float) -> str:
    """A share in per cent, with two digits."""
    return f"{100 * share:.0f} %" if 0.1 <= share < 1e4 else f"{100 * share:.2g} %"


_WORDS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def _to_json(x: float) -> float | str:
    return float(x) if math.isfinite(x) else str(float(x))


def _from_json(x: float | str) -> float:
    return _WORDS[x] if isinstance(x, str) else float(x)
