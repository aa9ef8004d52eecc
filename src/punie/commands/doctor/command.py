"""`punie doctor`: whether all that a session needs is there."""

from __future__ import annotations

from punie.commands.flags import Commands, add_cwd, add_json, new_command


def add(commands: Commands) -> None:
    """Declare the command with its flags."""
    doctor = new_command(
        commands, "doctor", "check all that a session needs, and say what to do", "doctor.run:run_doctor"
    )
    add_json(doctor)
    add_cwd(doctor)
    doctor.add_argument("--offline", action="store_true", help="ask nobody over a network: no model, no HTTP server")
    doctor.add_argument("--call-tool", action="store_true", help="let the model call one tool: two requests")
