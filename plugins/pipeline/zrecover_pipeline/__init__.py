"""Kind `pipeline`: shards are stages with names, and come back in the declared order.

A detector whose output goes to a recogniser: with the two swapped, every answer is wrong and
nothing fails. So each shard says which stage it is and what the order is, and one that
contradicts the others is named and the whole refused.
"""

from __future__ import annotations

from zrecover_pipeline.plugin import KIND, Pipeline
from zrecover_pipeline.stages import stage_table

__all__ = ["KIND", "Pipeline", "stage_table"]
