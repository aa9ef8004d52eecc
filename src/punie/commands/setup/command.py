"""`punie setup`: our entry in an IDE's file, and the model with its key."""

from __future__ import annotations

from punie.commands.flags import Commands, add_mode, add_model, new_action, new_actions

_IDES = {"jetbrains": "PyCharm, IntelliJ IDEA and the others", "zed": "Zed"}


def add(commands: Commands) -> None:
    """Declare the command with its flags."""
    actions = new_actions(commands, "setup", "make Punie known to your IDE")
    for key, label in _IDES.items():
        help_text = f"write Punie into the agents of {label}; all else there stays"
        ide = new_action(actions, key, help_text, "setup.ide:run_ide_setup", key, as_json=True)
        ide.add_argument("--remove", action="store_true", help="take Punie out again, with the switches that it set")
        ide.add_argument("--dry-run", action="store_true", help="show the change and write nothing")
        ide.add_argument("--name", metavar="N", default="punie", help="what the IDE calls it (default: punie)")
        add_model(ide)
        add_mode(ide)
    run = "setup.model:run_model_setup"
    model = new_action(actions, "model", "choose a model, try it, and keep its key", run, as_json=True)
    model.add_argument("--provider", metavar="P", help="openai-chat, anthropic, google, ollama and so on")
    model.add_argument("--model", metavar="M", help="provider:name, or the name alone behind --provider")
    model.add_argument("--base-url", metavar="URL", help="the address of a server of your own, such as http://host/v1")
    model.add_argument("--name", metavar="N", help="what to call that server; its models are N:name (default: own)")
    key = model.add_mutually_exclusive_group()
    key.add_argument("--key-env", metavar="VAR", help="keep the key that this variable holds now")
    key.add_argument("--key-stdin", action="store_true", help="keep the key that the first line of stdin is")
    key.add_argument("--forget", action="store_true", help="keep no key any more: of --provider or --model, or of any")
    model.add_argument("--yes", action="store_true", help="keep it also where it does not work yet")
