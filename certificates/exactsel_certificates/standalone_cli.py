"""The second checker's command by its former name; ``python -m exactsel_certificates.standalone`` is the same."""

from __future__ import annotations

import sys

from exactsel_certificates.standalone.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
