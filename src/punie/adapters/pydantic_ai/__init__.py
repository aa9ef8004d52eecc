"""Pydantic AI: any model that library knows, streamed, with the tool desk as its only toolset.

`variables` imports nothing heavy; everything else here imports `pydantic_ai`, and is loaded with the model.
"""
