"""Whether standard input is CycloneDX in JSON, of the version given; run by the release's own interpreter."""

from __future__ import annotations

import importlib
import sys
from typing import Any

if __name__ == "__main__":
    schema: Any = importlib.import_module("cyclonedx.schema")  # by name: our own environment has it not
    validation: Any = importlib.import_module("cyclonedx.validation.json")
    version = schema.SchemaVersion.from_version(sys.argv[1])
    fault = validation.JsonStrictValidator(version).validate_str(sys.stdin.read())
    sys.exit(f"not CycloneDX {sys.argv[1]}: {str(fault)[:1000]}" if fault else 0)
