"""`python -m lastiterate.cli`."""

import sys

from lastiterate.cli.entry import main

sys.exit(main())
