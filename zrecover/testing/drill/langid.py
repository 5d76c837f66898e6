# ruff: noqa: RUF001 - whole sentences of many languages look alike to it
"""The drill's model: py3langid, a real one, with sentences whose language is known.

Every answer says which process gave it and when that replica's model was loaded, so that a
reload cannot go unseen. Nothing else of the drill may come in: workers import this module.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Final

from zrecover.model import Replica

__all__ = ["MODEL", "SENTENCES", "installed", "load", "load_nothing"]

MODEL: Final = "lang"
"""What the drill's replicas are replicas of."""

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

Handler = Callable[[Any], dict[str, Any]]


def installed() -> bool:
    """True where py3langid can be imported."""
    return find_spec("py3langid") is not None


def load(replica: Replica) -> Handler:
    """Load the model for one replica; the handler takes `{"text": …}`."""
    began = time.monotonic()
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    classify = LanguageIdentifier.from_model_file(MODEL_FILE).classify
    loaded = {
        "uid": replica.uid,
        "pid": os.getpid(),
        "loaded_ns": time.time_ns(),
        "load_s": round(time.monotonic() - began, 3),
    }

    def answer(payload: Any) -> dict[str, Any]:
        language, _ = classify(payload["text"])
        return {"language": language, **loaded}

    return answer


def load_nothing(replica: Replica) -> Handler:
    """A replica without a model: what matters is only that somebody holds it."""
    return lambda payload: {"uid": replica.uid}
