"""Bytes to typed messages and back. Pure: no socket, clock, chance or log comes in."""
