"""What holds for all tests: a slow machine is no failure of a property, and Ctrl-C is heard.

What a shell starts in the background ignores Ctrl-C, and so would all that the tests start.
"""

from __future__ import annotations

import signal

from hypothesis import HealthCheck, settings

settings.register_profile("zrecover", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("zrecover")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
