"""How Numba is told to leave loops that only loops call without machine code of their own.

Numba optimises every function and makes machine code of it, and does both again in each function that calls it: a
loop three calls down is compiled four times. Nobody ever runs the code of a loop that only loops call. So such loops
are handed to their callers as they are, and optimised and made into machine code there alone.

This builds on Numba's classes of compilers, which it documents, and on its libraries of code, which it does not:
where these are not as they were, loops are compiled as Numba does it.
"""

from __future__ import annotations

from typing import Any


def inner_compiler() -> Any:
    """Return the compiler of loops that only loops call, or None where Numba has other libraries."""
    try:
        return _compiler()
    except (ImportError, AttributeError, TypeError):
        return None


def _compiler() -> Any:
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import CompilerBase, DefaultPassBuilder
    from numba.core.compiler_machinery import LoweringPass, register_pass
    from numba.core.typed_passes import AnnotateTypes

    for name in ("_optimize_final_module", "_finalize_final_module", "_finalize_dynamic_globals", "_finalized"):
        getattr(JITCodeLibrary, name)

    class InnerLibrary(JITCodeLibrary):
        """The code of a loop that only loops call: linked into theirs."""

        def _optimize_final_module(self) -> None:
            """Leave it to the library that this one is linked into."""

        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()
            self._finalized = True

        @property
        def codegen(self) -> Any:
            return WithoutEnvironment(self._codegen)

    class WithoutEnvironment:
        """The maker of machine code, but for the place of Python objects that a loop needs: it has no such place."""

        def __init__(self, codegen: Any) -> None:
            self._codegen = codegen

        def __getattr__(self, name: str) -> Any:
            return getattr(self._codegen, name)

        def set_env(self, name: str, env: Any) -> None:
            """Do nothing: there is no machine code that would look for it."""

    @register_pass(mutates_CFG=False, analysis_only=True)
    class ChooseInnerLibrary(LoweringPass):
        """Let the code of a loop go into an inner library."""

        _name = "certifit_choose_inner_library"

        def __init__(self) -> None:
            LoweringPass.__init__(self)

        def run_pass(self, state: Any) -> bool:
            state.library = InnerLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
            return True

    class InnerCompiler(CompilerBase):
        """Numba's usual way, but for the library."""

        def define_pipelines(self) -> list[Any]:
            passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
            passes.add_pass_after(ChooseInnerLibrary, AnnotateTypes)
            passes.finalize()
            return [passes]

    return InnerCompiler
