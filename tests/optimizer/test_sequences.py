"""Laws 5 and 6 and the books of a run, step by step, over random spaces, constraints and calls."""

import os
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from support.sequences import OPTIONS, STEP, STEPS, Walk, quick, without_lists
from support.worlds import made, plans

# Steps of a sequence: enough that the model is used and some corrected results are.
FEWEST, MOST = 8, 15
# Some worlds are tables, and some models have no BQM: their backends are not called.
pytestmark = pytest.mark.filterwarnings("ignore:backend=.* is not called")


def run_sequences(number: int, start: int) -> Counter:
    """At least `number` random sequences of calls, all checked, and what happened in them."""
    tally = Counter()

    @seed(start)
    @settings(
        max_examples=number,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(
        plan=plans(),
        options=OPTIONS,
        steps=st.lists(STEP, min_size=FEWEST, max_size=MOST),
        unlisted=st.sampled_from([False] * 11 + [True]),
    )
    def run(plan, options, steps, unlisted):
        world = made(plan, tally)
        # what predicates allow in a space too large to list is never known for sure
        unlisted = unlisted and not world.predicates
        with tempfile.TemporaryDirectory() as folder, without_lists(unlisted):
            walk = Walk(made(plan, Counter()) if unlisted else world, options, Path(folder), tally)
            for name, arguments in steps:
                walk.step(name, arguments)
        tally["sequences"] += 1
        tally["unlisted"] += unlisted
        tally[options["backend"]] += 1

    with quick():
        run()
    return tally


def test_every_answer_of_a_sequence_is_lawful():
    tally = run_sequences(10, start=0)
    assert tally["sequences"] >= 10
    assert tally["steps"] >= 10 * FEWEST


# Kinds of space, and what should have happened, if the sequences are to show anything.
KINDS = [
    *["Exactly", "AtMost", "AtLeast", "Linear", "Forbid", "Implies", "AllDifferent", "Tied"],
    *["Where", "table", "unlisted", "unsatisfiable", "impossible"],
    *[None, "annealing", "exhaustive", "cp-sat"],
]
EVENTS = [
    *["exhausted", "compared", "modelled", "asked again", "repeated"],
    *["did cancel", "did forget", "did retry", "did amend"],
]


# Parts of the long test, half a minute each; MERCBO_SEQUENCES=16 plays 2,080 sequences.
PARTS = int(os.environ.get("MERCBO_SEQUENCES", "1"))


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1, PARTS + 1))
def test_every_answer_of_many_sequences_is_lawful(start):
    tally = run_sequences(130, start=start)
    assert tally["sequences"] >= 130
    assert tally["steps"] >= 130 * FEWEST
    assert not [what for what in [*EVENTS, *STEPS] if not tally[what]]
    # some kinds are rare; that one or two of them are missing in one of the parts is chance
    assert len([what for what in KINDS if not tally[what]]) <= 2
