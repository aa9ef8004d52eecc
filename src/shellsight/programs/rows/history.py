"""git, and programs for other version control and for forges."""

from __future__ import annotations

from shellsight.programs.git.calls import git
from shellsight.programs.machines import network
from shellsight.programs.row import Row, unheard
from shellsight.report import Effect
from shellsight.words.verbs import look, verbs

ROWS = (
    Row(
        "gh",
        verbs(
            looking={"--version": look(), "status": network(), "help": look()},
            far={
                "acts on a service elsewhere": (
                    "pr issue repo release workflow run gist api auth secret variable ssh-key gpg-key codespace "
                    "extension browse search label project cache ruleset org alias config attestation"
                )
            },
            effects=(Effect.NETWORK,),
        ),
        ("gh --version => safe", "gh pr merge 12 --squash => dangerous: network"),
        looks="alias list, config list, extension list, help pr, help issue, help run, help repo",
    ),
    Row("glab hub tea jira", network(), ("* mr merge 3 => dangerous: network", "* --version => safe")),
    Row(
        "git",
        git,
        (
            "git status => safe: looks at .",
            "git add -A => ordinary: looks at .",
            "git bundle create ~/x.bundle --all => unknown: looks at ., writes /home/me/x.bundle",
            "git \"reset\" --har'd' => dangerous: looks at ., git history",
        ),
    ),
    Row(
        "jj lazygit svn tig",
        unheard,
        ("* --editor-cmd ./evil.sh propedit x . => unknown", "* --version => safe"),
        looks="--version",
    ),
)
