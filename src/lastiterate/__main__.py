"""Entry point of `python -m lastiterate`."""

import sys

from lastiterate.cli import main

sys.exit(main())
