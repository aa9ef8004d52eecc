"""Package managers and build tools of other languages and of machines."""

from __future__ import annotations

from collections.abc import Mapping

from shellsight.report import Effect
from shellsight.words.arguments import names, prefixes
from shellsight.words.call import Call, Judge, Outcome, dangerous, safe
from shellsight.words.form import Operands, form
from shellsight.words.verbs import Verbs, everyday, far, look

_INSTALL = frozenset({Effect.INSTALL, Effect.NETWORK})
_CARGO = Verbs(
    looking={
        "tree": look(
            (
                "de a i --all-features --no-default-features --workspace --all-targets --locked --offline "
                "--frozen --duplicates --no-dedupe --no-dev-dependencies"
            ),
            "pFeif --package --features --target --depth --edges --invert --prefix --format --prune --charset",
        ),
        "metadata": look(
            "--no-deps --locked --offline --frozen --all-features --no-default-features -q",
            "--format-version --filter-platform --features",
        ),
        "pkgid": look(),
        "locate-project": look("--workspace", "--message-format"),
        "verify-project": look(),
        "read-manifest": look(),
        "--list": look(),
        "help": look(),
    },
    far={
        **far("install uninstall", "installs programs"),
        **far("publish yank login logout owner", "acts on the registry"),
        **far("search fetch vendor update add remove info", "reaches the network"),
        **far("clean", "deletes what was built"),
        **far("script", "runs code"),
    },
    building=names(
        "build b check c test t run r bench doc clippy fmt nextest fix rustc rustdoc expand new init "
        "generate-lockfile package miri llvm-cov"
    ),
    effects=_INSTALL,
    leading=names("-q --quiet --offline --locked --frozen -v"),
    versions=names("--version -V --help -h --list"),
)
_GO = Verbs(
    looking={
        "version": look("m v"),
        "env": form("json changed", "", Operands.TEXT, single=True),
        "list": form(
            "m json f deps test e find -m -json -deps -test -e -find -mod=readonly",
            "-f",
            Operands.TEXT,
            single=True,
        ),
        "doc": form("-all -src -short -u -c -cmd", "", Operands.TEXT, single=True),
        "help": look(),
        "vet": everyday,
    },
    far={**far("get install", "installs packages"), **far("clean", "deletes what was built")},
    building=names("build test run fmt fix generate mod work tool vet"),
    effects=_INSTALL,
    versions=names("version help env"),
)


def go(call: Call) -> Outcome:
    """go: `go env -w` changes settings, `-exec` and `-toolexec` run programs."""
    texts = [arg.text.lstrip("-") for arg in call.args]
    if texts[:1] == ["env"] and any(arg.text in {"-w", "-u"} for arg in call.args):
        return dangerous("changes Go's settings", (), Effect.ENVIRONMENT)
    if any(text.startswith(("toolexec", "exec", "overlay", "vettool", "modfile")) for text in texts[1:]):
        return dangerous("runs the program that an option names", (), Effect.RUNS_CODE)
    if texts[:2] in (["mod", "download"], ["mod", "tidy"], ["mod", "edit"]):
        return dangerous("reaches the network or changes dependencies", (), Effect.NETWORK)
    if texts[:1] == ["run"] and any("@" in text for text in texts):
        return dangerous("fetches a program and runs it", (), Effect.INSTALL, Effect.NETWORK)
    return _GO.judge(call)


