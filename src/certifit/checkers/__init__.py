"""The trusted floor: checkers and the adapters that read fitted models, ours and foreign.

It mirrors the rooms and can be read alone. A checker takes fitted attributes and rows and recomputes the claim in
plain float64 NumPy and SciPy; it uses no code of any solver. (A fit may use a checker's function, never the reverse.)
"""
