"""The introduction: its box, its links, and its length."""

import re
from functools import cache

import pytest
from facts import from_table

from book.explorer import kernel_model_text
from book.principles import introduction
from book.serving import services
from book.synthesis import comparison
from inferlib import load_chip
from inferlib.system import System
from tokenprice import ask
from tokenprice.calibration import engine  # noqa: F401, rows.tsv

CASE = introduction.RUNNING.replace(price=2.0)
H100 = load_chip("H100 SXM")
SPEED, PRICE = "tokens/s for each user", "$ per million tokens"


@cache
def box():
    return introduction.one_token(CASE)


@from_table
def test_an_exchange_by_hand(chips, beyond, bandwidth):
    """80 layers exchange twice: 5 us and two vectors of 8,192 values each.

    One doubling beyond eight chips adds the fitted time of the engine's class, and the network is slower.
    """
    sent = 2 * (chips - 1) / chips * 100 * 8192 * 2
    found = box().evaluate(n_chips=chips, batch=100)
    assert found["waiting"] == pytest.approx(1e3 * 160 * (5e-6 + beyond + sent / bandwidth))


def test_the_speed_of_the_box_is_one_over_its_bars():
    found = box().evaluate(n_chips=8, batch=100)
    bars = sum(found[name] for name in ("weights", "cache", "waiting"))
    assert found[SPEED] == pytest.approx(1e3 / bars)


def test_the_price_of_the_box_is_rent_over_tokens():
    found = box().evaluate(n_chips=8, batch=100, price=2)
    assert found[PRICE] == pytest.approx(1e6 * 8 * 2 / 3600 / 100 / found[SPEED])


def test_the_box_opens_at_the_case_and_asks_the_kernel_model_the_same():
    at = box().state()
    assert (at["n_chips"], at["batch"], at["context"]) == (8, 32, 4096)


def sold():
    return introduction.offers(introduction.frontiers(CASE))


def test_the_three_offers_are_the_kernel_models():
    for at in sold().values():
        answer = ask(CASE.replace(machine=System(H100, int(at.chips)), batch=at.users))
        assert at.seconds == answer.seconds and at.usd == pytest.approx(answer.usd_per_million)


def test_a_chat_is_as_fast_as_it_is_promised():
    assert sold()["chat"].speed >= introduction.CHAT


def test_the_kernel_model_never_beats_the_simple_picture():
    edge = introduction.frontiers(CASE)
    top = edge.groupby("who").speed.max()
    assert top[introduction.KERNEL_MODEL] < top.drop(introduction.KERNEL_MODEL).min()


def test_the_kernel_models_row_is_its_answer():
    row = introduction.eight_or_sixteen(CASE).set_index("model").loc[introduction.KERNEL_MODEL]
    stages = ask(CASE.replace(machine="16x H100", layout="PP2 TP8"))
    assert row["two stages"].startswith(f"{1e3 * stages.seconds:.1f} ms ({1e3 * stages.low:.1f} to")


def test_who_does_not_describe_a_layout_says_nothing_of_it():
    table = introduction.eight_or_sixteen(CASE).set_index("model")
    assert set(table.loc["Mazurek & Schreiber 2025"].drop("beside")) == {"n/a"}


def test_a_case_that_does_not_fit_is_said_by_every_part_of_the_page():
    case = CASE.replace(model="GPT-3 175B", batch=64)
    answer = ask(case)
    for said in (
        introduction.in_three_lines(answer),
        kernel_model_text.kernel_model_sentence(case),
    ):
        assert "needs 1586 GB" in repr(said)
    assert "needs 1586 GB" in introduction.draw_answers(case, answer).texts[-1].get_text()


def test_what_does_not_fit_has_no_bar():
    tables = introduction.chips_and_users(CASE.replace(model="GPT-3 175B"))
    assert tables["chips"].n.min() == 8


def test_a_month_of_a_fleet_is_its_chips_at_the_price_of_the_list(monkeypatch):
    monkeypatch.setattr(services, "SERVICES", {"chat": services.SERVICES["chat"]})
    ((at,),) = services.offers(CASE.model, introduction.CHIPS, sure=(False,)).values()
    paid = at.fleet.chips * load_chip(at.system.chip.name).price * 730
    assert f"${paid:,.0f} a month" in services.machine_price(at)


def test_no_public_measurement_is_of_the_running_question_or_of_its_model_on_sixteen():
    rows = comparison.rows()
    assert comparison.row_of(CASE, rows) is None
    sixteen = rows[
        (rows.model == CASE.model.name) & rows.hardware.str.startswith("H100") & (rows.n_gpus == 16)
    ]
    assert sixteen.empty


def test_users_of_the_picture_the_step_and_the_request_are_the_most_at_fifty_tokens_a_second():
    served = introduction.REQUEST
    said = repr(introduction.users_at(served)).replace(",", "")
    picture, step = map(int, re.findall(r"(\d+) users", said))
    requests = int(re.search(r"and (\d+) if each", said)[1])
    for users, keeps in ((0, True), (1, False)):
        assert (box().evaluate(n_chips=8, batch=picture + users)[SPEED] >= 50) is keeps
        assert (ask(CASE.replace(batch=step + users)).speed >= 50) is keeps
        assert (ask(served.replace(concurrency=requests + users)).speed >= 50) is keeps
    assert 230 == pytest.approx(picture, rel=0.02)  # as the text says


def test_the_users_of_a_request_send_its_own_prompts():
    said = repr(introduction.users_at(introduction.REQUEST.replace(prompt_tokens=2048)))
    assert "a prompt of 2,048 tokens" in said
