"""Programs that show files and folders."""

from __future__ import annotations

from shellsight.programs.row import Row
from shellsight.words.form import Operands, form

ROWS = (
    Row(
        "cat",
        form(
            flags=(
                "AbeEnstTuv --show-all --number-nonblank --show-ends --number --squeeze-blank --show-tabs "
                "--show-nonprinting --help --version"
            ),
            passes=True,
        ),
        (
            "cat /etc/passwd => safe: reads /etc/passwd",
            "cat .en? => unknown: reads ./**",
            "cat ~/.s\\sh/id_\\rsa => dangerous: reads /home/me/.ssh/id_rsa, writes /home/me/.ssh/id_rsa, secrets",
        ),
        plain=True,
    ),
    Row(
        "tac",
        form(
            flags="br --before --regex --help --version", values="s --separator", passes=True, tells="brs --separator"
        ),
        ("tac x => safe: reads x", "tac .env => dangerous: reads .env, secrets"),
        plain=True,
    ),
    Row(
        "nl",
        form(
            flags="p --no-renumber --help --version",
            values=(
                "bdfhilnsvw --body-numbering --starting-line-number --number-width --number-format --number-separator"
            ),
        ),
        ("nl .env => dangerous: reads .env, secrets", "nl => safe"),
        plain=True,
    ),
    Row(
        "head",
        form(
            flags="qvz --quiet --silent --verbose --zero-terminated --help --version",
            values="nc --lines --bytes",
            digits=True,
            passes=True,
            tells="c --bytes",
        ),
        (
            "head ~/notes.txt => safe: reads /home/me/notes.txt",
            "head -n $x a => unknown: reads a",
            "head -c 4096 .env => dangerous: reads .env, secrets",
        ),
        plain=True,
    ),
    Row(
        "tail",
        form(
            flags="fFqvzr --quiet --silent --verbose --zero-terminated --retry --help --version",
            values="nc --lines --bytes --pid -s --sleep-interval",
            optional="--follow",
            digits=True,
            passes=True,
            tells="c --bytes",
        ),
        (
            "tail -n 20 $HOME/notes.txt => safe: reads /home/me/notes.txt",
            "tail -n +1 -- .env => dangerous: reads .env, secrets",
        ),
        plain=True,
    ),
    Row(
        "wc",
        form(
            flags="cmlLw --bytes --chars --lines --max-line-length --words --help --version",
            values="--total",
            operands=Operands.COUNT,
        ),
        ("wc -l src/*.py => safe: reads src/**", "wc --files0-from=.env => unknown: reads .env"),
        plain=True,
    ),
    Row(
        "ls",
        form(
            flags=(
                "aAbBcCdfFgGhHikLlmnNopqQrRsStuUvxXZ1@Oe --all --almost-all --author --escape "
                "--ignore-backups --directory --classify --file-type --group-directories-first --no-group "
                "--human-readable --si --dereference --dereference-command-line --inode --kibibytes --literal "
                "--numeric-uid-gid --hide-control-chars --show-control-chars --quote-name --reverse "
                "--recursive --size --zero --full-time --context --help --version"
            ),
            values=(
                "ITw --ignore --hide --tabsize --width --format --quoting-style --sort --time --time-style "
                "--block-size --indicator-style"
            ),
            optional="--color --hyperlink --classify",
            operands=Operands.LOOK,
            walks=True,
            deep="-R --recursive",
            follows="-L --dereference",
            always_lists=True,
            tells="lngo --full-time --format",
        ),
        ("ls => safe: looks at .", "ls ~/.ssh => unknown: looks at /home/me/.ssh, writes /home/me/.ssh"),
        plain=True,
    ),
    Row(
        "dir",
        form(flags="aAlhR1d", operands=Operands.LOOK, walks=True, always_lists=True, tells="l"),
        ("dir => safe: looks at .", "dir --version => unknown: looks at ."),
        plain=True,
    ),
    Row(
        "tree",
        form(
            flags=(
                "adflxtrcvQNpugshDFqNiASnCXJ --dirsfirst --filesfirst --gitignore --noreport --prune --du "
                "--si --inodes --device --metafirst --matchdirs --ignore-case --nolinks --hintro --sort "
                "--info --hyperlink --help --version"
            ),
            values="LPI --filelimit --charset --timefmt --gitfile",
            optional="--sort",
            operands=Operands.LOOK,
            walks=True,
            always_deep=True,
            follows="-l",
            keen=True,
        ),
        (
            "tree -L 2 => safe: looks at ./**",
            "tree -o ~/.bashrc => unknown: looks at /home/me/.bashrc/**, writes /home/me/.bashrc",
        ),
        plain=True,
    ),
    Row(
        "stat gstat",
        form(
            flags="LftxqsnFl --dereference --file-system --terse --help --version",
            values="c --format --printf --cached",
            operands=Operands.LOOK,
        ),
        ("* pyproject.toml => safe: looks at pyproject.toml", "* --foo => unknown"),
        plain=True,
    ),
    Row(
        "file",
        form(
            flags=(
                "bchiIkLNnrsz0 --brief --mime --mime-type --mime-encoding --dereference --no-dereference "
                "--no-pad --raw --keep-going --uncompress --help --version"
            ),
            values="eFP --separator --exclude --parameter",
            operands=Operands.COUNT,
            keen=True,
        ),
        (
            "file dist/app.bin => safe: reads dist/app.bin",
            "file -p dist/app.bin => unknown: reads dist/app.bin",
            "file -C -m evil.magic => unknown: reads evil.magic",
            "file -f .env => dangerous: reads .env, secrets",
        ),
        plain=True,
    ),
    Row(
        "du",
        form(
            flags=(
                "0abcDhHklLmPsSx --all --apparent-size --bytes --total --human-readable --summarize "
                "--dereference --one-file-system --separate-dirs --si --time --inodes --null --help --version"
            ),
            values="dBt --max-depth --block-size --threshold --exclude --time-style",
            optional="--time",
            operands=Operands.LOOK,
            walks=True,
            deep="-L --dereference",
            follows="-L --dereference",
        ),
        ("du -sh . => safe: looks at .", "du --files0-from=.env => unknown: looks at ., reads .env"),
        plain=True,
    ),
    Row(
        "realpath",
        form(
            flags=(
                "emLPqsz --canonicalize-existing --canonicalize-missing --logical --physical --quiet --strip "
                "--no-symlinks --zero --help --version"
            ),
            values="--relative-to --relative-base",
            operands=Operands.LOOK,
        ),
        (
            "realpath src/../tests => safe: looks at tests, looks at src/../tests",
            "realpath -l a.txt => unknown: looks at a.txt",
        ),
        plain=True,
    ),
    Row(
        "readlink",
        form(
            flags=(
                "femnqsvz --canonicalize --canonicalize-existing --canonicalize-missing --no-newline --zero "
                "--help --version"
            ),
            operands=Operands.LOOK,
        ),
        ("readlink -f README.md => safe: looks at README.md", "readlink -l a.txt => unknown: looks at a.txt"),
        plain=True,
    ),
    Row(
        "basename",
        form(flags="az --multiple --zero --help --version", values="s --suffix", operands=Operands.TEXT),
        ("basename src/app.py .py => safe", "basename -l a.txt => unknown"),
        plain=True,
    ),
    Row(
        "dirname",
        form(flags="z --zero --help --version", operands=Operands.TEXT),
        ("dirname src/pkg/app.py => safe", "dirname -l a.txt => unknown"),
        plain=True,
    ),
    Row(
        "pathchk",
        form(flags="pP --help --version", operands=Operands.TEXT),
        ("pathchk => safe", "pathchk -l a.txt => unknown"),
        plain=True,
    ),
    Row(
        "md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum",
        form(
            flags=(
                "btwz --binary --text --tag --quiet --status --strict --warn --ignore-missing --zero --help --version"
            ),
            operands=Operands.COUNT,
        ),
        ("* dist/app.tar.gz => safe: reads dist/app.tar.gz", "* -c sums => unknown: reads sums"),
        plain=True,
    ),
    Row(
        "cksum sum",
        form(
            flags="z --tag --untagged --raw --help --version", values="a --algorithm --length", operands=Operands.COUNT
        ),
        ("* --version => safe", "* --foo => unknown"),
        plain=True,
    ),
    Row(
        "shasum md5",
        form(
            flags="btUs01 --binary --text --tag --quiet --status --help --version",
            values="a --algorithm",
            operands=Operands.COUNT,
        ),
        ("* --version => safe", "* --foo => unknown"),
        plain=True,
    ),
    Row(
        "cloc",
        form(
            flags="--by-file --by-lang --quiet --csv --json --vcs=git --hide-rate --no-recurse --help --version",
            values="--exclude-dir --include-lang --exclude-lang --exclude-ext --include-ext",
            operands=Operands.COUNT,
            keen=True,
        ),
        ("cloc => safe", "cloc -l a.txt => unknown: reads a.txt"),
    ),
    Row(
        "tokei",
        form(
            flags="fhVs --files --hidden --compact --help --version",
            values="eost --exclude --output --sort --types",
            operands=Operands.COUNT,
        ),
        ("tokei => safe", "tokei -l a.txt => unknown: reads a.txt"),
    ),
    Row(
        "nm",
        form(
            flags=("ACDgnoprSuv --defined-only --undefined-only --demangle --dynamic --extern-only --help --version"),
            values="ft",
        ),
        ("nm @options.txt => unknown: reads @options.txt", "nm => safe"),
        plain=True,
    ),
    Row(
        "objdump",
        form(
            flags=(
                "adDfhprRsStTxC --disassemble --headers --syms --section-headers --all-headers --demangle "
                "--help --version"
            ),
            values="jM --section",
        ),
        ("objdump -d @options.txt => unknown: reads @options.txt", "objdump => safe"),
    ),
    Row(
        "readelf",
        form(
            flags=(
                "ahlSsrndVAWeg --all --file-header --program-headers --sections --symbols --relocs --dynamic "
                "--notes --wide --headers --help --version"
            ),
            values="xp",
        ),
        ("readelf => safe",),
        plain=True,
    ),
    Row(
        "size",
        form(flags="ABdotx --help --version"),
        ("size => safe", "size -l a.txt => unknown: reads a.txt"),
        plain=True,
    ),
    Row(
        "eza exa",
        form(
            flags=(
                "1GlRxTFaAdDfbBghHimMnOSruUXZv --all --long --oneline --grid --across --recurse --tree "
                "--dereference --classify --almost-all --list-dirs --only-dirs --only-files --reverse "
                "--group-directories-first --group-directories-last --git-ignore --git --no-git --binary "
                "--bytes --group --header --links --inode --blocksize --accessed --created --changed "
                "--modified --no-permissions --octal-permissions --no-filesize --no-user --no-time --icons "
                "--no-icons --numeric --extended --total-size --help --version"
            ),
            values="sLIt --sort --level --ignore-glob --time --time-style --width --color --colour",
            optional="--color --icons --classify --hyperlink",
            operands=Operands.LOOK,
            walks=True,
            deep="-R -T --recurse --tree",
            always_lists=True,
            tells="lT --long --tree",
        ),
        ("* -la --git => safe: looks at .", "* -T /etc => unknown: looks at /etc/**, writes /etc"),
        looks="--version",
    ),
    Row(
        "lsd",
        form(
            flags="1lahAFdrtSX --all --long --tree --reverse --help --version",
            values="--depth --sort",
            operands=Operands.LOOK,
            walks=True,
            deep="--tree",
        ),
        ("lsd -la => safe: looks at .",),
        looks="--version",
    ),
    Row(
        "dust",
        form(
            flags="brscpDFfix --help --version",
            values="dnXz --depth --number-of-lines",
            operands=Operands.LOOK,
            walks=True,
            always_deep=True,
        ),
        ("dust -d 1 => safe: looks at ./**", "dust -I x => unknown: looks at x/**"),
        looks="--version",
        plain=True,
    ),
    Row(
        "scc",
        form(
            flags=("w --by-file --no-cocomo --no-complexity --no-duplicates --wide --ci --no-size --help --version"),
            values="s --sort --include-ext --exclude-dir",
            operands=Operands.COUNT,
            walks=True,
        ),
        ("scc --by-file --no-cocomo => safe: reads .", "scc -o out => unknown: reads out"),
        looks="--version",
    ),
)
