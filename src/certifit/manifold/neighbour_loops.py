"""Compiled loops of the search for nearest rows: selection of candidates, and their exact distances."""

from certifit.numerics.compiled.compiling import called_from_python, compiled_with


@called_from_python
def smallest_entries(P, c, index, value):
    """Find the m smallest entries of p + c for each row p of P (rows, n).

    Their columns go to `index` (rows, m) and they themselves, ascending, to `value` (rows, m).
    """
    m = index.shape[1]
    for i in range(P.shape[0]):
        row, best, place = P[i], value[i], index[i]
        filled = 0
        for j in range(P.shape[1]):
            x = row[j] + c[j]
            if filled < m:
                at = filled
                filled += 1
            elif x < best[m - 1]:
                at = m - 1
            else:
                continue
            while at > 0 and best[at - 1] > x:
                best[at], place[at] = best[at - 1], place[at - 1]
                at -= 1
            best[at], place[at] = x, j


# Sums over columns, allowed in any order, vectorise. NaN and infinities keep their meaning.
@compiled_with(fastmath={"reassoc", "contract"})
def square_distances(Q, X, index, out):
    """Write |q - x|² to out (rows, m), for each row q of Q and the rows x of X that `index` (rows, m) names."""
    for i in range(index.shape[0]):
        q = Q[i]
        for j in range(index.shape[1]):
            x = X[index[i, j]]
            total = 0.0
            for c in range(X.shape[1]):
                t = q[c] - x[c]
                total += t * t
            out[i, j] = total
