"""Random streams: the same for the same use, others for another."""

from __future__ import annotations

import numpy as np
import pytest

from mercbo import SettingError
from mercbo.record.streams import Streams


def first_of(rng: np.random.Generator) -> int:
    return int(rng.integers(2**62))


def test_a_use_has_the_same_numbers_whenever_it_is_asked_for() -> None:
    one, two = Streams.of(7), Streams.of(7)
    for use in ("asking", "fitting", "explaining"):
        assert first_of(getattr(one, use)(3)) == first_of(getattr(two, use)(3))


def test_uses_numbers_and_seeds_have_streams_of_their_own() -> None:
    drawn = [
        first_of(getattr(Streams.of(seed), use)(number))
        for seed in (0, 1)
        for use in ("asking", "fitting", "explaining")
        for number in (0, 1)
    ]
    assert len(set(drawn)) == len(drawn)


def test_apart_changes_asks_only() -> None:
    one = Streams.of(0)
    other = one.apart()
    assert other.entropy == one.entropy
    assert first_of(other.asking(2)) != first_of(one.asking(2))
    assert first_of(other.fitting(2)) == first_of(one.fitting(2))


def test_without_a_seed_the_entropy_is_fresh() -> None:
    assert Streams.of(None).entropy != Streams.of(None).entropy


@pytest.mark.parametrize("seed", [-1, 1.5, True, "7"])
def test_what_is_no_seed_is_refused(seed: object) -> None:
    with pytest.raises(SettingError, match="seed="):
        Streams.of(seed)  # type: ignore[arg-type]
