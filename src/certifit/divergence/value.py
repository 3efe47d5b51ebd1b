"""Floats that carry the method by which they were found and an error; divergences and entropies are returned so."""

from __future__ import annotations

import math
from typing import Any, NoReturn, Self


class Estimate(float):
    """A float with `error`, `method` and `note`, which compares and computes as the plain number.

    `error` is one standard error (Monte Carlo, samples), an error estimate (quadrature, the cut tail of a sum), or 0
    where only rounding remains (closed forms).

    >>> Estimate(0.12345, 0.004, "Monte Carlo, 100,000 draws")
    0.123 ± 0.004 (Monte Carlo, 100,000 draws)
    >>> Estimate(0.12345) < 0.2, 2 * Estimate(0.25)
    (True, 0.5)
    """

    error: float
    method: str
    note: str

    def __new__(cls, value: float, error: float = 0.0, method: str = "closed form", note: str = "") -> Self:
        self = super().__new__(cls, value)
        vars(self).update(error=float(error), method=method, note=note)
        return self

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable: {name!r} cannot be set")

    __delattr__ = __setattr__  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (float(self), self.error, self.method, self.note)

    def __repr__(self) -> str:
        words = [self.method] if self.error > 0 else []
        words += [self.note] if self.note else []
        return self._number_words() + (f" ({'; '.join(words)})" if words else "")

    __str__ = __repr__

    def _number_words(self) -> str:
        value = float(self)
        if not (self.error > 0 and math.isfinite(self.error) and math.isfinite(value)):
            return f"{value!r} ± {self.error!r}" if self.error > 0 else repr(value)
        digits = -math.floor(math.log10(self.error))  # number of decimals up to the error's first digit
        error = f"{self.error:.1g}"
        if digits <= 0 or "e" in error:
            kept = max(1, digits + (math.floor(math.log10(abs(value))) + 1 if value else 1))
            return f"{value:.{min(kept, 17)}g} ± {error}"
        return f"{value:.{digits}f} ± {error}"


class Divergence(Estimate):
    """An `Estimate` of a quantity that is never negative: a value below 0 is rounding and becomes 0.

    >>> Divergence(-1e-17), Divergence(float("inf"), note="q gives no mass to entry 2, p does")
    (0.0, inf (q gives no mass to entry 2, p does))
    """

    def __new__(cls, value: float, error: float = 0.0, method: str = "closed form", note: str = "") -> Self:
        return super().__new__(cls, value if value > 0 or math.isnan(value) else 0.0, error, method, note)
