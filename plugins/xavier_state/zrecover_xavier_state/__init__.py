"""Kind `xavier_state`: the rank table and the store address survive the supervisor.

Each shard knows its own rank, how many ranks there are and where their store is. Its worker
carries that with every replay; with all shards of one launch there, the supervisor serves the
whole table again. A shard that contradicts the others is named, and the group refused: half
a table is worse than none.
"""

from __future__ import annotations

from zrecover_xavier_state.plugin import KIND, XavierState
from zrecover_xavier_state.providing import forget, provide
from zrecover_xavier_state.table import Seat, rank_table

__all__ = ["KIND", "Seat", "XavierState", "forget", "provide", "rank_table"]
