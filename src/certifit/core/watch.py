"""How a fit reports to scikit-learn's callbacks: every loop it runs, and every pass of a loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sklearn.base import BaseEstimator

from certifit.core.loop import Step

Attributes = Mapping[str, Any]  # fitted attributes by name


class Watch:
    """Report each pass of a loop to scikit-learn's callbacks; loops inside it get a watch of their own."""

    def __init__(self, estimator: BaseEstimator, context: Any, X: Any, y: Any, metadata: dict[str, Any]) -> None:
        self.estimator, self.context = estimator, context
        self.data = {"X": X, "y": y, "metadata": metadata}
        self.attributes: Callable[[Any], Attributes] | None = None
        self.added = 0.0  # objective of parts of the model that were fitted before, on top of which the loop's comes
        self._is_heard = bool(getattr(estimator, "_skl_callbacks", ()))  # else nothing is made for nobody, each pass
        self._pass: Any = None

    @contextmanager
    def loop(self, name: str, max_iter: int, attributes: Callable[[Any], Attributes]) -> Iterator[Watch]:
        """Give a watch for one loop of the fit; `attributes(params)` are the fitted attributes at `params`."""
        context = self.context.subcontext(task_name=name, max_subtasks=max_iter + 1)
        watch = Watch(self.estimator, context, **self.data)
        watch.attributes = attributes
        context.call_on_fit_task_begin(estimator=self.estimator, **self.data)
        yield watch
        context.call_on_fit_task_end(estimator=self.estimator, **self.data)

    def inner_fit(self, estimator: BaseEstimator) -> Any:
        """Return a context in which an inner estimator is fitted and reports to the same callbacks."""
        return self.context.subcontext(task_name="fit").propagate_callback_context(estimator)

    def begin(self) -> None:
        if not self._is_heard:
            return
        self._pass = self.context.subcontext(task_name="pass")
        self._pass.call_on_fit_task_begin(estimator=self.estimator, **self.data)

    def end(self, params: Any, step: Step[Any], tol: float) -> bool:
        if not self._is_heard:
            return False
        # `ProgressBar` reads these. Contexts live as long as the fit, so they keep no parameters.
        shown = step._replace(params=None, objective=step.objective + self.added)
        self._pass.step, self._pass.tol = shown, tol
        attributes = self.attributes
        return bool(
            self._pass.call_on_fit_task_end(
                estimator=self.estimator,
                reconstruction_attributes=None if attributes is None else lambda: dict(attributes(params)),
                **self.data,
            )
        )
