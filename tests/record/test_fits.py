"""Fits in plain values: there and back, and checked against space and model."""

import json
from dataclasses import replace

import numpy as np
import pytest

from mercbo import Categorical, Model, Ordinal, Reversal, Space, StateError
from mercbo.encoding import Encoding
from mercbo.fitting import slicing
from mercbo.fitting.kinds import KINDS
from mercbo.fitting.warp import NAMES
from mercbo.inference import AMPLITUDE_BOUNDS, NOISE_BOUNDS, Fit, Hyper, bounds_of, prior, unpack
from mercbo.kernel import Kernel
from mercbo.kernels.averaging import kernel_of
from mercbo.kernels.motifs import Motifs
from mercbo.kernels.pooling import Pooling
from mercbo.kernels.windows import Windows
from mercbo.record.fits import RANGES, fit_schema

LETTERS = Space({f"x{i}": Categorical(list("ACGT")) for i in range(7)})
TERMS = {
    "windows": Windows(0.8, 2.5, 0.4),
    "pooling": Pooling(0.7, 0.4),
    "motifs": Motifs(0.8, 0.6, 2),
}
HYPER = Hyper(np.linspace(0.1, 1 / 3, 7), 1.5, 1e-3, -0.25)
FIT = Fit((HYPER, replace(HYPER, mean=0.5)), 7, 3, "log:0.3", 5, 0.25)


def kernel(space: Space) -> Kernel:
    return kernel_of(Encoding(space), space.group)


def read(value: object, space: Space = LETTERS, **options) -> Fit:
    return fit_schema(kernel(space), Model(**options))(value, "fit")


def plain(fit: Fit = FIT) -> dict:
    return json.loads(json.dumps(fit.to_dict(), allow_nan=False))


@pytest.mark.parametrize("names", [(), ("windows",), ("pooling", "motifs"), tuple(TERMS)])
@pytest.mark.parametrize("warp", [None, *NAMES])
def test_fit_goes_through_json_unchanged(names, warp):
    terms = {name: TERMS[name] for name in names}
    fit = replace(FIT, warp=warp, hypers=tuple(replace(each, **terms) for each in FIT.hypers))
    again = read(plain(fit))
    assert again.to_dict() == fit.to_dict()
    assert isinstance(again.hypers, tuple)
    assert [each.covariance for each in again.hypers] == [each.covariance for each in fit.hypers]


def test_fit_of_an_older_version_may_lack_entries():
    first = {name: plain()["hypers"][0][name] for name in ("beta", "amplitude", "noise", "mean")}
    found = read({"hypers": [first], "seen": 7, "cold": 3})
    assert found.to_dict() == Fit((HYPER,), 7, 3).to_dict()


@pytest.mark.parametrize(("saved", "name"), [(0.03, "log:0.03"), (3.0, "log:3"), (1, "log:1")])
def test_warp_of_an_older_version_is_the_shape_of_a_logarithm(saved, name):
    assert read({**plain(), "warp": saved}).warp == name


def changed(fit: dict, *path: object, value: object) -> dict:
    parent = fit
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = value
    return fit


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["hypers"], [], r"fit\.hypers: expected a list of at least 1, got \[\]"),
        (["hypers"], None, r"fit\.hypers: expected a list"),
        (["hypers", 1], 3, r"fit\.hypers\[1\]: expected an object, got 3"),
        (["hypers", 0, "beta"], [0.1] * 6, r"hypers\[0\]\.beta: expected a list of 7 numbers"),
        (["hypers", 0, "beta", 2], "0.1", r"hypers\[0\]\.beta: expected a list of 7 numbers"),
        (["hypers", 0, "beta", 2], -0.1, r"hypers\[0\]\.beta: expected a list of 7 numbers"),
        (["hypers", 0, "amplitude"], -1.0, r"amplitude: expected a number from 1e-07 to 100000"),
        (["hypers", 0, "amplitude"], None, r"amplitude: expected a number from 1e-07 to 100000"),
        (["hypers", 0, "noise"], 0, r"noise: expected a number from 1e-07 to 100000, got 0"),
        (["hypers", 0, "noise"], [0.1], r"noise: expected a number"),
        (["hypers", 0, "mean"], float("nan"), r"mean: expected a number"),
        (["hypers", 0, "colour"], 1, r"fit\.hypers\[0\]: unknown entry 'colour'"),
        (["hypers", 0, "windows"], {"amplitude": 1.0}, r"windows\.sharpness: expected an entry"),
        (["hypers", 0, "windows"], 3, r"windows: expected an object, got 3"),
        (["seen"], -1, r"fit\.seen: expected a whole number of at least 0, got -1"),
        (["cold"], "text", r"fit\.cold: expected a whole number"),
        (["chosen"], 1.5, r"fit\.chosen: expected a whole number"),
        (["chosen"], 10**400, r"fit\.chosen: expected a whole number"),
        (["step"], 0.0, r"fit\.step: expected a number from 1e-300"),
        (["warp"], "log:0.5", r"fit\.warp: expected one of \['log:3'"),
        (["warp"], ["log:3"], r"fit\.warp: expected one of \['log:3'"),
        (["warp"], 10**400, r"fit\.warp: expected a number"),
    ],
)
def test_fit_with_a_wrong_entry_is_refused(path, value, message):
    with pytest.raises(StateError, match=message):
        read(changed(plain(), *path, value=value))


