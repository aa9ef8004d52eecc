"""Programs through which text flows."""

from __future__ import annotations

from shellsight.programs.filters import base_coding, jq, sort, uniq, xxd
from shellsight.programs.machines import calculator
from shellsight.programs.row import Row
from shellsight.programs.text import awk, sed
from shellsight.report import Effect
from shellsight.words.call import always, dangerous, safe
from shellsight.words.form import Operands, form

ROWS = (
    Row("factor", form(operands=Operands.TEXT), ("factor => safe", "factor --version => unknown"), plain=True),
    Row(
        "numfmt",
        form(flags="z", values="d --from --to --suffix --format --field --padding", operands=Operands.TEXT),
        ("numfmt => safe", "numfmt --version => unknown"),
        plain=True,
    ),
    Row(
        "shuf",
        form(flags="erz", values="ni --head-count --input-range"),
        (
            "shuf -n 3 names.txt => safe: reads names.txt",
            "shuf -o ~/.bashrc notes.txt => unknown: reads /home/me/.bashrc, reads notes.txt, writes /home/me/.bashrc",
        ),
        plain=True,
    ),
    Row("yes", always(safe("repeats a word")), ("yes => safe",), plain=True),
    Row(
        "envsubst",
        always(dangerous("shows variables of the environment", (), Effect.SECRETS)),
        ("envsubst => dangerous: secrets",),
    ),
    Row("bc", calculator, ("bc => safe", "bc --version => unknown"), plain=True),
    Row(
        "dc",
        always(dangerous("may run commands", (), Effect.RUNS_CODE)),
        ("dc -e '!rm -rf x' => dangerous: runs code",),
    ),
    Row(
        "xmllint",
        form(flags="--noout --format --nonet", values="--xpath", keen=True),
        ("xmllint --noout --valid doc.xml => unknown: reads doc.xml", "xmllint => safe"),
    ),
    Row(
        "cut",
        form(
            flags="nsz --only-delimited --zero-terminated --complement --help --version",
            values="bcdf --bytes --characters --delimiter --fields --output-delimiter",
        ),
        ("cut -d$'\\t' -f1 data.tsv => safe: reads data.tsv", "cut -d= -f2 .env => dangerous: reads .env, secrets"),
        plain=True,
    ),
    Row(
        "paste",
        form(flags="sz --serial --zero-terminated --help --version", values="d --delimiters"),
        ("paste -d, a.txt b.txt => safe: reads a.txt, reads b.txt", "paste .env - => dangerous: reads .env, secrets"),
        plain=True,
    ),
    Row(
        "tr",
        form(
            flags="cCdst --complement --delete --squeeze-repeats --truncate-set1 --help --version",
            operands=Operands.TEXT,
            passes=True,
        ),
        ("tr => safe", "tr -l a.txt => unknown"),
        plain=True,
    ),
    Row(
        "column",
        form(
            flags="xteLnJ --table --fillrows --keep-empty-lines --json --help --version",
            values=(
                "sclNHRTWOEopr --separator --output-separator --columns --table-columns --table-right "
                "--table-name --table-hide --table-wrap --output-width"
            ),
        ),
        ('column -t -o "," .env => dangerous: reads .env, secrets', "column => safe"),
        plain=True,
    ),
    Row(
        "fold",
        form(flags="bs --bytes --spaces --help --version", values="w --width", digits=True),
        ("fold -w 80 .env => dangerous: reads .env, secrets", "fold => safe"),
        plain=True,
    ),
    Row(
        "fmt",
        form(
            flags="csut --crown-margin --split-only --tagged-paragraph --uniform-spacing --help --version",
            values="wpg --width --prefix --goal",
            digits=True,
        ),
        ("fmt => safe", "fmt -l a.txt => unknown: reads a.txt"),
        plain=True,
    ),
    Row("pr", form(flags="tmdFnaTJ --help --version", values="hlow", digits=True), ("pr => safe",), plain=True),
    Row(
        "expand",
        form(flags="i --initial --help --version", values="t --tabs", digits=True),
        ("expand => safe", "expand -l a.txt => unknown: reads a.txt"),
        plain=True,
    ),
    Row(
        "unexpand",
        form(flags="a --all --first-only --help --version", values="t --tabs"),
        ("unexpand => safe", "unexpand -l a.txt => unknown: reads a.txt"),
        plain=True,
    ),
    Row(
        "rev",
        form(flags="0 --zero --help --version"),
        ("rev .env => dangerous: reads .env, secrets", "rev => safe"),
        plain=True,
    ),
    Row(
        "join",
        form(flags="i --ignore-case --check-order --nocheck-order --header -z --help --version", values="12aejotv"),
        ("join a.txt b.txt => safe: reads a.txt, reads b.txt", "join -l a.txt => unknown: reads a.txt"),
        plain=True,
    ),
    Row(
        "comm",
        form(flags="123z --check-order --nocheck-order --total --help --version", values="--output-delimiter"),
        (
            "comm -12 a.txt b.txt => safe: reads a.txt, reads b.txt",
            "comm .env /dev/null => dangerous: reads .env, reads /dev/null, secrets",
        ),
        plain=True,
    ),
    Row(
        "diff colordiff",
        form(
            flags=(
                "abBcdeEilnNpPqrstTuwyZ --brief --report-identical-files --recursive --new-file --text "
                "--ignore-case --ignore-space-change --ignore-all-space --ignore-blank-lines "
                "--ignore-trailing-space --ignore-tab-expansion --strip-trailing-cr --side-by-side "
                "--suppress-common-lines --left-column --minimal --speed-large-files --no-dereference "
                "--show-c-function --unidirectional-new-file --normal --rcs --ed --expand-tabs --initial-tab "
                "--help --version"
            ),
            values=(
                "CUFILWxDS --context --unified --show-function-line --ignore-matching-lines --label --width "
                "--exclude --horizon-lines --ifdef --tabsize --palette --line-format --starting-file"
            ),
            optional="--color --unified --context",
            reads="-X --exclude-from --from-file --to-file",
            digits=True,
            deep="-r --recursive",
            follows="-r --recursive",
        ),
        (
            "* --to-file=.env notes.txt => dangerous: reads notes.txt, reads .env, secrets",
            "* --to=.env README.md => unknown: reads README.md, reads .env",
            "* notes.txt ../other/notes.txt => safe: reads notes.txt, reads /other/notes.txt",
        ),
        plain=True,
    ),
    Row(
        "cmp",
        form(
            flags="bls --print-bytes --verbose --quiet --silent --help --version", values="in --ignore-initial --bytes"
        ),
        (
            "cmp a.bin b.bin => safe: reads a.bin, reads b.bin",
            "cmp -l .env notes.txt => dangerous: reads .env, reads notes.txt, secrets",
        ),
        plain=True,
    ),
    Row(
        "strings",
        form(
            flags="awo --all --print-file-name -f --include-all-whitespace --help --version",
            values="net --bytes --radix --encoding",
            digits=True,
        ),
        (
            "strings => safe",
            "strings @/etc/passwd => unknown: reads @/etc/passwd",
            "strings .env => dangerous: reads .env, secrets",
            "strings -o .env src => dangerous: reads .env, reads src, secrets",
        ),
        plain=True,
    ),
    Row(
        "od",
        form(
            flags="abcdfilosxvw --output-duplicates --traditional --help --version",
            values="ANjtSw --address-radix --read-bytes --skip-bytes --format --strings --width",
        ),
        ("od -c .env => dangerous: reads .env, secrets", "od => safe"),
        plain=True,
    ),
    Row(
        "hexdump",
        form(
            flags=(
                "bCcdoxv --canonical --one-byte-octal --one-byte-char --no-squeezing --two-bytes-decimal "
                "--help --version"
            ),
            values="nse --length --skip --format",
        ),
        ("hexdump -C .env => dangerous: reads .env, secrets", "hexdump => safe"),
        plain=True,
    ),
    Row("hd", form(flags="bCcdoxv", values="ns"), ("hd => safe", "hd --version => unknown"), plain=True),
    Row(
        "tsort", form(flags="--help --version"), ("tsort => safe", "tsort -l a.txt => unknown: reads a.txt"), plain=True
    ),
    Row(
        "jq yq",
        jq,
        (
            "* -n env => dangerous: secrets",
            "* . ~/settings.json => safe: reads /home/me/settings.json",
            "* --foo => unknown",
        ),
        plain=True,
    ),
    Row(
        "look",
        form(flags="dft --help --version", operands=Operands.SEARCH),
        ("look => safe", "look root /etc/shadow => dangerous: reads /etc/shadow, writes /etc/shadow, secrets"),
        plain=True,
    ),
    Row(
        "seq",
        form(
            flags="w --equal-width --help --version",
            values="fs --format --separator",
            operands=Operands.TEXT,
            digits=True,
        ),
        ("seq 1 10 => safe", "seq -l a.txt => unknown"),
        plain=True,
    ),
    Row(
        "expr",
        form(flags="--help --version", operands=Operands.TEXT, digits=True, first=True),
        ("expr => safe", "expr -l a.txt => unknown"),
        plain=True,
    ),
    Row(
        "sort",
        sort,
        (
            "sort -t$'\\t' -k2 data.tsv => safe: reads data.tsv",
            "sort -k1,1 -t, -uo ../out a.csv => ordinary: reads a.csv, writes /out",
            "sort -{o,u} ~/.profile => unknown: writes /home/me/.profile",
            "sort -o ~/.bashrc notes.txt => dangerous: reads notes.txt, writes /home/me/.bashrc, environment",
        ),
        plain=True,
    ),
    Row(
        "uniq",
        uniq,
        (
            "uniq -c a => safe: reads a",
            "uniq --count in.txt ~/out.txt => ordinary: reads in.txt, writes /home/me/out.txt",
            "uniq --foo => unknown",
            "uniq notes.txt ~/.bashrc => dangerous: reads notes.txt, writes /home/me/.bashrc, environment",
        ),
        plain=True,
    ),
    Row(
        "xxd",
        xxd,
        (
            "xxd a => safe: reads a",
            "xxd -r dump.hex out.bin => ordinary: reads dump.hex, writes out.bin",
            "xxd --foo => unknown",
            "xxd -r payload.hex ~/.bashrc => dangerous: reads payload.hex, writes /home/me/.bashrc, environment",
        ),
        plain=True,
    ),
    Row(
        "base64 base32 basenc",
        base_coding,
        ("* .env => dangerous: reads .env, secrets", "* => safe", "* -o x y => unknown: reads x, reads y"),
        plain=True,
    ),
    Row(
        "sed gsed",
        sed,
        (
            '* -"i" s/a/b/ ~/.bashrc => dangerous: writes /home/me/.bashrc, environment',
            "* -n --in-pl p ~/.bashrc => unknown: writes /home/me/.bashrc",
            "* -n 1,20p /var/log/auth.log => safe: reads /var/log/auth.log",
        ),
        plain=True,
    ),
    Row(
        "awk gawk mawk nawk",
        awk,
        (
            "* 'BEGIN { system(\"rm -rf x\") }' => dangerous: runs code",
            "* '{print}' /var/log/auth.log => safe: reads /var/log/auth.log",
            "* ' => unknown",
        ),
        plain=True,
    ),
    Row(
        "iconv",
        form(flags="lcs --list --help --version", reads="ft --from-code --to-code"),  # maps of characters, by path too
        (
            "iconv -f latin1 -t maps/x a.txt => safe: reads a.txt, reads latin1, reads maps/x",
            "iconv -o ~/.bashrc notes.txt => unknown: reads /home/me/.bashrc, reads notes.txt, writes /home/me/.bashrc",
        ),
        plain=True,
    ),
    Row(
        "sdiff",
        form(
            flags=(
                "ilEbWBdHsta --ignore-case --left-column --suppress-common-lines --minimal "
                "--speed-large-files --expand-tabs --ignore-all-space --ignore-space-change "
                "--ignore-blank-lines --text --help --version"
            ),
            values="wI --width --ignore-matching-lines --tabsize",
        ),
        (
            "sdiff -s a.txt b.txt => safe: reads a.txt, reads b.txt",
            "sdiff -o out a b => unknown: reads out, reads a, reads b",
        ),
        plain=True,
    ),
    Row(
        "diff3",
        form(
            flags=("AaeExX3mT --merge --show-all --text --easy-only --overlap-only --initial-tab --help --version"),
            values="L --label",
        ),
        (
            "diff3 a.txt b.txt c.txt => safe: reads a.txt, reads b.txt, reads c.txt",
            "diff3 --diff-program=x a b c => unknown: reads a, reads b, reads c",
        ),
        plain=True,
    ),
    Row(
        "csvcut",
        form(
            flags=(
                "tHlSzv --tabs --no-header-row --linenumbers --skipinitialspace --zero --names -n --help "
                "--version x --delete-empty-rows"
            ),
            values="dqeKc --delimiter --quotechar --encoding --skip-lines --columns C --not-columns",
        ),
        ("csvcut -n data.csv => safe: reads data.csv",),
    ),
    Row(
        "csvlook",
        form(
            flags=("tHlSzv --tabs --no-header-row --linenumbers --skipinitialspace --zero --names -n --help --version"),
            values=(
                "dqeKc --delimiter --quotechar --encoding --skip-lines --columns --max-rows --max-columns "
                "--max-column-width"
            ),
        ),
        ("csvlook => safe",),
    ),
    Row(
        "csvstat",
        form(
            flags=(
                "tHlSzv --tabs --no-header-row --linenumbers --skipinitialspace --zero --names -n --help "
                "--version --csv --json --count --nulls --unique --min --max --mean --type --len"
            ),
            values="dqeKc --delimiter --quotechar --encoding --skip-lines --columns",
        ),
        ("csvstat => safe",),
    ),
    Row(
        "csvgrep",
        form(
            flags=(
                "tHlSzv --tabs --no-header-row --linenumbers --skipinitialspace --zero --names -n --help "
                "--version ia --invert-match --any-match"
            ),
            values="dqeKc --delimiter --quotechar --encoding --skip-lines --columns mr --match --regex",
            reads="-f --file",
        ),
        ("csvgrep -f .env a.csv => dangerous: reads a.csv, reads .env, secrets", "csvgrep => safe"),
    ),
    Row(
        "csvsort",
        form(
            flags=(
                "tHlSzv --tabs --no-header-row --linenumbers --skipinitialspace --zero --names -n --help "
                "--version ri --reverse --ignore-case"
            ),
            values="dqeKc --delimiter --quotechar --encoding --skip-lines --columns",
        ),
        ("csvsort => safe",),
    ),
)
