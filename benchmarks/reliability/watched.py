"""``python -m benchmarks.reliability.watched``: the command line, which says on SIGUSR1 where its threads stand.

Nothing else is imported before it, so that a signal finds it as it finds ``python -m exactsel``.
"""

import faulthandler
import signal

if __name__ == "__main__":
    if hasattr(faulthandler, "register"):
        faulthandler.register(signal.SIGUSR1, all_threads=True)
    from exactsel.cli.main import main

    main()
