"""The state machines: an input and `now` go in, effects and a next deadline come out.

What may not come in: sockets, threads, clocks, chance (it is injected), logs. Losing the
transport is an input, not an exception; an input that a machine's table does not allow
changes nothing.
"""
