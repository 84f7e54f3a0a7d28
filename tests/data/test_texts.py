from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unswayed.data.texts import Paths, Texts, are_distinct, texts_of
from unswayed.randomness import keys_of

WORDS = st.lists(st.text(st.characters(), max_size=6), max_size=12)  # surrogates among them


@given(WORDS, st.slices(12))
def test_texts_are_read_as_from_a_list(words, which):
    texts = Texts(words)
    assert len(texts) == len(words)
    assert list(texts) == words
    assert texts == words
    assert texts == Texts(words)
    assert texts != [*words, "more"]
    assert [texts[row] for row in range(-len(words), len(words))] == words + words
    assert list(texts[which]) == words[which]
    again = Texts.from_arrays(*texts.arrays())
    assert again == texts
    again.append("more")
    assert again == [*words, "more"]


def test_a_row_that_is_not_there_is_an_error():
    with pytest.raises(IndexError):
        Texts(["a"])[1]


def test_keys_are_those_of_the_texts_and_follow_them():
    texts = Texts(["a", "ä"])
    assert texts.keys.tolist() == keys_of(["a", "ä"]).tolist()
    texts.append("b")
    assert texts.keys.tolist() == keys_of(["a", "ä", "b"]).tolist()
    assert texts_of(texts) is texts


@given(st.lists(st.text("ab", max_size=4), max_size=12))
def test_equal_texts_are_found(some):
    one, other = Texts(some[::2]), Texts(some[1::2])
    assert are_distinct(one, other) == (len(set(some)) == len(some))


def test_texts_whose_keys_are_equal_by_chance_are_compared():
    texts = Texts(["a", "b"])
    texts._keys = np.zeros(2, np.uint64)
    assert are_distinct(texts)
    texts = Texts(["a", "a"])
    texts._keys = np.zeros(2, np.uint64)
    assert not are_distinct(texts)


def test_a_text_takes_its_letters_and_eight_bytes():
    texts = Texts(f"images/{number:07d}.jpg" for number in range(10_000))
    letters, ends = texts.arrays()
    assert letters.nbytes == 10_000 * len("images/0000000.jpg")
    assert ends.nbytes == 80_000


def test_paths_lie_below_their_folder(tmp_path):
    paths = Paths(tmp_path, Texts(["a.png", "b/c.png", "d.png"]))
    assert list(paths) == [tmp_path / "a.png", tmp_path / "b" / "c.png", tmp_path / "d.png"]
    assert list(paths[1:]) == [tmp_path / "b" / "c.png", tmp_path / "d.png"]
    assert list(paths.take(np.array([2, 0]))) == [tmp_path / "d.png", tmp_path / "a.png"]
    assert paths.take(np.arange(3)) is paths
