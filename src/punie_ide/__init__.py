"""The reference IDE: an ACP client for the demo, for the examples, and for the tests of IDE plug-ins.

`reference.ReferenceIde` is the client, `reference.start_ide` starts an agent for it, and `tools.IdeTool` is one tool of
the IDE. Files and programs are given as the ports `Workspace` and `Terminals`.
"""
