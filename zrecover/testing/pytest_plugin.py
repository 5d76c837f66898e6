"""Fixtures for plugin authors and embedders; pytest finds them once zrecover is installed.

Nothing of zrecover is imported before a test asks for a fixture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from zrecover.testing.blocking_cluster import BlockingCluster
    from zrecover.testing.recorder import Recorder


@pytest.fixture
def zrecover_cluster(tmp_path: Path) -> Iterator[BlockingCluster]:
    """A cluster of real processes, with discovery running; factories are found in `tmp_path`.

    Start supervisors and workers in it, kill them, and wait for a view.
    """
    from zrecover.testing.blocking_cluster import BlockingCluster

    with BlockingCluster(cwd=tmp_path) as cluster:
        cluster.start_discovery()
        yield cluster


@pytest.fixture
def zrecover_recorder() -> Callable[[], Recorder]:
    """Makes recorders: plugins that keep the events of one Supervisor or Worker.

    `Supervisor(…, plugins=Plugins(given={"recorder": recorder}))`
    """
    from zrecover.testing.recorder import Recorder

    return Recorder
