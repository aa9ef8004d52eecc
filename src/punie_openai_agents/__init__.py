"""An engine plug-in: OpenAI's Agents SDK brings the model, and Punie's tool desk brings the tools.

`engine` imports nothing heavy; every other module imports `agents` and `openai`, and is loaded with the model. Which
parts of the SDK are used: docs/decisions/0027.
"""
