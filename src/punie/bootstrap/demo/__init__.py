"""`punie demo`: the main job on one screen, with a small IDE, its own tools, a person and a real agent process."""

from __future__ import annotations

from punie.bootstrap.demo.run import run_demo

__all__ = ["run_demo"]
