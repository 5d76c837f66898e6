"""Why is it so? What happened, in time order, to whoever asks; bounded."""

from __future__ import annotations

import json

from tests.core.desk import Desk, register
from tests.core.driving import claim
from zrecover.core import inputs as on
from zrecover.core.evidence import Evidence
from zrecover.ids import Launch
from zrecover.wire import messages as m


def explain(desk: Desk, target: str | None) -> dict[str, object]:
    (result,) = desk.hear("s", m.Query("prod", 5, "explain", target)).to("s", m.Result)
    assert result.last
    answer: dict[str, object] = json.loads(result.body) if result.body else {"error": result.error}
    return answer


def sentences(answer: dict[str, object]) -> list[str]:
    rows = answer["evidence"]
    assert isinstance(rows, list)
    ages = [row["ago_s"] for row in rows]
    assert ages == sorted(ages, reverse=True)
    return [row["what"] for row in rows]


def test_V21_a_replica_is_explained_from_its_claim_to_its_route() -> None:
    desk = Desk().hear("p", register("w", claim("s-rep0", n_worker=2)))
    desk.now += 1.0
    answer = explain(desk, "s-rep0")
    told = sentences(answer)
    assert "claims shard 0 of 2 (sharded, READY); verdict ROUTES by sharded" in told[0]
    assert told[-1] == "not routed, INCOMPLETE: shard 1 of 2 is missing"
    assert isinstance(answer["replica"], dict)
    assert answer["worker"] is None
    desk.hear("q", register("v", claim("s-rep0", n_worker=2, shard=1)))
    assert sentences(explain(desk, "s-rep0"))[-1] == "routed, verdict ROUTES"
    desk.hear("q", m.Goodbye(desk.session("v"), "bye")).hear("p", m.Goodbye(desk.session("w"), "x"))
    assert sentences(explain(desk, "s-rep0"))[-1] == "nobody claims it any more"


def test_V21_a_worker_is_explained_through_silence_and_return() -> None:
    desk = Desk().hear("p", register("w", claim())).give(on.PeerGone("p"))
    desk.beat("w")
    told = sentences(explain(desk, "w"))
    assert told[-1] == "heard again"
    assert any("suspect after" in text for text in told)
    desk.pass_(17.0)
    assert "is lost after 16" in sentences(explain(desk, "w"))[-1]


def test_V21_what_is_not_known_is_said() -> None:
    desk = Desk()
    assert "nothing is known of 'x'" in str(explain(desk, "x")["error"])
    assert "called so yet: recovering, 0 workers are back" in str(explain(desk, "x")["error"])
    assert "say what to explain" in str(explain(desk, None)["error"])
    (result,) = desk.hear("s", m.Query("prod", 5, "nonsense")).to("s", m.Result)
    assert (
        result.error
        == "no query 'nonsense'; there are: status, explain, instances, events, progress, cache"
    )


def test_a_silent_worker_can_be_forgotten_by_hand_but_not_one_that_lives() -> None:
    desk = Desk().hear("p", register("w", claim()))

    def forget(worker: str) -> str:
        (result,) = desk.hear("s", m.Forget("prod", 1, worker)).to("s", m.Result)
        return result.error

    assert "is registered" in forget("x")
    assert "is alive" in forget("w")
    desk.give(on.PeerGone("p"))
    assert forget("w") == ""
    assert (desk.view.workers, desk.view.models) == ({}, {})
    desk.sound()


def test_P03_evidence_is_bounded_and_repeats_nothing() -> None:
    evidence = Evidence(notes=3, subjects=2)
    for number in range(5):
        evidence.note("a", float(number), "step {}", number)
        evidence.note("a", float(number), "step {}", number)
    assert [str(note) for note in evidence.of("a")] == ["step 2", "step 3", "step 4"]
    evidence.note("b", 6.0, "born")
    evidence.note("a", 7.0, "again")
    evidence.note("c", 8.0, "born")
    assert len(evidence) == 2
    assert list(evidence.of("b")) == [], "the one that was noted longest ago"
    assert len(list(evidence.of("a"))) == 3
    assert list(evidence.of("x")) == []


def test_V21_a_claim_that_loses_is_noted_once_and_again_when_it_loses_again() -> None:
    desk = Desk().hear("p", register("w", claim(launch=Launch(5, 1))))
    desk.hear("q", register("v", claim(launch=Launch(5, 2))))

    def lost() -> list[str]:
        return [text for text in sentences(explain(desk, "m-rep0")) if "is not used" in text]

    says = "the claim of worker w on shard 0 is not used, duplicate: launch 5.2 is preferred"
    (text,) = lost()
    assert text.startswith(says)
    assert sentences(explain(desk, "m-rep0"))[-1] == "routed, verdict FULL"
    for _ in range(3):  # judged anew, and nothing of it has changed
        desk.give(on.PeerGone("q"))
        desk.beat("v")
    assert len(lost()) == 1
    desk.hear("q", m.Goodbye(desk.session("v"), "bye"))
    desk.hear("q", register("v", claim(launch=Launch(5, 3)), incarnation=6))
    assert len(lost()) == 2
    desk.hear("q", m.Goodbye(desk.session("v"), "bye"))
    desk.hear("p", m.Goodbye(desk.session("w"), "bye"))
    assert sentences(explain(desk, "m-rep0"))[-1] == "nobody claims it any more"
    assert desk.core.evidence._lost == {}


def test_P03_conflicts_of_subjects_that_are_given_up_are_given_up_too() -> None:
    evidence = Evidence(subjects=1)
    desk = Desk().hear("p", register("w", claim(launch=Launch(5, 1))))
    desk.hear("q", register("v", claim(launch=Launch(5, 2))))
    evidence.judged("m-rep0", 1.0, desk.core.registry.replicas["m-rep0"])
    assert len(evidence._lost) == 1
    evidence.note("other", 2.0, "so")
    assert evidence._lost == {}
