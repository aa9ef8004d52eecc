"""Programs beside the usual ones that only look, and checkers that neither write nor load a project's code."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from shellsight.programs.filters import HELP
from shellsight.report import Effect, PathEffect, Standing
from shellsight.words.arguments import names
from shellsight.words.call import Call, Judge, Outcome, dangerous, safe, unknown
from shellsight.words.form import Operands, form
from shellsight.words.places import uses
from shellsight.words.secrecy import has_glob, is_private
from shellsight.words.verbs import each, everyday

TEXT, LOOK, COUNT, READ, NONE = Operands.TEXT, Operands.LOOK, Operands.COUNT, Operands.READ, Operands.NONE
_EZA = form(
    (
        "1GlRxTFaAdDfbBghHimMnOSruUXZv --all --long --oneline --grid --across --recurse --tree --dereference "
        "--classify --almost-all --list-dirs --only-dirs --only-files --reverse --group-directories-first "
        "--group-directories-last --git-ignore --git --no-git --binary --bytes --group --header --links --inode "
        "--blocksize --accessed --created --changed --modified --no-permissions --octal-permissions --no-filesize "
        "--no-user --no-time --icons --no-icons --numeric --extended --total-size"
    )
    + HELP,
    "sLIt --sort --level --ignore-glob --time --time-style --width --color --colour",
    LOOK,
    loose="--color --icons --classify --hyperlink",
    walks=True,
    deep="-R -T --recurse --tree",
    always_lists=True,
)
_ACK = form(
    (
        "iwvclLhHnfQs1 --ignore-case --smart-case --no-smart-case --word-regexp --invert-match --count --literal "
        "--files-with-matches --files-without-matches --with-filename --no-filename --no-recurse --recurse "
        "--nocolor --nocolour --noheading --nogroup --nobreak --heading --group --break --column --python --js --html "
        "--css --go --java --ruby --rust --php --perl --shell --json --xml --yaml --sql --cpp --cc --markdown "
        "--ignore-ack-defaults --noenv --help-types"
    )
    + HELP,
    "ABCmt --type --after-context --before-context --context --max-count --ignore-dir --ignore-directory --ignore-file",
    Operands.SEARCH,
    loose="--color --colour",
    always_deep=True,
    walks=True,
    keen=True,
)
"""A project's `.ackrc` may name no pager, no output and no pattern; the line's own options could, so none is here."""


def ack(call: Call) -> Outcome:
    """`ack`: its patterns are Perl's, which can hold code."""
    if any("(?{" in arg.text or "(??{" in arg.text for arg in call.args):
        return unknown("a pattern that holds code")
    return _ACK(call)


_SHOWN = names("--version -V --help -h")


def reader(known: Judge) -> Judge:
    """A judge for a checker: what the table knows only looks, everything else is an everyday call."""

    def judge(call: Call) -> Outcome:
        if len(call.args) == 1 and call.args[0].certain and call.args[0].text in _SHOWN:
            return safe("shows its version or help")
        outcome = known(call)
        return outcome if outcome.standing is Standing.SAFE else everyday(call)

    return judge


def _checker(bare: str, valued: str = "", reads: str = "") -> Judge:
    return reader(form(bare, valued, COUNT, reads=reads, walks=True, keen=True, reason="checks, changes nothing"))


def shfmt(call: Call) -> Outcome:
    """`shfmt -d` and `-l` show what they would change."""
    if {"-d", "-l", "--diff", "--list"} & {arg.text for arg in call.args}:
        return _SHFMT(call)
    return everyday(call)


_SHFMT = _checker("dls --diff --list --simplify", "i --indent --language-dialect")


def archive_list(call: Call) -> Outcome:
    """`7z l`, `unrar l`, `ar t`: what an archive holds."""
    verbs, flags = _LISTS[call.name]
    words = [arg.text for arg in call.args]
    if (
        len(words) > 1
        and words[0] in verbs
        and all(arg.certain and not arg.text.startswith("@") for arg in call.args)
        and all(not word.startswith("-") or word in flags for word in words[1:])
    ):
        files = tuple(arg for arg in call.args[1:] if not arg.text.startswith("-"))
        return safe("lists an archive", tuple(use for arg in files[:1] for use in uses(call, arg, PathEffect.READ)))
    return unknown("packs or unpacks, deletes or runs what its options say")


_LISTS = {
    "7z": (names("l t"), names("-ba -slt")),
    "7za": (names("l t"), names("-ba -slt")),
    "unrar": (names("l lb v vb t"), frozenset[str]()),
    "ar": (names("t tv -t -tv"), frozenset[str]()),
}


def listed(name: str, otherwise: Judge) -> Judge:
    """A judge for a packer: lists first, everything else as before."""

    def judge(call: Call) -> Outcome:
        outcome = archive_list(evolve(call, name=name))
        return outcome if outcome.standing is Standing.SAFE else otherwise(call)

    return judge