@pytest.mark.parametrize("name", TERMS)
@pytest.mark.parametrize(
    "options", [{"inference": "hmc"}, {"order": 3}, {"posterior": "truncated"}, None]
)
def test_term_that_the_model_does_not_learn_is_refused(name, options):
    fit = plain(replace(FIT, hypers=(replace(HYPER, **{name: TERMS[name]}),)))
    options = {name: "none"} if options is None else options
    with pytest.raises(StateError, match=rf"hypers\[0\]\.{name}: expected null"):
        read(fit, **options)


def test_motifs_that_the_space_does_not_have_are_refused():
    def motifs(strands: int, n: int) -> dict:
        hyper = Hyper(np.ones(n), 1.0, 0.1, 0.0, motifs=Motifs(0.8, 0.6, strands))
        return plain(Fit((hyper,), 7, 3))

    assert read(motifs(1, 8), Space.binary(8)).hypers[0].motifs == Motifs(0.8, 0.6, 1)
    with pytest.raises(StateError, match=r"strands: expected a whole number from 1 to 1, got 2"):
        read(motifs(2, 8), Space.binary(8))  # DNA alone has another strand
    with pytest.raises(StateError, match=r"motifs: expected null"):
        read(motifs(1, 5), Space.binary(5))  # too few letters in a row


def test_betas_of_what_symmetries_exchange_are_the_same():
    def betas(*beta: float) -> dict:
        return plain(Fit((Hyper(np.array(beta), 1.0, 0.1, 0.0),), 7, 3))

    mirrored = Space.binary(4, symmetries=[Reversal()])
    assert read(betas(0.1, 0.2, 0.2, 0.1), mirrored).hypers[0].beta.tolist() == [0.1, 0.2, 0.2, 0.1]
    assert read(betas(0.1, 0.2, 0.3, 0.4), Space.binary(4))
    with pytest.raises(StateError, match=r"beta: expected the same number for all that symm.*0\.4"):
        read(betas(0.1, 0.2, 0.3, 0.4), mirrored)


def test_ranges_hold_all_that_fits_reach(mixed):
    long = Space({"a": Ordinal(range(2048)), **mixed.variables})
    kernels = [kernel(space) for space in (mixed, long, Space.binary(40))]
    scales = np.exp([slicing.LOW, slicing.SCALE_HIGH])
    ends = {
        "beta": [np.exp([slicing.LOW, slicing.BETA_HIGH]), *(prior(each).beta for each in kernels)],
        "amplitude": [np.exp(AMPLITUDE_BOUNDS), scales],
        "noise": [np.exp(NOISE_BOUNDS), scales],
    }
    ends["beta"] += [unpack(each, z).beta for each in kernels for z in bounds_of(each.n).T]
    for kind in KINDS:
        for corner in np.array(kind.bounds).T:
            for name, value in vars(kind.unpack(corner)).items():
                ends.setdefault(name, []).append(np.array([value]))
    del ends["strands"]
    for name, found in ends.items():
        low, high = RANGES[name]
        assert low < np.concatenate(found).min(), name
        assert np.concatenate(found).max() < high, name
