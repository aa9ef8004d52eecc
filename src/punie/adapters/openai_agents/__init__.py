"""The engine on OpenAI's Agents SDK: its models, its items and its tools, with the tool desk behind every one of them.

`engine` and `settings` import nothing heavy; everything else here imports `agents` and `openai` and is loaded by
`OpenAiAgentsEngine.load`. What of the SDK is used and what is not: docs/decisions/0027.
"""
