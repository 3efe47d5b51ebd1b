"""Methods of descent for `core.fixed_point`: each takes what a pass over the rows measured and says where to go next.

| file | what it holds |
|---|---|
| line_search | `descend`: accept a trial point or shorten the step; the methods below are *direction rules* for it |
| newton | step = -H⁻¹ g, with the Hessian measured again only when the last one no longer serves |
| lbfgs | limited-memory BFGS around a preconditioner, for too many parameters to form a Hessian |
| proximal_newton | Newton steps beside an L1 penalty, by coordinate descent |
| self_concordance | a proved distance to the minimum from a gradient and an earlier Hessian |
| working_sets | solvers of kernel machines: few variables at a time |

The *stopping rule* is one line of `core.loop.fixed_point`: stop when the promised gain is at most `tol`. A model
decides what that gain is: a proved gap wherever there is one.
"""
