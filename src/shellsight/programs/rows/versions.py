"""Programs of which only a few calls are known."""

from __future__ import annotations

from shellsight.programs.row import Row, unheard

ROWS = (
    Row(
        (
            "act cookiecutter delta fnm fzf latex mkcert mongod mongos mysqld ncdu pg_config postgres procs "
            "redis-server sd starship streamlit thrift virtualenv watchman xsv zoxide"
        ),
        unheard,
        ("* --version => safe", "* --version --preview id => unknown"),
        looks="--version",
    ),
    Row("caddy", unheard, ("caddy => unknown", "caddy --version => safe"), looks="version, --version"),
    Row(
        "deno",
        unheard,
        ("deno --version => safe", "deno eval 'Deno.removeSync(\"x\")' => unknown"),
        looks="-V, --version",
    ),
    Row("ffplay ffprobe", unheard, ("* --version => safe", "* a.txt => unknown"), looks="-version, --version"),
    Row("httpd nginx", unheard, ("* -v => safe", "* -c x => unknown"), looks="-v, -V, --version"),
    Row("pdftotext", unheard, ("pdftotext => unknown", "pdftotext --version => safe"), looks="-v, --version"),
    Row("apachectl", unheard, ("apachectl => unknown", "apachectl -v => safe"), looks="-v, -V"),
    Row("compgen", unheard, ("compgen -v => unknown", "compgen -a => safe"), looks="-a, -b, -c, -k"),
    Row("findmnt", unheard, ("findmnt / => safe", "findmnt --version => unknown"), looks=", /"),
    Row("nvidia-smi", unheard, ("nvidia-smi => safe", "nvidia-smi --version => unknown"), looks=", -L"),
    Row(
        "system_profiler",
        unheard,
        ("system_profiler => unknown", "system_profiler SPHardwareDataType => safe"),
        looks="SPHardwareDataType, SPSoftwareDataType",
    ),
    Row("xcode-select", unheard, ("xcode-select => unknown", "xcode-select -p => safe"), looks="-p, --print-path"),
    Row(
        "xcrun",
        unheard,
        ("xcrun => unknown", "xcrun --show-sdk-path => safe"),
        looks="--show-sdk-path, --show-sdk-version",
    ),
    Row(
        "dpkg-query",
        unheard,
        ("dpkg-query => unknown", "dpkg-query --version => safe"),
        asks=r"-[lLSsW]|--list|--listfiles|--search|--status|--show|--version",
    ),
    Row(
        "getent",
        unheard,
        ("getent passwd root => safe", "getent shadow => unknown"),
        asks=r"passwd|group|services|protocols",
    ),
)
