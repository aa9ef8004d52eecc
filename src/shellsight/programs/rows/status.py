"""Programs that show the state of the machine."""

from __future__ import annotations

from shellsight.programs.filters import date, hostname, lsof, netstat, ps, ss, who
from shellsight.programs.row import Row
from shellsight.words.form import Operands, form

ROWS = (
    Row(
        "netstat",
        netstat,
        (
            "netstat -tlnp => safe",
            "netstat -rn => safe",
            "netstat -a => unknown: network",
            "netstat -n evil.example => unknown",
        ),
        plain=True,
    ),
    Row(
        "ss",
        ss,
        (
            "ss -ltn => safe",
            "ss -tn state established '( dport = :443 or sport = :ssh )' => safe",
            "ss dst leak.evil.example => unknown: network",
            "ss -tr => unknown",
            "ss -K dst 10.0.0.1 => unknown",
        ),
        plain=True,
    ),
    Row("lsmod", form(operands=Operands.NONE), ("lsmod => safe", "lsmod --version => unknown"), plain=True),
    Row(
        "lspci", form(flags="vnkt", operands=Operands.NONE), ("lspci => safe", "lspci --version => unknown"), plain=True
    ),
    Row("lsusb", form(flags="vt", operands=Operands.NONE), ("lsusb => safe", "lsusb --version => unknown"), plain=True),
    Row(
        "last",
        form(flags="adFix", values="n", operands=Operands.TEXT, digits=True),
        ("last -5 => safe", "last -f /etc/shadow => unknown: writes /etc/shadow"),
        plain=True,
    ),
    Row(
        "top", form(flags="bHic", values="npduol", operands=Operands.TEXT), ("top => safe", "top --version => unknown")
    ),
    Row(
        "htop",
        form(flags="C", values="du", operands=Operands.NONE),
        ("htop => safe", "htop a.txt => unknown"),
        looks="--version",
        plain=True,
    ),
    Row(
        "iostat",
        form(flags="cdhkmNptxyz", operands=Operands.TEXT, digits=True),
        ("iostat => safe", "iostat --version => unknown"),
        plain=True,
    ),
    Row(
        "mpstat",
        form(flags="A", values="P", operands=Operands.TEXT),
        ("mpstat => safe", "mpstat --version => unknown"),
        plain=True,
    ),
    Row(
        "clear",
        form(flags="x", values="T", operands=Operands.NONE),
        ("clear => safe", "clear --version => unknown"),
        plain=True,
    ),
    Row(
        "df",
        form(
            flags=(
                "aBhHiklPTmvg --all --human-readable --inodes --local --no-sync --portability --print-type "
                "--si --total --help --version"
            ),
            values="tx --type --exclude-type --block-size",
            optional="--output",
            operands=Operands.LOOK,
        ),
        ("df -h . => safe: looks at .",),
        plain=True,
    ),
    Row(
        "sleep groups whatis apropos",
        form(flags="--help --version", operands=Operands.TEXT),
        ("* 1 => safe", "* --foo => unknown"),
        plain=True,
    ),
    Row(
        "uname",
        form(
            flags=(
                "asnrvmpio --all --kernel-name --nodename --kernel-release --kernel-version --machine "
                "--processor --hardware-platform --operating-system --help --version"
            ),
            operands=Operands.NONE,
        ),
        ("uname -a => safe", "uname a.txt => unknown"),
        plain=True,
    ),
    Row(
        "arch whoami logname",
        form(flags="--help --version", operands=Operands.NONE),
        ("* => safe", "* a.txt => unknown"),
        plain=True,
    ),
    Row(
        "nproc",
        form(flags="--all --help --version", values="--ignore", operands=Operands.NONE),
        ("nproc => safe", "nproc a.txt => unknown"),
        plain=True,
    ),
    Row(
        "id",
        form(flags="agGnruz --user --group --groups --name --real --zero --help --version", operands=Operands.TEXT),
        ("id => safe", "id -l a.txt => unknown"),
        plain=True,
    ),
    Row("who", who, ("who => safe",), plain=True),
    Row("w", form(flags="hsfoi", operands=Operands.TEXT), ("w => safe", "w --version => unknown"), plain=True),
    Row(
        "uptime",
        form(flags="ps --pretty --since --help --version", operands=Operands.NONE),
        ("uptime => safe", "uptime a.txt => unknown"),
        plain=True,
    ),
    Row(
        "free",
        form(
            flags="bkmghtlw --human --total --wide --mega --giga --si --help --version",
            values="sc",
            operands=Operands.NONE,
        ),
        ("free -m => safe", "free a.txt => unknown"),
        plain=True,
    ),
    Row(
        "vmstat",
        form(flags="anfsdDSw --help --version", operands=Operands.TEXT),
        ("vmstat => safe", "vmstat -l a.txt => unknown"),
        plain=True,
    ),
    Row(
        "lscpu",
        form(flags="aebcpxyJ --help --version", optional="-e -p", operands=Operands.NONE),
        ("lscpu => safe", "lscpu a.txt => unknown"),
        plain=True,
    ),
    Row(
        "lsblk",
        form(flags="abdfilmnoprstPJO --help --version", values="o --output", operands=Operands.TEXT),
        ("lsblk => safe",),
        plain=True,
    ),
    Row(
        "sw_vers",
        form(flags="-productName -productVersion -buildVersion", operands=Operands.NONE),
        ("sw_vers => safe", "sw_vers --version => unknown"),
        plain=True,
    ),
    Row(
        "tty",
        form(flags="s --help --version", operands=Operands.NONE),
        ("tty => safe", "tty a.txt => unknown"),
        plain=True,
    ),
    Row(
        "cal",
        form(flags="13jmyshw --help --version", values="ABn", operands=Operands.TEXT, digits=True),
        ("cal => safe", "cal -l a.txt => unknown"),
        plain=True,
    ),
    Row(
        "locale",
        form(flags="acmkv --all-locales --charmaps --help --version", operands=Operands.TEXT),
        ("locale => safe", "locale -l a.txt => unknown"),
        plain=True,
    ),
    Row(
        "getconf",
        form(flags="a", values="v", operands=Operands.TEXT),
        ("getconf => safe", "getconf --version => unknown"),
        plain=True,
    ),
    Row(
        "pgrep",
        form(
            flags=(
                "aflnovxic --full --list-name --list-full --newest --oldest --exact --count --ignore-case "
                "--help --version"
            ),
            values="dgGPstuU --delimiter --parent --session --uid --euid",
            operands=Operands.TEXT,
        ),
        ("pgrep -fl uvicorn => safe",),
        plain=True,
    ),
    Row(
        "pidof",
        form(flags="sxcq --help --version", values="o", operands=Operands.TEXT),
        ("pidof => safe", "pidof -l a.txt => unknown"),
        plain=True,
    ),
    Row(
        "pstree",
        form(flags="aAcglnNpsStTuUZh --help --version", values="H", operands=Operands.TEXT),
        ("pstree => safe",),
        plain=True,
    ),
    Row(
        "lsof",
        lsof,
        ("lsof -i :8000 => safe", "lsof -i@leak.evil.example => unknown: network", "lsof --version => unknown"),
    ),
    Row(
        "which",
        form(flags="as --all --skip-alias --skip-dot --help --version", operands=Operands.TEXT),
        ("which python3 => safe", "which -l a.txt => unknown"),
        plain=True,
    ),
    Row(
        "whereis",
        form(flags="bmsu --help --version", operands=Operands.TEXT),
        ("whereis git => safe", "whereis -l a.txt => unknown"),
        plain=True,
    ),
    Row("tput", form(values="T", operands=Operands.TEXT), ("tput => safe", "tput --version => unknown"), plain=True),
    Row("date", date, ("date => safe", "date -s 2020-01-01 => dangerous: system"), plain=True),
    Row("hostname", hostname, ("hostname => safe", "hostname evil => dangerous: system"), plain=True),
    Row("ps", ps, ("ps aux => safe", "ps $x => unknown", "ps auxe => dangerous: secrets"), plain=True),
    Row(
        "lsb_release",
        form(
            flags="aidrcs --all --id --description --release --codename --short --help --version",
            operands=Operands.NONE,
        ),
        ("lsb_release -a => safe", "lsb_release a.txt => unknown"),
        plain=True,
    ),
)
