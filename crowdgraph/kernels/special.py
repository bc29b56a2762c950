"""Special functions for compiled code."""

from __future__ import annotations

import math

from numba import njit

__all__ = ["digamma_and_log_gamma", "trigamma"]

HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)
# From this argument on, eight terms of the asymptotic series are exact to the last bits.
MIN_ASYMPTOTIC = 8.0


@njit(cache=True, error_model="numpy")
def digamma_and_log_gamma(x: float) -> tuple[float, float]:
    r"""Return the digamma function and the logarithm of the gamma function of `x` > 0.

    Both raise the argument to at least 8 by :math:`\Gamma(x + 1) = x \Gamma(x)` and use Stirling's series there, so
    they share the recurrence and the logarithm.
    """
    # The product x (x + 1) ... and its derivative; their quotient is 1 / x + 1 / (x + 1) + ..., with one division.
    product, derivative = 1.0, 0.0
    while x < MIN_ASYMPTOTIC:
        derivative = derivative * x + product
        product *= x
        x += 1.0
    log, inverse = math.log(x), 1.0 / x
    square = inverse * inverse
    digamma = (
        log
        - 0.5 * inverse
        - square
        * (
            1 / 12
            - square
            * (
                1 / 120
                - square * (1 / 252 - square * (1 / 240 - square * (1 / 132 - square * (691 / 32760 - square / 12))))
            )
        )
    )
    log_gamma = (
        (x - 0.5) * log
        - x
        + HALF_LOG_TAU
        + inverse
        * (
            1 / 12
            - square
            * (
                1 / 360
                - square
                * (1 / 1260 - square * (1 / 1680 - square * (1 / 1188 - square * (691 / 360360 - square / 156))))
            )
        )
    )
    return digamma - derivative / product, log_gamma - math.log(product)


@njit(cache=True, error_model="numpy")
def trigamma(x: float) -> float:
    """Return the derivative of the digamma function of `x` > 0, by recurrence and the asymptotic series."""
    value = 0.0
    while x < MIN_ASYMPTOTIC:
        value += 1.0 / (x * x)
        x += 1.0
    inverse = 1.0 / x
    square = inverse * inverse
    series = 1 / 6 - square * (
        1 / 30 - square * (1 / 42 - square * (1 / 30 - square * (5 / 66 - square * (691 / 2730 - square * 7 / 6))))
    )
    return value + inverse + 0.5 * square + inverse * square * series
