"""`python -m punie`."""

import sys

from punie.cli import main

sys.exit(main())
