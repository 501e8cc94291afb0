"""Index rows <-> bits: there and back for every kind, and nothing decoded that is not a value."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercbo import Binary, Categorical, Integer, Ordinal, Space
from mercbo.encoding import Encoding

LETTERS = "abcdefghijklmnopq"


def coded(k: int, encoding: str = "binary") -> Categorical:
    return Categorical(list(LETTERS[:k]), encoding=encoding)


SPACES = {
    "binary": Space.binary(5),
    "one-hot": Space({"a": coded(3, "one-hot"), "b": coded(5, "one-hot")}),
    "path": Space({"a": Ordinal([1, 2, 4]), "b": Integer(-2, 1)}),
    "one value": Space({"a": coded(1), "b": Ordinal([7]), "c": Binary(), "d": Integer(3, 3)}),
    "only one value": Space({"a": coded(1, "one-hot")}),
    "two values": Space({"a": coded(2), "b": Ordinal([5, 6]), "c": Integer(0, 1)}),
    **{f"code of {k}": Space({"a": coded(k)}) for k in (3, 4, 5, 6, 7, 8)},
    "mixed": Space(
        {
            "a": coded(3),
            "b": Binary(),
            "c": coded(5),
            "d": coded(3, "one-hot"),
            "e": Ordinal([1, 2, 3]),
            "f": coded(1),
            "g": coded(3),
        }
    ),
    "codes": Space({"a": coded(6), "b": coded(7), "c": Integer(1, 2), "d": coded(8)}),
}
every_space = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
both_layouts = pytest.mark.parametrize("native", [False, True], ids=["encoded", "native"])


@every_space
@both_layouts
def test_every_point_survives_the_way_to_bits_and_back(space, native):
    encoding = Encoding(space, native=native)
    rows = space.enumerate_rows()
    bits = encoding.to_bits(rows)
    back, valid = encoding.from_bits(bits)
    assert bits.dtype == np.int8
    assert bits.shape == (space.size, encoding.width)
    assert set(np.unique(bits).tolist()) <= {0, 1}
    assert back.dtype == np.int64
    assert np.array_equal(back, rows)
    assert valid.all()


@every_space
@both_layouts
def test_different_points_have_different_bits(space, native):
    bits = Encoding(space, native=native).to_bits(space.enumerate_rows())
    assert len({tuple(b) for b in bits.tolist()}) == space.size


@pytest.mark.parametrize("name", [n for n, s in SPACES.items() if Encoding(s).width <= 14])
def test_exactly_the_bits_of_points_are_feasible(name):
    """Over all 2**B patterns: feasible if and only if some point has these bits."""
    space = SPACES[name]
    encoding = Encoding(space)
    patterns = np.array(list(itertools.product([0, 1], repeat=encoding.width)), dtype=np.int8)
    patterns = patterns.reshape(2**encoding.width, encoding.width)
    _, valid = encoding.from_bits(patterns)
    feasible = {tuple(b) for b in patterns[valid.all(axis=1)].tolist()}
    assert feasible == {tuple(b) for b in encoding.to_bits(space.enumerate_rows()).tolist()}


@every_space
@both_layouts
def test_infeasible_entries_stay_in_range(space, native):
    encoding = Encoding(space, native=native)
    bits = np.random.default_rng(0).integers(0, 2, size=(500, encoding.width), dtype=np.int8)
    rows, _ = encoding.from_bits(bits)
    assert (rows >= 0).all()
    assert (rows < space.sizes).all()


@pytest.mark.parametrize("k", [3, 4, 5, 6, 7, 8, 9, 16, 17])
def test_codewords_from_k_upwards_belong_to_no_value(k):
    encoding = Encoding(Space({"a": coded(k)}))
    assert encoding.width == int(np.ceil(np.log2(k)))
    words = np.arange(2**encoding.width)
    bits = (words[:, np.newaxis] >> np.arange(encoding.width) & 1).astype(np.int8)
    rows, valid = encoding.from_bits(bits)
    assert valid[:, 0].tolist() == [True] * k + [False] * (len(words) - k)
    assert rows[:k, 0].tolist() == list(range(k))


def test_only_the_broken_variable_is_flagged():
    encoding = Encoding(
        Space({"a": coded(3, "one-hot"), "b": coded(5), "c": Binary(), "d": Ordinal([1, 2, 3])})
    )
    whole = encoding.to_bits(np.array([[1, 3, 1, 2]]))[0]
    none, two, unused, path = (whole.copy() for _ in range(4))
    none[[0, 1, 2]] = 0
    two[[0, 1]] = 1
    unused[[3, 4, 5]] = [1, 0, 1]  # 5, and there are the codewords 0 to 4
    path[[7, 8, 9]] = 1
    _, valid = encoding.from_bits(np.stack([whole, none, two, unused, path]))
    assert valid.tolist() == [
        [True, True, True, True],
        [False, True, True, True],
        [False, True, True, True],
        [True, False, True, True],
        [True, True, True, False],
    ]


# -- labels ------------------------------------------------------------------------------------


def test_labels_say_which_value_a_bit_stands_for():
    space = Space(
        {
            "solvent": Categorical(["DMSO", "THF", None]),
            "heat": Ordinal([20, 40, 80]),
            "wash": Binary(),
            "side": Categorical(["left", "right"]),
            "base": coded(5),
            "fixed": Ordinal([7]),
        }
    )
    assert Encoding(space).labels == (
        ("solvent", "DMSO"),
        ("solvent", "THF"),
        ("solvent", None),
        ("heat", 20),
        ("heat", 40),
        ("heat", 80),
        ("wash", 1),
        ("side", "right"),
        ("base", "bit 0"),
        ("base", "bit 1"),
        ("base", "bit 2"),
    )


@every_space
@both_layouts
def test_a_labelled_bit_is_one_where_the_point_has_the_value(space, native):
    encoding = Encoding(space, native=native)
    rows = space.enumerate_rows()
    bits = encoding.to_bits(rows)
    points = space.points(rows)
    for column, (name, value) in enumerate(encoding.labels):
        values = space.variables[name].values
        if value in values:
            wanted = [p[name] == value for p in points]
        else:
            place = int(value.removeprefix("bit "))
            wanted = [bool(values.index(p[name]) >> place & 1) for p in points]
        assert bits[:, column].astype(bool).tolist() == wanted


@every_space
@both_layouts
def test_labels_are_unique(space, native):
    labels = Encoding(space, native=native).labels
    assert len(set(labels)) == len(labels)


# -- groups, blocks and the native layout ------------------------------------------------------


@every_space
@both_layouts
def test_each_one_hot_group_has_exactly_one_one(space, native):
    encoding = Encoding(space, native=native)
    bits = encoding.to_bits(space.enumerate_rows())
    for group in encoding.groups:
        assert (bits[:, group].sum(axis=1) == 1).all()


def test_groups_are_the_variables_of_more_than_two_values_that_are_not_binary_coded():
    encoding = Encoding(SPACES["mixed"])
    named = [{encoding.labels[c][0] for c in group} for group in encoding.groups]
    assert sorted(named, key=min) == [{"d"}, {"e"}]


def test_the_native_layout_has_a_group_for_binary_coded_variables_as_well():
    native = Encoding(SPACES["mixed"], native=True)
    named = [{native.labels[c][0] for c in group} for group in native.groups]
    assert sorted(named, key=min) == [{"a"}, {"c"}, {"d"}, {"e"}, {"g"}]
    assert [label for label in native.labels if label[0] == "a"] == [
        ("a", "a"),
        ("a", "b"),
        ("a", "c"),
    ]


def test_the_native_layout_is_the_same_without_binary_coded_variables():
    for name in ("binary", "one-hot", "path", "two values"):
        space = SPACES[name]
        assert Encoding(space, native=True).labels == Encoding(space).labels


@every_space
def test_blocks_of_the_two_layouts_correspond(space):
    plain, native = Encoding(space), Encoding(space, native=True)
    assert len(plain.blocks) == len(native.blocks)
    for a, b in zip(plain.blocks, native.blocks, strict=True):
        assert a.variables.tolist() == b.variables.tolist()
        assert (a.graph, a.size) == (b.graph, b.size)


@every_space
@both_layouts
def test_blocks_share_out_all_variables_and_all_bits(space, native):
    encoding = Encoding(space, native=native)
    variables = np.concatenate([b.variables for b in encoding.blocks])
    columns = np.concatenate([b.columns.ravel() for b in encoding.blocks])
    assert sorted(variables.tolist()) == list(range(len(space)))
    assert sorted(columns.tolist()) == list(range(encoding.width))


def test_a_binary_coded_variable_has_a_factor_per_bit_and_others_one():
    space = Space({"a": coded(5), "b": coded(3, "one-hot"), "c": Binary(), "d": coded(1)})
    encoding = Encoding(space)
    factors = {int(b.variables[0]): b.factors_each for b in encoding.blocks}
    assert factors == {0: 3, 1: 1, 2: 1, 3: 0}


def test_alike_variables_share_a_block():
    encoding = Encoding(Space({f"c{i}": coded(16, "one-hot") for i in range(40)}))
    assert len(encoding.blocks) == 1
    assert encoding.blocks[0].columns.shape == (40, 16)


def orders(*variables):
    encoding = Encoding(Space({f"v{i}": v for i, v in enumerate(variables)}))
    return encoding.alike.tolist(), [rank.tolist() for rank in encoding.ranks]


def test_variables_with_the_same_set_of_values_share_the_order_of_the_first():
    alike, ranks = orders(Categorical(["b", "c", "a"]), Categorical(["a", "b", "c"]), Binary())
    assert alike == [0, 0, 1]
    assert ranks == [[0, 1, 2], [2, 0, 1], [0, 1]]


def test_ordered_variables_share_an_order_only_if_it_is_the_same_or_reversed():
    alike, ranks = orders(Ordinal([1, 2, 3]), Ordinal([3, 2, 1]), Ordinal([2, 1, 3]))
    assert alike == [0, 0, 1]
    assert ranks == [[0, 1, 2], [2, 1, 0], [0, 1, 2]]


def test_binary_encoded_variables_share_an_order_only_if_it_is_the_same():
    letters, turned = list("ACGT"), list("TGCA")
    alike, ranks = orders(
        Categorical(letters, encoding="binary"),
        Categorical(turned, encoding="binary"),
        Categorical(letters),
        Categorical(turned),
    )
    assert alike == [0, 1, 0, 0]
    assert ranks == [[0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3], [3, 2, 1, 0]]


def test_variables_of_different_kinds_share_no_order():
    assert orders(Binary(), Categorical([0, 1]), Integer(0, 1), Ordinal([0, 1]))[0] == [0, 1, 2, 3]


# -- property ----------------------------------------------------------------------------------

VARIABLES = st.one_of(
    st.just(Binary()),
    st.builds(coded, st.integers(1, 17), st.sampled_from(["one-hot", "binary"])),
    st.builds(lambda k: Ordinal(range(k)), st.integers(1, 9)),
    st.builds(lambda k: Integer(1, k), st.integers(1, 9)),
)


@given(st.lists(VARIABLES, min_size=1, max_size=8), st.booleans(), st.integers(0, 2**32))
def test_rows_survive_the_way_to_bits_and_back(variables, native, seed):
    space = Space({f"v{i}": v for i, v in enumerate(variables)})
    encoding = Encoding(space, native=native)
    rows = space.sample_rows(6, rng=np.random.default_rng(seed))
    back, valid = encoding.from_bits(encoding.to_bits(rows))
    assert np.array_equal(back, rows)
    assert valid.all()
