"""What zrecover costs, as ratios against bare pyzmq that moves the same bytes in the same run.

One file a benchmark, `bNN_….py`; each prints its JSON lines when it is run by itself, and
`scripts/bench` runs several. Whatever is measured are real sockets, cores and processes; a machine
that is busy with other things changes both sides of a ratio, so the runs of both alternate and
medians are compared.

What may not come in: numbers of one machine. A budget is a ratio wherever it can be one.
"""
