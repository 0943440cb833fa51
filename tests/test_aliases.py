"""Option names of other programs, and of earlier versions, ask the same question."""

from facts import from_table

from tokenprice import ask, decide
from tokenprice.aliases import ALIASES, REFUSED
from tokenprice.question import SLO, Question

MODEL, BOX = "Llama 3 8B", "H100"
OWN = {
    "prompt_tokens": "2k",
    "output_tokens": 300,
    "concurrency": 16,
    "kv_cache_dtype": "fp8",
    "weights": "fp8",
}


@from_table
def test_words_of_other_programs_ask_the_same(words):
    assert ask(MODEL, BOX, **words).to_dict() == ask(MODEL, BOX, **OWN).to_dict()


def test_every_alias_means_an_option_and_none_is_one():
    names = {*Question.names(), *SLO.names()}
    assert set(ALIASES.values()) <= names and not names & {*ALIASES, *REFUSED}


@from_table
def test_decide_reads_them_too(asked):
    (question, words), few = asked, {"chips": "H100", "counts": 1}
    own = decide(MODEL, prompt_tokens=500, output_tokens=100, tpot="30 ms", **few)
    assert str(decide(*question, **words, token="30 ms", **few)) == str(own)
