"""The parts of the OpenAI-compatible stub server; `tests.stub_openai` is its front."""
