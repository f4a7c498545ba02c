"""For every test: Ctrl-C is heard, also where the tests were started in the background, whose children ignore it."""

from __future__ import annotations

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
