# SPDX-License-Identifier: Apache-2.0
"""The ids of `data.tokenizer=words` in plain Python: docs/text.md has the rules."""
import array
import collections

SPECIAL = 4  # <pad>, <unk>, <sos>, <eos>
UNKNOWN = 1


def words_of(path):
    with open(path, encoding="utf-8", newline="") as text:
        return text.read().lower().split()


def vocabulary_of(words, rows):
    """{word: id}: the most frequent first; among equals, the first seen."""
    common = collections.Counter(words).most_common(rows - SPECIAL)
    return {word: SPECIAL + i for i, (word, _) in enumerate(common)}


def ids_of(words, vocabulary):
    return array.array("q", (vocabulary.get(word, UNKNOWN) for word in words))


def read(train, valid, rows):
    """The ids of both texts, with the vocabulary of the first."""
    words = words_of(train)
    vocabulary = vocabulary_of(words, rows)
    return ids_of(words, vocabulary), ids_of(words_of(valid), vocabulary)