_BREW = Verbs(
    looking={
        "list": look("1 l --versions --formula --cask --full-name"),
        "config": look(),
        "--prefix": look(),
        "deps": look("--tree --installed"),
        "leaves": look(),
        "--version": look(),
        "doctor": look(),
    },
    far=far(
        (
            "install uninstall upgrade update reinstall tap untap link unlink cleanup services remove rm "
            "autoremove bundle info search outdated fetch"
        ),
        "installs, removes or reaches the network",
    ),
    effects=_INSTALL,
)
_APT = Verbs(
    looking={
        "list": look("--installed --upgradable -a --all-versions"),
        "show": look("a"),
        "policy": look(),
        "depends": look(),
        "rdepends": look(),
        "search": look("n --names-only"),
        "showpkg": look(),
        "pkgnames": look(),
        "madison": look(),
    },
    far=far(
        (
            "install remove purge update upgrade full-upgrade dist-upgrade autoremove clean autoclean download "
            "source build-dep edit-sources changelog satisfy reinstall"
        ),
        "installs or removes software",
    ),
    effects=_INSTALL,
)
_GEM = Verbs(
    looking={
        "list": look("l --local --no-versions", ""),
        "env": look(),
        "environment": look(),
        "which": look(),
        "contents": look(),
        "dependency": look(),
    },
    far=far(
        "install uninstall update push fetch yank owner signin sources cert cleanup pristine exec build",
        "installs, removes or publishes",
    ),
    effects=_INSTALL,
)
_CONDA = Verbs(
    looking={
        "list": look("ef --export --json", "n --name"),
        "info": look("es a --envs --json"),
        "env": Verbs(
            looking={"list": look("--json")}, far=far("create remove update export config", "changes environments")
        ).judge,
    },
    far=far(
        "install remove update create clean config run search activate deactivate init uninstall upgrade build",
        "installs, removes or runs",
    ),
    effects=_INSTALL,
)
_RUSTUP = Verbs(
    looking={
        "show": look("v"),
        "which": look(),
        "toolchain": Verbs(looking={"list": look("v")}).judge,
        "component": Verbs(looking={"list": look("--installed")}).judge,
        "target": Verbs(looking={"list": look("--installed")}).judge,
    },
    far=far("update install default override self uninstall run set", "installs or changes toolchains"),
    effects=_INSTALL,
)
_COMPOSER = Verbs(
    building=names("show validate licenses"),
    far=far(
        (
            "install update require remove global create-project self-update exec run-script dump-autoload "
            "outdated config publish"
        ),
        "installs, removes or runs",
    ),
    effects=_INSTALL,
)
_DOTNET = Verbs(
    looking={"--info": look(), "--list-sdks": look(), "--list-runtimes": look()},
    far=far("add remove tool nuget publish workload new restore sdk", "installs or publishes packages"),
    building=names("build test run format clean pack msbuild vstest watch"),
    effects=_INSTALL,
)
_MVN = Verbs(
    looking={},
    far={**far("deploy release:perform release:prepare", "publishes"), **far("install", "installs packages")},
    building=names(
        "compile test package verify validate clean test-compile site spotless:check spotless:apply dependency:tree -q"
    ),
    versions=names("--version -v --help -h"),
)
_GRADLE = Verbs(
    looking={},
    far={**far("publish publishToMavenLocal uploadArchives", "publishes")},
    building=names(
        "build test check assemble clean compileJava compileKotlin run lint ktlintCheck tasks dependencies "
        "projects spotlessApply spotlessCheck properties"
    ),
    versions=names("--version -v --help -h"),
)


def elsewhere(call: Call) -> Outcome:
    """Programs that install, publish or act on machines elsewhere: only their version looks."""
    if len(call.args) == 1 and call.args[0].text in {"--version", "--help"}:
        return safe("shows its version")
    return dangerous("installs, publishes or acts on machines elsewhere", (), Effect.INSTALL, Effect.NETWORK)


def _terraform_fmt(call: Call) -> Outcome:
    """`terraform fmt`: rewrites files, unless it only checks."""
    outcome = form("-check -diff -recursive", "", Operands.TEXT, single=True)(call)
    return outcome if any(arg.text == "-check" for arg in call.args) else everyday(call)


_TERRAFORM = Verbs(
    looking={
        "version": look("json"),
        "fmt": _terraform_fmt,
        "validate": everyday,
        "providers": everyday,
        "graph": everyday,
    },
    far=far(
        (
            "apply destroy import init plan state taint untaint console output show refresh login logout "
            "workspace force-unlock get test"
        ),
        "acts on infrastructure, or shows its secrets",
    ),
    effects=frozenset({Effect.NETWORK}),
)
TABLE: Mapping[str, Judge] = {
    "cargo": _CARGO.judge,
    "go": go,
    "brew": _BREW.judge,
    **dict.fromkeys(("apt", "apt-get", "apt-cache", "aptitude"), _APT.judge),
    "gem": _GEM.judge,
    **dict.fromkeys(("conda", "mamba", "micromamba"), _CONDA.judge),
    "rustup": _RUSTUP.judge,
    "composer": _COMPOSER.judge,
    "dotnet": _DOTNET.judge,
    "mvn": _MVN.judge,
    "gradle": _GRADLE.judge,
    **dict.fromkeys(("terraform", "tofu"), _TERRAFORM.judge),
    **dict.fromkeys(
        prefixes(
            "yum dnf pacman apk zypper snap flatpak port nix-env emerge dpkg-reconfigure easy_install twine "
            "flit cpan cpanm luarocks opam cabal stack choco winget scoop volta nvm pyenv asdf mise rbenv "
            "corepack vcpkg conan helm pulumi serverless sam cdk vercel netlify heroku flyctl fly wrangler "
            "firebase gcloud aws az gsutil doctl eksctl ansible ansible-playbook ansible-vault vagrant "
            "packer nix nix-shell cook chef puppet salt linode-cli ibmcloud oc skaffold argocd flux vault op "
            "bw pass gopass lpass consul nomad"
        ),
        elsewhere,
    ),
}
