"""The shell's own commands."""

from __future__ import annotations

from shellsight.programs.builtins import (
    alias,
    cd,
    echo,
    env_shown,
    evaluate,
    execute,
    export,
    getopts,
    hashed,
    jobbed,
    kill,
    local,
    nothing,
    numbered,
    printf,
    read,
    setting,
    source,
    test,
    trap,
    ulimit,
    umask,
    unset,
    which_command,
)
from shellsight.programs.row import Row
from shellsight.report import Effect
from shellsight.words.call import always, dangerous, safe, unknown

ROWS = (
    Row("echo", echo, ("echo $PATH => safe", "echo $AWS_SECRET_ACCESS_KEY => unknown")),
    Row("printf", printf, ('printf "%s\\n" one two three => safe', 'printf "%s\\n" "${OPENAI_API_KEY}" => unknown')),
    Row("true false : pwd", nothing, ("* => safe",)),
    Row("test [", test, ("test => safe", "[ => unknown")),
    Row("cd chdir pushd", cd, ("* src => safe: looks at src",)),
    Row(
        "popd dirs exit return break continue shift times logout caller", numbered, ("* code 0 => unknown", "* => safe")
    ),
    Row("wait jobs disown fg bg", jobbed, ('* -x sh -c "rm -rf ~/x" => unknown', "* => safe")),
    Row("read", read, ("read FILE => safe", "read --version => dangerous: environment")),
    Row("export declare typeset readonly", export, ("* PROMPT_COMMAND='rm -rf ~/x' => dangerous: environment",)),
    Row("local", local, ("local x=1 => safe", "local $x => dangerous: environment")),
    Row("set", setting, ("set -e => safe", "set -o vi => unknown", "set => dangerous: secrets")),
    Row("shopt setopt", always(unknown("changes the shell")), ("* --version => unknown",)),
    Row("unset", unset, ("unset x => safe", "unset PATH => dangerous: environment")),
    Row(
        "command builtin",
        which_command,
        (
            "* rm -rf ~/x => dangerous: deletes /home/me/x/**, writes /home/me/x",
            "* time -ao ~/.bashrc ls => unknown: writes /home/me/.bashrc, looks at .",
            "* -v ruff => safe",
        ),
    ),
    Row("type", always(safe("looks a name up")), ("type ls => safe",)),
    Row("hash", hashed, ("hash => safe", "hash -p /x ls => dangerous: writes /x, environment"), looks="-r"),
    Row("eval", evaluate, ("eval rm -rf ~/x => dangerous: writes /home/me/x, deletes /home/me/x/**, runs code",)),
    Row("source .", source, ("* evil.sh => dangerous: reads evil.sh, environment, runs code", "* ' => unknown")),
    Row("alias unalias", alias, ("alias => unknown", "unalias => safe", "unalias --version => dangerous: environment")),
    Row("printenv", env_shown, ("printenv LANG => safe", "printenv => dangerous: secrets")),
    Row(
        "trap",
        trap,
        (
            "trap => safe",
            "trap 'rm -rf ~/x' EXIT => dangerous: deletes /home/me/x/**, writes /home/me/x, runs code",
            "trap 'rm -rf /' EXIT => forbidden: deletes /**, writes /, runs code",
        ),
    ),
    Row(
        "exec",
        execute,
        (
            "exec -c ./evil.sh => ordinary: reads evil.sh",
            "exec => unknown",
            "exec rm -rf ~/x => dangerous: deletes /home/me/x/**, writes /home/me/x",
        ),
    ),
    Row("kill", kill, ("kill -l => safe", "kill -9 -1 => dangerous: process")),
    Row("umask", umask, ("umask => safe", "umask --version => ordinary")),
    Row("ulimit", ulimit, ("ulimit => safe", "ulimit --version => ordinary")),
    Row("let", always(unknown("computes")), ("let => unknown",)),
    Row("getopts", getopts, ("getopts ab: option => safe", "getopts ab: PATH => dangerous: environment")),
    Row("mapfile readarray", always(unknown("fills variables")), ("* --version => unknown",)),
    Row(
        "history",
        always(dangerous("shows or changes the history of commands", (), Effect.SECRETS)),
        ("history => dangerous: secrets",),
    ),
    Row(
        "fc", always(dangerous("runs former commands", (), Effect.RUNS_CODE)), ("fc -s ls=rm => dangerous: runs code",)
    ),
    Row("enable", always(dangerous("changes what names mean", (), Effect.ENVIRONMENT)), ("enable -f x y => unknown",)),
    Row(
        "bind",
        always(dangerous("changes the shell", (), Effect.ENVIRONMENT)),
        ("bind -x '\"x\":rm -rf x' => dangerous: environment",),
    ),
    Row("suspend", always(unknown("stops the shell")), ("suspend => unknown",)),
    Row("help", always(safe("shows help")), ("help => safe",)),
)
