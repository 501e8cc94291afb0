"""Covariance matrices that cannot be factored: an error that says what to do, nothing changed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import lapack
from support.optimizer import run

from mercbo import Model, NumericalError, Optimizer, Space

CALLS = {
    "ask": lambda opt: opt.ask(),
    "predict": lambda opt: opt.predict({"x0": 1, "x1": 0, "x2": 1, "x3": 0}),
    "draw": lambda opt: opt.draw(),
    "explain": lambda opt: opt.explain(),
}


@pytest.mark.usefixtures("poor_fits")
@pytest.mark.parametrize("inference", ["map", "hmc", "slice"])
@pytest.mark.parametrize("call", CALLS)
def test_no_call_lets_a_failed_factorization_escape(
    call: str, inference: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opt = Optimizer(Space.binary(4), seed=0, n_initial=3, model=Model(inference=inference))
    run(opt, 5)
    before, factored = opt.to_dict(), lapack.dpotrf
    monkeypatch.setattr(lapack, "dpotrf", lambda a, **_: (a, 1))
    with pytest.raises(
        NumericalError, match=r"not positive definite .* tell the standard deviation"
    ):
        CALLS[call](opt)
    assert opt.to_dict() == before
    monkeypatch.setattr(lapack, "dpotrf", factored)
    CALLS[call](opt)


@pytest.mark.usefixtures("poor_fits")
def test_ask_survives_a_single_failed_factorization(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it happens in a fit, the fit goes on from another state or ends in an error."""
    factored, count = lapack.dpotrf, 0

    def failing(at: int):  # type: ignore[no-untyped-def]
        calls = iter(range(10**6))

        def dpotrf(a, **options):  # type: ignore[no-untyped-def]
            nonlocal count
            count = next(calls)
            return (a, 1) if at <= count < at + 7 else factored(a, **options)

        return dpotrf

    at = survived = 0
    while at <= count or at == 0:
        opt = Optimizer(Space.binary(4), seed=0, n_initial=3, model=Model(inference="hmc"))
        run(opt, 4)
        monkeypatch.setattr(lapack, "dpotrf", failing(at))
        try:
            point = opt.ask()
            survived += 1
            assert np.isfinite(opt.predict(point).mean).all()
        except NumericalError:
            pass
        finally:
            monkeypatch.setattr(lapack, "dpotrf", factored)
        at += 5
    assert survived > 3
