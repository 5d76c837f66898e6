"""A real model, py3langid, in two replicas that outlive their supervisor.

The supervisor is stopped and another one started; the models stay loaded. Needs
`pip install 'zrecover[examples]'`.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable
from typing import Any

import zrecover

SENTENCES = {
    "The ferry to the islands leaves at six in the morning.": "en",
    "Die Fähre zu den Inseln fährt um sechs Uhr morgens ab.": "de",
    "Le bac pour les îles part à six heures du matin.": "fr",
    "El transbordador a las islas sale a las seis de la mañana.": "es",
    "Паром на острова отправляется в шесть часов утра.": "ru",
    "島へのフェリーは朝六時に出発します。": "ja",
}
loaded: list[str] = []


def load(replica: zrecover.Replica) -> Callable[[Any], dict[str, Any]]:
    """The factory: loads the model for one replica and returns its handler."""
    loaded.append(replica.uid)
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    classify = LanguageIdentifier.from_model_file(MODEL_FILE).classify

    def identify(text: Any) -> dict[str, Any]:
        language, _ = classify(text)
        return {"language": language, "replica": replica.uid}

    return identify


async def ask(client: zrecover.Client) -> None:
    async with asyncio.timeout(10):  # the client is told a moment after the supervisor knows
        while len(client.routes.get("langid", ())) < 2:
            await asyncio.sleep(0.005)
    answers = await asyncio.gather(
        *(client.call("langid", text, deadline=20, idempotent=True) for text in SENTENCES)
    )
    for (text, expected), answer in zip(SENTENCES.items(), answers, strict=True):
        print(f"  {answer['language']} by {answer['replica']}: {text}")
        assert answer["language"] == expected


async def main() -> None:
    async with zrecover.DiscoveryService("tcp://127.0.0.1:*") as discovery:
        endpoint = discovery.endpoint
        async with (
            zrecover.Worker(endpoint, worker_id="cpu-1") as first,
            zrecover.Worker(endpoint, worker_id="cpu-2") as second,
            zrecover.Client(endpoint) as client,
        ):
            began = time.monotonic()
            await asyncio.gather(
                *(
                    worker.load(zrecover.Replica("langid", index), load)
                    for worker, index in zip((first, second), itertools.count())
                )
            )
            print(f"two replicas loaded in {time.monotonic() - began:.1f} s")
            for name in ("first", "second"):
                async with zrecover.Supervisor(announce=endpoint, expect_workers=2) as supervisor:
                    report = await supervisor.wait_recovered(timeout=20)
                    print(f"the {name} supervisor has {', '.join(report.restored)}:")
                    await ask(client)
    print(f"loaded in all that time: {', '.join(sorted(loaded))}")
    assert sorted(loaded) == ["langid-rep0", "langid-rep1"]


if __name__ == "__main__":
    asyncio.run(main())
