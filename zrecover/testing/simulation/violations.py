"""What a history raises when something that always holds does not."""

from __future__ import annotations

__all__ = ["Violation"]


class Violation(AssertionError):
    """`rule` names what was broken; the text says how."""

    def __init__(self, rule: str, text: str) -> None:
        super().__init__(f"{rule}: {text}")
        self.rule = rule
