"""Contestants that follow scikit-learn's conventions; a guard for one that may silently run another's code."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from typing import Any

from benchmarks.harness import Contestant


def estimator(
    name: str,
    path: str,
    *data: Any,
    tols: tuple[float, ...] = (math.nan,),
    tol_name: str = "tol",
    slow: bool = False,
    **params: Any,
) -> Contestant:
    """`path` is "module:Class"; `tols`, where given, are values to try for its parameter `tol_name`."""
    module, _, cls = path.partition(":")

    def fit(tol: float) -> Any:
        stop = {} if math.isnan(tol) else {tol_name: tol}
        with accelerated() if module.startswith("sklearnex") else nullcontext():
            return getattr(import_module(module), cls)(**params, **stop).fit(*data)

    return Contestant(name, module, fit, tols, slow)


def cannot(name: str, module: str, why: str) -> Contestant:
    """A peer that does not solve this problem: shown with the reason."""

    def fit(tol: float) -> Any:
        raise NotImplementedError(why)

    return Contestant(name, module, fit, cannot=why)


@contextmanager
def accelerated() -> Iterator[None]:
    """Raise unless scikit-learn-intelex ran oneDAL throughout; that it fell back it tells its log only."""
    logger = logging.getLogger("sklearnex")
    messages: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    before = logger.handlers, logger.level, logger.propagate
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.handlers, _, logger.propagate = before
        logger.setLevel(before[1])
    if not messages or any("fallback" in m for m in messages):
        raise RuntimeError("fallback: stock scikit-learn ran, not oneDAL")
