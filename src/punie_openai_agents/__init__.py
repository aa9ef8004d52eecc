"""An engine plug-in: OpenAI's Agents SDK brings the model, and Punie's tool desk brings the tools.

`engine` imports nothing heavy; every other module imports `agents` and `openai` and is loaded by
`OpenAiAgentsEngine.load`. Which parts of the SDK are used: docs/decisions/0027.
"""
