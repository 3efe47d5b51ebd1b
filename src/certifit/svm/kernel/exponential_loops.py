"""Exponentials of float32 numbers that are at most 0: the compiled loop behind RBF kernel values.

exp(x) = 2^m exp(r) with m the whole number nearest to x / log 2 and |r| <= log(2) / 2, where a Taylor sum of degree 7
is good to the last digit. log 2 is subtracted in two parts so that r keeps its digits (Cody & Waite 1980).
"""

import numpy as np

from certifit.numerics.compiled.compiling import compiled_with

F = np.float32
LOG2_E, LOG_2_HIGH, LOG_2_LOW = F(1.0 / np.log(2.0)), F(355 / 512), F(np.log(2.0) - 355 / 512)  # log 2 in two parts
ROUND = F(1.5 * 2.0**23 + 127)  # added to a number it leaves, in the last bits, the nearest whole one as an exponent
SMALLEST = F(-87.0)  # exponentials of numbers below count as 0


# Contraction lets products and sums run as one instruction; nothing is assumed about NaN or infinity.
@compiled_with(fastmath={"contract"})
def exp_single(table):
    """Replace every number of a float32 table (m, n) by exp(min(number, 0)), good to the last digit.

    Unlike a library's function, the compiler turns this into instructions for many numbers at a time.
    """
    for i in range(len(table)):
        row = table[i]
        for j in range(len(row)):
            y = min(row[j], F(0))
            x = max(y, SMALLEST)
            t = x * LOG2_E + ROUND
            m = t - ROUND
            r = (x - m * LOG_2_HIGH) - m * LOG_2_LOW
            p = (((r * F(1 / 5040) + F(1 / 720)) * r + F(1 / 120)) * r + F(1 / 24)) * r
            p = (((p + F(1 / 6)) * r + F(0.5)) * r + F(1)) * r + F(1)
            power = np.int32(F(t).view(np.int32) << np.int32(23)).view(F)
            row[j] = F(0) if y < SMALLEST else p * power
