"""Programs that only look: at files, at text that flows through them, at the machine."""

from __future__ import annotations

from collections.abc import Mapping

from shellsight.programs.filters import HELP, base_coding, date, hostname, jq, ps, sort, uniq, who, xxd
from shellsight.words.call import Judge
from shellsight.words.form import Operands, form

TEXT, LOOK, COUNT, READ, NONE = Operands.TEXT, Operands.LOOK, Operands.COUNT, Operands.READ, Operands.NONE
_GREPLESS = (
    "AbeEnstTuv --show-all --number-nonblank --show-ends --number --squeeze-blank --show-tabs --show-nonprinting"
)
_MAIN: Mapping[str, Judge] = {
    "cat": form(_GREPLESS + HELP, passes=True),
    "tac": form("br --before --regex" + HELP, "s --separator", passes=True),
    "nl": form(
        "p --no-renumber" + HELP,
        "bdfhilnsvw --body-numbering --starting-line-number --number-width --number-format --number-separator",
    ),
    "head": form(
        "qvz --quiet --silent --verbose --zero-terminated" + HELP, "nc --lines --bytes", digits=True, passes=True
    ),
    "tail": form(
        "fFqvzr --quiet --silent --verbose --zero-terminated --retry" + HELP,
        "nc --lines --bytes --pid -s --sleep-interval",
        loose="--follow",
        digits=True,
        passes=True,
    ),
    "wc": form(
        "cmlLw --bytes --chars --lines --max-line-length --words" + HELP, "--total", COUNT, reads="--files0-from"
    ),
    "ls": form(
        (
            "aAbBcCdfFgGhHikLlmnNopqQrRsStuUvxXZ1@Oe --all --almost-all --author --escape --ignore-backups "
            "--directory --classify --file-type --group-directories-first --no-group --human-readable --si "
            "--dereference --dereference-command-line --inode --kibibytes --literal --numeric-uid-gid "
            "--hide-control-chars --show-control-chars --quote-name --reverse --recursive --size --zero "
            "--full-time --context"
        )
        + HELP,
        (
            "ITw --ignore --hide --tabsize --width --format --quoting-style --sort --time --time-style "
            "--block-size --indicator-style"
        ),
        LOOK,
        loose="--color --hyperlink --classify",
        walks=True,
        deep="-R --recursive",
        always_lists=True,
    ),
    "dir": form("aAlhR1d", "", LOOK, walks=True, always_lists=True),
    "tree": form(
        (
            "adflxtrcvQNpugshDFqNiASnCXJ --dirsfirst --filesfirst --gitignore --noreport --prune --du --si "
            "--inodes --device --metafirst --matchdirs --ignore-case --nolinks --hintro --sort --info --hyperlink"
        )
        + HELP,
        "LPI --filelimit --charset --timefmt --gitfile",
        LOOK,
        loose="--sort",
        walks=True,
        always_deep=True,
        keen=True,
        always_lists=True,
    ),
    "stat": form("LftxqsnFl --dereference --file-system --terse" + HELP, "c --format --printf --cached", LOOK),
    "file": form(
        (
            "bchiIkLNnprsz0 --brief --mime --mime-type --mime-encoding --dereference --no-dereference --no-pad "
            "--raw --keep-going --uncompress"
        )
        + HELP,
        "eFP --separator --exclude --parameter",
        COUNT,
        keen=True,
    ),
    "du": form(
        (
            "0abcDhHklLmPsSx --all --apparent-size --bytes --total --human-readable --summarize --dereference "
            "--one-file-system --separate-dirs --si --time --inodes --null"
        )
        + HELP,
        "dBt --max-depth --block-size --threshold --exclude --time-style",
        LOOK,
        loose="--time",
        walks=True,
    ),
    "df": form(
        "aBhHiklPTmvg --all --human-readable --inodes --local --no-sync --portability --print-type --si --total" + HELP,
        "tx --type --exclude-type --block-size",
        LOOK,
        loose="--output",
    ),
    "realpath": form(
        (
            "emLPqsz --canonicalize-existing --canonicalize-missing --logical --physical --quiet --strip "
            "--no-symlinks --zero"
        )
        + HELP,
        "--relative-to --relative-base",
        LOOK,
    ),
    "readlink": form(
        "femnqsvz --canonicalize --canonicalize-existing --canonicalize-missing --no-newline --zero" + HELP, "", LOOK
    ),
    "basename": form("az --multiple --zero" + HELP, "s --suffix", TEXT),
    "dirname": form("z --zero" + HELP, "", TEXT),
    "pathchk": form("pP" + HELP, "", TEXT),
    "md5sum": form(
        "bctwz --check --binary --text --tag --quiet --status --strict --warn --ignore-missing --zero" + HELP, "", COUNT
    ),
    "cksum": form("cz --check --tag --untagged --raw" + HELP, "a --algorithm --length", COUNT),
    "shasum": form("bctUs01 --check --binary --text --tag --quiet --status" + HELP, "a --algorithm", COUNT),
    "cut": form(
        "nsz --only-delimited --zero-terminated --complement" + HELP,
        "bcdf --bytes --characters --delimiter --fields --output-delimiter",
    ),
    "paste": form("sz --serial --zero-terminated" + HELP, "d --delimiters"),
    "tr": form("cCdst --complement --delete --squeeze-repeats --truncate-set1" + HELP, "", TEXT, passes=True),
    "column": form(
        "xteLnJ --table --fillrows --keep-empty-lines --json" + HELP,
        (
            "sclNHRTWOEopr --separator --output-separator --columns --table-columns --table-right --table-name "
            "--table-hide --table-wrap --output-width"
        ),
    ),
    "fold": form("bs --bytes --spaces" + HELP, "w --width", digits=True),
    "fmt": form(
        "csut --crown-margin --split-only --tagged-paragraph --uniform-spacing" + HELP,
        "wpg --width --prefix --goal",
        digits=True,
    ),
    "pr": form("tmdFnaTJ" + HELP, "hlow", digits=True),
    "expand": form("i --initial" + HELP, "t --tabs", digits=True),
    "unexpand": form("a --all --first-only" + HELP, "t --tabs"),
    "rev": form("0 --zero" + HELP),
    "join": form("i --ignore-case --check-order --nocheck-order --header -z" + HELP, "12aejotv"),
    "comm": form("123z --check-order --nocheck-order --total" + HELP, "--output-delimiter"),
    "diff": form(
        (
            "abBcdeEilnNpPqrstTuwyZ --brief --report-identical-files --recursive --new-file --text --ignore-case "
            "--ignore-space-change --ignore-all-space --ignore-blank-lines --ignore-trailing-space "
            "--ignore-tab-expansion --strip-trailing-cr --side-by-side --suppress-common-lines --left-column "
            "--minimal --speed-large-files --no-dereference --show-c-function --unidirectional-new-file --normal "
            "--rcs --ed --expand-tabs --initial-tab"
        )
        + HELP,
        (
            "CUFILWxDS --context --unified --show-function-line --ignore-matching-lines --label --width "
            "--exclude --horizon-lines --ifdef --tabsize --palette --line-format --starting-file"
        ),
        loose="--color --unified --context",
        reads="-X --exclude-from --from-file --to-file",
        digits=True,
        deep="-r --recursive",
    ),
    "cmp": form("bls --print-bytes --verbose --quiet --silent" + HELP, "in --ignore-initial --bytes"),
    "strings": form(
        "aw --all --print-file-name -f --include-all-whitespace" + HELP, "neto --bytes --radix --encoding", digits=True
    ),
    "od": form(
        "abcdfilosxvw --output-duplicates --traditional" + HELP,
        "ANjtSw --address-radix --read-bytes --skip-bytes --format --strings --width",
    ),
    "hexdump": form(
        "bCcdoxv --canonical --one-byte-octal --one-byte-char --no-squeezing --two-bytes-decimal" + HELP,
        "nse --length --skip --format",
    ),
    "hd": form("bCcdoxv", "ns"),
    "tsort": form(HELP),
    "jq": jq,
    "yq": jq,
    "look": form("dft" + HELP, "", Operands.SEARCH),
    "seq": form("w --equal-width" + HELP, "fs --format --separator", TEXT, digits=True),
    "expr": form(HELP, "", TEXT, digits=True, first=True),
    "sleep": form(HELP, "", TEXT),
    "uname": form(
        (
            "asnrvmpio --all --kernel-name --nodename --kernel-release --kernel-version --machine --processor "
            "--hardware-platform --operating-system"
        )
        + HELP,
        "",
        NONE,
    ),
    "arch": form(HELP, "", NONE),
    "nproc": form("--all" + HELP, "--ignore", NONE),
    "whoami": form(HELP, "", NONE),
    "logname": form(HELP, "", NONE),
    "id": form("agGnruz --user --group --groups --name --real --zero" + HELP, "", TEXT),
    "groups": form(HELP, "", TEXT),
    "who": who,
    "w": form("hsfoi", "", TEXT),
    "uptime": form("ps --pretty --since" + HELP, "", NONE),
    "free": form("bkmghtlw --human --total --wide --mega --giga --si" + HELP, "sc", NONE),
    "vmstat": form("anfsdDSw" + HELP, "", TEXT),
    "lscpu": form("aebcpxyJ" + HELP, "", NONE, loose="-e -p"),
    "lsblk": form("abdfilmnoprstPJO" + HELP, "o --output", TEXT),
    "sw_vers": form("-productName -productVersion -buildVersion", "", NONE),
    "tty": form("s" + HELP, "", NONE),
    "cal": form("13jmyshw" + HELP, "ABn", TEXT, digits=True),
    "locale": form("acmkv --all-locales --charmaps" + HELP, "", TEXT),
    "getconf": form("a", "v", TEXT),
    "pgrep": form(
        "aflnovxic --full --list-name --list-full --newest --oldest --exact --count --ignore-case" + HELP,
        "dgGPstuU --delimiter --parent --session --uid --euid",
        TEXT,
    ),
    "pidof": form("sxcq" + HELP, "o", TEXT),
    "pstree": form("aAcglnNpsStTuUZh" + HELP, "H", TEXT),
    "lsof": form("abClnNOPRtUVwX", "cdgipuFsTk", LOOK, loose="-i"),
    "which": form("as --all --skip-alias --skip-dot" + HELP, "", TEXT),
    "whereis": form("bmsu" + HELP, "", TEXT),
    "whatis": form(HELP, "", TEXT),
    "apropos": form(HELP, "", TEXT),
    "tput": form("", "T", TEXT),
    "cloc": form(
        "--by-file --by-lang --quiet --csv --json --vcs=git --hide-rate --no-recurse" + HELP,
        "--exclude-dir --include-lang --exclude-lang --exclude-ext --include-ext",
        COUNT,
        keen=True,
    ),
    "tokei": form("fhVs --files --hidden --compact" + HELP, "eost --exclude --output --sort --types", COUNT),
    "nm": form("ACDgnoprSuv --defined-only --undefined-only --demangle --dynamic --extern-only" + HELP, "ft"),
    "objdump": form(
        "adDfhprRsStTxC --disassemble --headers --syms --section-headers --all-headers --demangle" + HELP,
        "jM --section",
    ),
    "readelf": form(
        (
            "ahlSsrndVAWeg --all --file-header --program-headers --sections --symbols --relocs --dynamic --notes "
            "--wide --headers"
        )
        + HELP,
        "xp",
    ),
    "size": form("ABdotx" + HELP),
    "sort": sort,
    "uniq": uniq,
    "date": date,
    "hostname": hostname,
    "xxd": xxd,
    "base64": base_coding,
    "base32": base_coding,
    "basenc": base_coding,
    "ps": ps,
}
TABLE: Mapping[str, Judge] = {
    **_MAIN,
    "gstat": _MAIN["stat"],
    **{f"{name}sum": _MAIN["md5sum"] for name in ("sha1", "sha224", "sha256", "sha384", "sha512", "b2")},
    "sum": _MAIN["cksum"],
    "md5": _MAIN["shasum"],
}
