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
    Row("echo", echo, ("echo $PATH => safe", "echo $AWS_SECRET_ACCESS_KEY => unknown"), plain=True),
    Row(
        "printf",
        printf,
        ('printf "%s\\n" one two three => safe', 'printf "%s\\n" "${OPENAI_API_KEY}" => unknown'),
        plain=True,
    ),
    Row("true false : pwd", nothing, ("* => safe",), plain=True),
    Row("test [", test, ("test => safe", "[ => unknown"), plain=True),
    Row("cd chdir pushd", cd, ("* src => safe: looks at src",), plain=True),
    Row(
        "popd dirs exit return break continue shift times logout caller",
        numbered,
        ("* code 0 => unknown", "* => safe"),
        plain=True,
    ),
    Row("wait jobs disown fg bg", jobbed, ('* -x sh -c "rm -rf ~/x" => unknown', "* => safe"), plain=True),
    Row("read", read, ("read FILE => safe", "read --version => dangerous: environment"), plain=True),
    Row(
        "export declare typeset readonly",
        export,
        ("* PROMPT_COMMAND='rm -rf ~/x' => dangerous: environment",),
        plain=True,
    ),
    Row("local", local, ("local x=1 => safe", "local $x => dangerous: environment"), plain=True),
    Row("set", setting, ("set -e => safe", "set -o vi => unknown", "set => dangerous: secrets"), plain=True),
    Row("shopt setopt", always(unknown("changes the shell")), ("* --version => unknown",)),
    Row("unset", unset, ("unset x => safe", "unset PATH => dangerous: environment"), plain=True),
    Row(
        "command builtin",
        which_command,
        (
            "* rm -rf ~/x => dangerous: deletes /home/me/x/**, writes /home/me/x",
            "* time -ao ~/.bashrc ls => unknown: writes /home/me/.bashrc, looks at .",
            "* -v ruff => safe",
        ),
        plain=True,
    ),
    Row("type", always(safe("looks a name up")), ("type ls => safe",), plain=True),
    Row("hash", hashed, ("hash => safe", "hash -p /x ls => dangerous: writes /x, environment"), looks="-r", plain=True),
    Row("eval", evaluate, ("eval rm -rf ~/x => dangerous: writes /home/me/x, deletes /home/me/x/**, runs code",)),
    Row("source .", source, ("* evil.sh => dangerous: reads evil.sh, environment, runs code", "* ' => unknown")),
    Row(
        "alias unalias",
        alias,
        ("alias => unknown", "unalias => safe", "unalias --version => dangerous: environment"),
        plain=True,
    ),
    Row("printenv", env_shown, ("printenv LANG => safe", "printenv => dangerous: secrets"), plain=True),
    Row(
        "trap",
        trap,
        (
            "trap => safe",
            "trap 'rm -rf ~/x' EXIT => dangerous: deletes /home/me/x/**, writes /home/me/x, runs code",
            "trap 'rm -rf /' EXIT => forbidden: deletes /**, writes /, runs code",
        ),
        plain=True,
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
    Row("kill", kill, ("kill -l => safe", "kill -9 -1 => dangerous: process"), plain=True),
    Row("umask", umask, ("umask => safe", "umask --version => ordinary"), plain=True),
    Row("ulimit", ulimit, ("ulimit => safe", "ulimit --version => ordinary"), plain=True),
    Row("let", always(unknown("computes")), ("let => unknown",)),
    Row("getopts", getopts, ("getopts ab: option => safe", "getopts ab: PATH => dangerous: environment"), plain=True),
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
    Row("help", always(safe("shows help")), ("help => safe",), plain=True),
)
