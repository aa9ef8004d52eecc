"""The allow-list contract that import-linter does not have: a source may import these libraries and nothing else.

A deny-list rots, for a library that nobody listed passes it. Direct imports are checked; indirect ones need no check,
since the layers contract already keeps these rooms from importing anything of ours that is allowed more.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, cast

from importlinter import Contract, ContractCheck, fields, output
from importlinter.domain.helpers import module_expressions_to_modules

if TYPE_CHECKING:
    from grimp import ImportGraph
    from importlinter.domain.imports import ModuleExpression

# Standard library modules that compute and do nothing else: no files, sockets, processes, threads, clocks, randomness.
# pathlib and urllib are here for their pure parts alone; tests/architecture/test_narrow_imports.py holds them to that.
PURE_STDLIB = frozenset({
    "__future__", "abc", "base64", "binascii", "bisect", "cmath", "collections", "contextlib", "copy", "dataclasses",
    "datetime", "decimal", "difflib", "enum", "fnmatch", "fractions", "functools", "graphlib", "hashlib", "heapq",
    "html", "ipaddress", "itertools", "json", "keyword", "math", "numbers", "operator", "pathlib", "posixpath", "re",
    "reprlib", "shlex", "statistics", "string", "struct", "textwrap", "types", "typing", "unicodedata", "urllib",
    "zlib",
})  # fmt: skip


class AllowListContract(Contract):
    """`source_modules` and all below them import, besides our own code, what `allowed` and `pure_stdlib` name."""

    type_name = "allow_list"

    source_modules = fields.SetField(subfield=fields.ModuleExpressionField())
    allowed = fields.SetField(subfield=fields.StringField(), required=False)
    pure_stdlib = fields.BooleanField(required=False, default=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """List every direct import of a library that is not allowed."""
        # The fields are descriptors without types: import-linter puts the parsed values in their place.
        allowed = cast("set[str]", self.allowed or set())
        sources = cast("set[ModuleExpression]", self.source_modules)
        known = allowed | PURE_STDLIB if self.pure_stdlib else allowed
        foreign: list[tuple[str, str, int]] = []
        for source in module_expressions_to_modules(graph, sources):
            for importer in sorted({source.name} | graph.find_descendants(source.name)):
                for imported in sorted(graph.find_modules_directly_imported_by(importer)):
                    if graph.is_module_squashed(imported) and imported.split(".")[0] not in known:
                        details = graph.get_import_details(importer=importer, imported=imported)
                        foreign.append((importer, imported, details[0]["line_number"]))
        return ContractCheck(kept=not foreign, metadata={"foreign": foreign})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """One line an import, with its place and the way out."""
        for importer, imported, line in check.metadata["foreign"]:
            kind = "does I/O or keeps state" if imported in sys.stdlib_module_names else "is a library"
            output.print_error(
                f"- {importer} imports {imported} (l.{line}), which {kind}: put it behind a port.", bold=False
            )
