"""The reference IDE: an ACP client for the demo, the examples, and the tests of people who write IDE plugins.

`reference.ReferenceIde` is the client, `reference.start_ide` starts an agent for it, `tools.IdeTool` is one tool of
the IDE's own. Files and programs are handed in as the ports `Workspace` and `Terminals`.
"""
