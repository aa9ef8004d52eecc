"""Programs that run another command."""

from __future__ import annotations

from attrs import evolve

from shellsight.programs.row import Row
from shellsight.programs.wrapping import (
    entr,
    env,
    flock,
    parallel,
    script_of,
    su,
    sudo,
    valgrind,
    watch,
    with_other_rights,
    wrapper,
    xargs,
)
from shellsight.report import Effect, Standing
from shellsight.words.arguments import options
from shellsight.words.call import always, dangerous, unknown

ROWS = (
    Row(
        "valgrind",
        valgrind,
        (
            "valgrind --version => safe",
            "valgrind ./a.out => ordinary: reads a.out",
            "valgrind rm -rf ~/x => dangerous: deletes /home/me/x/**, writes /home/me/x",
            "valgrind rm -rf / => forbidden: deletes /**, writes /",
        ),
    ),
    Row(
        "env",
        env,
        (
            "env LC_ALL=C sort names.txt => safe: reads names.txt",
            "env ruff format src => ordinary: looks at format, looks at src, writes src/**",
            "env - rm -rf ~/x => unknown: writes /home/me/x",
            "env rm -rf ~/x => dangerous: deletes /home/me/x/**, writes /home/me/x",
        ),
    ),
    Row(
        "xargs",
        xargs,
        (
            "xargs -a list.txt ls -l => safe: reads list.txt",
            "xargs ruff check => unknown: reads (what xargs is fed)/**",
            "xargs -a .env echo => dangerous: reads .env, secrets",
        ),
        looks="--version",
        plain=True,
    ),
    Row("gxargs", xargs, ("gxargs => safe", "gxargs --version => unknown")),
    Row("parallel", parallel, ("parallel => dangerous", "parallel --version => safe"), looks="--version"),
    Row(
        "watch",
        watch,
        (
            "watch ls => ordinary: looks at .",
            "watch => unknown",
            "watch -n 1 'rm -rf x' => dangerous: deletes x/**",
            "watch rm -rf / => forbidden: deletes /**, writes /",
            "watch --version => safe",
        ),
        looks="--version",
    ),
    Row(
        "flock",
        flock,
        (
            "flock .lock ls => ordinary: writes .lock, looks at .",
            "flock .lock => unknown: writes .lock",
            "flock ~/.bashrc ls => dangerous: writes /home/me/.bashrc, looks at ., environment",
            "flock .lock -c 'rm -rf /' => forbidden: writes .lock, deletes /**, writes /",
        ),
    ),
    Row(
        "su",
        su,
        (
            'su -c "rm -rf ~/x" => dangerous: deletes /home/me/x/**, writes /home/me/x, privilege',
            "su -c 'rm -rf /' => forbidden: deletes /**, writes /, privilege",
        ),
    ),
    Row(
        "script",
        script_of,
        (
            "script ~/typescript -c ls => unknown: writes /home/me/typescript, looks at .",
            'script -qc "rm -rf ~/x" /dev/null => dangerous: deletes /home/me/x/**, writes /home/me/x',
            "script -c 'rm -rf /' out => forbidden: deletes /**, writes /",
        ),
    ),
    Row(
        "sudo",
        sudo,
        (
            "sudo rm -rf /var/www => dangerous: deletes /var/www/**, writes /var/www, privilege",
            "sudo --user=root --shell rm -rf / => forbidden: deletes /**, writes /, privilege",
        ),
    ),
    Row(
        "doas",
        with_other_rights(options(flags="nLs", values="uC", first=True)),
        ("doas rm -rf /var/www => dangerous: deletes /var/www/**, writes /var/www, privilege",),
    ),
    Row(
        "pkexec",
        with_other_rights(options(flags="--disable-internal-agent --keep-cwd", values="--user", first=True)),
        ("pkexec rm -rf /opt => forbidden: deletes /opt/**, writes /opt, privilege", "pkexec => dangerous: privilege"),
    ),
    Row(
        "runuser",
        with_other_rights(options(flags="lmp", values="ugGs --user", first=True)),
        ("runuser -u me -- rm -rf ~/x => dangerous: deletes /home/me/x/**, writes /home/me/x, privilege",),
    ),
    Row(
        "setpriv runas",
        with_other_rights(options(first=True)),
        ("* --reuid 0 rm -rf ~/x => dangerous: writes /home/me/x, deletes /home/me/x/**, privilege",),
    ),
    Row(
        "time",
        wrapper(options(flags="pvaq --portability --verbose", values="f --format", first=True), plain=True),
        (
            "time git status => safe: looks at .",
            "time ruff format src => ordinary: looks at format, looks at src, writes src/**",
            "time -p rm -rf ~/x => unknown",
            "time rm -rf ~/x => dangerous: deletes /home/me/x/**, writes /home/me/x",
        ),
    ),
    Row(
        "nice",
        wrapper(options(values="n --adjustment", first=True, digits=True), plain=True),
        (
            "nice grep -rn foo src => safe: reads src/**",
            "nice ruff format => ordinary: looks at format, writes ./**",
            "nice rm -rf ~/x => dangerous: deletes /home/me/x/**, writes /home/me/x",
        ),
    ),
    Row(
        "ionice",
        wrapper(options(flags="t", values="cn", first=True), plain=True),
        ("ionice -c3 => safe", "ionice -c3 rm -rf ~/x => dangerous: deletes /home/me/x/**, writes /home/me/x"),
    ),
    Row(
        "nohup",
        wrapper(options(first=True), floor=Standing.ORDINARY, reason="goes on after the session", plain=True),
        ("nohup ls => ordinary: looks at .", "nohup --version => unknown"),
    ),
    Row(
        "setsid",
        wrapper(
            options(flags="cfw --fork --wait --ctty", first=True),
            floor=Standing.ORDINARY,
            reason="goes on after the session",
        ),
        ("setsid => ordinary", "setsid rm -rf ~/x => dangerous: deletes /home/me/x/**, writes /home/me/x"),
    ),
    Row(
        "timeout gtimeout",
        wrapper(
            options(flags="v --foreground --preserve-status --verbose", values="ks --kill-after --signal", first=True),
            skip=1,
            plain=True,
        ),
        (
            "* 5 rm -rf ~/x => dangerous: deletes /home/me/x/**, writes /home/me/x",
            "* 10 git log --oneline -5 => safe: looks at ., reads ./**",
            "* --version => unknown",
        ),
    ),
    Row(
        "stdbuf",
        wrapper(options(values="ioe --input --output --error", first=True), plain=True),
        ("stdbuf -oL => safe", "stdbuf -oL rm -rf ~/x => dangerous: deletes /home/me/x/**, writes /home/me/x"),
    ),
    Row(
        "unbuffer",
        wrapper(options(flags="p", first=True)),
        ("unbuffer rm -rf ~/x => dangerous: deletes /home/me/x/**, writes /home/me/x", "unbuffer => safe"),
    ),
    Row(
        "chronic",
        wrapper(options(flags="ve", first=True)),
        ("chronic rm -rf ~/x => dangerous: deletes /home/me/x/**, writes /home/me/x", "chronic => safe"),
    ),
    Row(
        "caffeinate",
        wrapper(
            options(flags="dimsu", values="tw", first=True), floor=Standing.ORDINARY, reason="keeps the machine awake"
        ),
        ("caffeinate => ordinary", "caffeinate rm -rf ~/x => dangerous: deletes /home/me/x/**, writes /home/me/x"),
    ),
    Row(
        "taskset",
        wrapper(options(flags="ac", first=True), skip=1),
        (
            "taskset -cp 0 1234 => unknown",
            "taskset 1 rm -rf ~/x => dangerous: deletes /home/me/x/**, writes /home/me/x",
        ),
    ),
    Row(
        "chrt",
        wrapper(options(flags="bfioRrv", first=True), skip=1, floor=Standing.DANGEROUS, reason="changes the scheduler"),
        ("chrt -i 0 rm -rf ~/x => dangerous: deletes /home/me/x/**, writes /home/me/x",),
    ),
    Row(
        "strace",
        wrapper(
            options(flags="cCdfFhiknqrtTvVwxyYzZ", values="abeIoOpPsSuUX", first=True),
            floor=Standing.UNKNOWN,
            reason="traces a program",
        ),
        (
            "strace -o ~/trace ls => unknown: looks at .",
            "strace -f rm -rf ~/x => dangerous: deletes /home/me/x/**, writes /home/me/x",
        ),
    ),
    Row(
        "ltrace",
        wrapper(
            options(flags="cCfhiLrStTV", values="aAeFlnopsuwx", first=True),
            floor=Standing.UNKNOWN,
            reason="traces a program",
        ),
        ("ltrace rm -rf ~/x => dangerous: deletes /home/me/x/**, writes /home/me/x", "ltrace => unknown"),
    ),
    Row(
        "gdb",
        always(evolve(dangerous("runs a program under control"), inline_code=True)),
        ('gdb -batch -ex "shell rm -rf x" => dangerous',),
    ),
    Row(
        "chroot",
        wrapper(
            options(flags="--skip-chdir", values="--userspec --groups", first=True),
            skip=1,
            floor=Standing.DANGEROUS,
            reason="changes the root",
            effects=frozenset({Effect.PRIVILEGE}),
        ),
        (
            "chroot /x => dangerous: writes /x, privilege",
            "chroot / rm -rf /opt => forbidden: deletes /opt/**, writes /opt, privilege",
        ),
    ),
    Row(
        "unshare",
        wrapper(
            options(
                flags="cfimnpruUCT --map-root-user --fork --mount --net --pid --user --ipc --uts",
                values="RwSG --root",
                first=True,
            ),
            floor=Standing.DANGEROUS,
            reason="changes namespaces",
            effects=frozenset({Effect.PRIVILEGE}),
        ),
        ("unshare -r rm -rf ~/x => dangerous: deletes /home/me/x/**, writes /home/me/x, privilege",),
    ),
    Row(
        "nsenter",
        wrapper(
            options(flags="amuinpUCr", values="tSGw", first=True),
            floor=Standing.DANGEROUS,
            reason="changes namespaces",
            effects=frozenset({Effect.PRIVILEGE}),
        ),
        ("nsenter -t 1 -m sh => dangerous: privilege, runs code",),
    ),
    Row(
        "systemd-run",
        wrapper(
            options(flags="tPqrdGS --user --pty --wait --scope --collect", values="pEuM --unit --property", first=True),
            floor=Standing.DANGEROUS,
            reason="starts a service",
        ),
        ("systemd-run --user rm -rf ~/x => dangerous: deletes /home/me/x/**, writes /home/me/x",),
    ),
    Row(
        "firejail",
        wrapper(options(first=True), floor=Standing.UNKNOWN, reason="runs in a sandbox"),
        ("firejail rm -rf ~/x => dangerous: deletes /home/me/x/**, writes /home/me/x", "firejail => unknown"),
    ),
    Row(
        "proxychains",
        wrapper(options(flags="q", values="f", first=True), floor=Standing.DANGEROUS, reason="reaches the network"),
        ("proxychains => dangerous",),
    ),
    Row(
        "torsocks",
        wrapper(options(first=True), floor=Standing.DANGEROUS, reason="reaches the network"),
        ("torsocks => dangerous",),
    ),
    Row(
        "busybox",
        wrapper(options(flags="--list --install --list-full", first=True)),
        ("busybox => safe", "busybox rm -rf ~/x => dangerous: deletes /home/me/x/**, writes /home/me/x"),
    ),
    Row(
        "toybox",
        wrapper(options(flags="--long", first=True)),
        ("toybox rm -rf ~/x => dangerous: deletes /home/me/x/**, writes /home/me/x", "toybox => safe"),
    ),
    Row("gnome-terminal", always(unknown("opens a terminal")), ("gnome-terminal => unknown",)),
    Row(
        "entr",
        entr,
        (
            "entr make test => ordinary: looks at test",
            'entr -s "$x" => dangerous',
            "entr -cs 'rm -rf /' => forbidden: deletes /**, writes /",
        ),
    ),
    Row(
        "dotenv",
        wrapper(
            options(values="f", first=True), floor=Standing.DANGEROUS, reason="runs with secrets in the environment"
        ),
        ("dotenv => dangerous",),
    ),
    Row(
        "direnv",
        always(dangerous("runs the folder's own settings")),
        ("direnv allow => dangerous", "direnv --version => safe"),
        looks="--version",
    ),
    Row(
        "doppler",
        always(dangerous("runs with secrets in the environment", (), Effect.SECRETS)),
        ("doppler => dangerous: secrets",),
    ),
    Row("coproc", wrapper(options(first=True)), ("coproc rm -rf ~/x => unknown",)),
)