def printed(otherwise: Judge) -> Judge:
    """A judge for `unzip -p FILE MEMBER...`, which prints members by name; secrets stay secrets inside an archive."""

    def judge(call: Call) -> Outcome:
        words = [arg.text for arg in call.args]
        members = words[2:]
        if {"-p", "-c"}.intersection(words) and any(is_private(member) for member in members):
            return dangerous("prints what usually holds secrets", (), Effect.SECRETS)
        if (
            len(words) > 2
            and words[0] == "-p"
            and all(arg.certain for arg in call.args)
            and not any(word.startswith("-") or has_glob(word) or is_private(word) for word in words[1:])
        ):
            read = uses(call, call.args[1], PathEffect.READ)
            return Outcome(Standing.SAFE, f"prints {len(members)} of an archive's files", read, source="decoder")
        return otherwise(call)

    return judge


_CSV = "tHlSzv --tabs --no-header-row --linenumbers --skipinitialspace --zero --names -n" + HELP
_CSV_VALUED = "dqeKc --delimiter --quotechar --encoding --skip-lines --columns"
TABLE: Mapping[str, Judge] = {
    **each("eza exa", _EZA),
    "lsd": form("1lahAFdrtSX --all --long --tree --reverse" + HELP, "--depth --sort", LOOK, walks=True, deep="--tree"),
    "dust": form("brscpDFfix" + HELP, "dnXz --depth --number-of-lines", LOOK, walks=True, always_deep=True),
    "scc": form(
        "w --by-file --no-cocomo --no-complexity --no-duplicates --wide --ci --no-size" + HELP,
        "s --sort --include-ext --exclude-dir",
        COUNT,
        walks=True,
    ),
    "ack": ack,
    "iconv": form("lcs --list" + HELP, "ft --from-code --to-code"),
    "sdiff": form(
        (
            "ilEbWBdHsta --ignore-case --left-column --suppress-common-lines --minimal --speed-large-files "
            "--expand-tabs --ignore-all-space --ignore-space-change --ignore-blank-lines --text"
        )
        + HELP,
        "wI --width --ignore-matching-lines --tabsize",
    ),
    "diff3": form("AaeExX3mT --merge --show-all --text --easy-only --overlap-only --initial-tab" + HELP, "L --label"),
    "lsb_release": form("aidrcs --all --id --description --release --codename --short" + HELP, "", NONE),
    "otool": form("-L -l -h -f -t -v -V -tV -D -I -d -X", "", READ, single=True),
    "pkg-config": form(
        (
            "--cflags --libs --exists --modversion --list-all --static --print-errors --cflags-only-I "
            "--libs-only-l --libs-only-L --print-requires --print-variables"
        )
        + HELP,
        "--variable --atleast-version --exact-version --max-version",
        TEXT,
    ),
    "pipdeptree": form(
        "ralfu --reverse --all --local-only --freeze --json --json-tree --user-only" + HELP,
        "pewd --packages --exclude --warn --depth",
        NONE,
    ),
    "csvcut": form(f"{_CSV} x --delete-empty-rows", f"{_CSV_VALUED} C --not-columns"),
    "csvlook": form(_CSV, f"{_CSV_VALUED} --max-rows --max-columns --max-column-width"),
    "csvstat": form(f"{_CSV} --csv --json --count --nulls --unique --min --max --mean --type --len", _CSV_VALUED),
    "csvgrep": form(f"{_CSV} ia --invert-match --any-match", f"{_CSV_VALUED} mr --match --regex", reads="-f --file"),
    "csvsort": form(f"{_CSV} ri --reverse --ignore-case", _CSV_VALUED),
    "pycodestyle": _checker(
        "qvr --quiet --verbose --first --statistics --count --show-source --show-pep8 --diff",
        "--max-line-length --max-doc-length --select --ignore --exclude --filename --format",
        "--config",
    ),
    "pyflakes": _checker(""),
    "pydocstyle": _checker(
        "evsdc --explain --source --count --verbose --debug", "--convention --select --ignore --match --match-dir"
    ),
    "vulture": _checker(
        "v --verbose --sort-by-size --make-whitelist",
        "--min-confidence --exclude --ignore-names --ignore-decorators",
        "--config",
    ),
    "yamllint": _checker("s --strict --no-warnings --list-files", "df --config-data --format", "-c --config-file"),
    "hadolint": _checker(
        "v --verbose --no-fail --no-color", "f --format --ignore -t --failure-threshold", "-c --config"
    ),
    "typos": _checker("qv --diff --hidden --no-ignore --files --locale=en", "--format --type --exclude --color"),
    "actionlint": reader(
        form("-no-color -oneline -verbose -color", "", COUNT, single=True, walks=True, reason="checks, changes nothing")
    ),
    "shfmt": shfmt,
}
