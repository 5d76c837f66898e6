# ruff: noqa: RUF001 - whole sentences of many languages look alike to it
"""The drill's model: py3langid, a real one, with sentences whose language is known.

Every answer says which process gave it and when that replica's model was loaded, so that a
reload cannot go unseen. Nothing else of the drill may come in: workers import this module.
"""

from __future__ import annotations

import os
import time
import unicodedata
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Final

from zrecover.model import Replica

__all__ = ["MODEL", "SENTENCES", "SHARDED", "installed", "load", "load_nothing", "load_shard"]

MODEL: Final = "lang"
"""What the drill's replicas are replicas of."""

SHARDED: Final = "halves"
"""The same model, cut in two shards."""

SENTENCES: Final[tuple[tuple[str, str], ...]] = (
    ("The train to the coast leaves at seven and arrives shortly before noon.", "en"),
    ("Der Zug nach Hamburg fährt heute leider zwanzig Minuten später ab.", "de"),
    ("Le train pour Marseille part ce soir avec vingt minutes de retard.", "fr"),
    ("El tren hacia Sevilla sale esta noche con veinte minutos de retraso.", "es"),
    ("Il treno per Firenze parte questa sera con venti minuti di ritardo.", "it"),
    ("O comboio para o Porto parte hoje com vinte minutos de atraso.", "pt"),
    ("De trein naar Utrecht vertrekt vandaag met twintig minuten vertraging.", "nl"),
    ("Pociąg do Krakowa odjeżdża dziś z dwudziestominutowym opóźnieniem.", "pl"),
    ("Tåget till Göteborg avgår i dag tjugo minuter försenat.", "sv"),
    ("Juna Tampereelle lähtee tänään kaksikymmentä minuuttia myöhässä.", "fi"),
    ("Ankara treni bugün yirmi dakika gecikmeli olarak kalkıyor.", "tr"),
    ("Vlak do Brna dnes odjíždí s dvacetiminutovým zpožděním.", "cs"),
    ("A szegedi vonat ma húsz perc késéssel indul az állomásról.", "hu"),
    ("Поезд в Петербург сегодня отправляется с опозданием на двадцать минут.", "ru"),
    ("Το τρένο για τη Θεσσαλονίκη φεύγει σήμερα με είκοσι λεπτά καθυστέρηση.", "el"),
    ("大阪行きの電車は今日二十分遅れて出発します。", "ja"),
    ("今天开往上海的火车晚点二十分钟才出发。", "zh"),
    ("يغادر القطار إلى القاهرة اليوم متأخرا عشرين دقيقة.", "ar"),
)
"""Whole sentences, each with the language that the model has to answer."""

Handler = Callable[..., dict[str, Any]]


def installed() -> bool:
    """True where py3langid can be imported."""
    return find_spec("py3langid") is not None


def load(replica: Replica) -> Handler:
    """Load the model for one replica; the handler takes `{"text": …}`."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    classify = LanguageIdentifier.from_model_file(MODEL_FILE).classify
    loaded = _loaded(replica)

    def answer(payload: Any) -> dict[str, Any]:
        language, _ = classify(payload["text"])
        return {"language": language, **loaded}

    return answer


def load_shard(replica: Replica) -> Handler:
    """Load one half: shard 0 finds the features of a text, shard 1 knows their weights.

    Neither can do the other's work, so an answer is right only if the shards stand in order.
    """
    import numpy
    from py3langid.langid import MODEL_FILE, LanguageIdentifier, visit_counts

    model = LanguageIdentifier.from_model_file(MODEL_FILE)
    loaded = _loaded(replica)

    if replica.shard == 0:
        moves, output = model.tk_nextmove, model.tk_output
        rows = [row << 8 for row in model.tk_row]

        def features(payload: Any, context: Any) -> dict[str, Any]:
            text = unicodedata.normalize("NFC", payload["text"]).encode()
            found = visit_counts(moves, rows, output, text) or {}
            features = [[int(feature), int(times)] for feature, times in found.items()]
            other = context.shard(1).call({"features": features}, idempotent=True)
            newest = max(loaded["loaded_ns"], other["loaded_ns"])
            return {**loaded, "language": other["language"], "loaded_ns": newest}

        return features

    weights, priors, classes = model.nb_ptc, model.nb_pc, model.nb_classes

    def weigh(payload: Any) -> dict[str, Any]:
        places, times = zip(*payload["features"], strict=True)
        scores = numpy.log1p(numpy.asarray(times, dtype="float32")) @ weights[list(places)] + priors
        return {**loaded, "language": classes[int(scores.argmax())]}

    return weigh


def load_nothing(replica: Replica) -> Handler:
    """A replica without a model: what matters is only that somebody holds it."""
    return lambda payload: {"uid": replica.uid}


def _loaded(replica: Replica) -> dict[str, Any]:
    """Which process has just loaded what, and when: the same in every answer."""
    return {"uid": replica.uid, "pid": os.getpid(), "loaded_ns": time.time_ns()}
