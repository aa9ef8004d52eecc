"""Package managers and build tools of single languages, and of machines."""

from __future__ import annotations

from shellsight.programs.packages import elsewhere, go, steered, terraform_fmt
from shellsight.programs.row import Row
from shellsight.report import Effect
from shellsight.words.verbs import everyday, look, verbs

ROWS = (
    Row(
        "cargo",
        steered(
            verbs(
                looking={
                    "tree": look(
                        flags=(
                            "de a i --all-features --no-default-features --workspace --all-targets --locked --offline "
                            "--frozen --duplicates --no-dedupe --no-dev-dependencies"
                        ),
                        values=(
                            "pFeif --package --features --target --depth --edges --invert --prefix --format --prune "
                            "--charset"
                        ),
                    ),
                    "metadata": look(
                        flags="--no-deps --locked --offline --frozen --all-features --no-default-features -q",
                        values="--format-version --filter-platform --features",
                    ),
                    "pkgid": look(),
                    "locate-project": look(flags="--workspace", values="--message-format"),
                    "verify-project": look(),
                    "read-manifest": look(),
                    "--list": look(),
                    "help": look(),
                },
                far={
                    "installs programs": "install uninstall",
                    "acts on the registry": "publish yank login logout owner",
                    "reaches the network": "search fetch vendor update add remove info",
                    "deletes what was built": "clean",
                    "runs code": "script",
                },
                building=(
                    "b bench build c check clippy doc expand fix fmt generate-lockfile init llvm-cov miri new "
                    "nextest package r run rustc rustdoc t test"
                ),
                effects=(Effect.INSTALL, Effect.NETWORK),
                leading="--frozen --locked --offline --quiet -q -v",
                versions="--help --list --version -V -h",
            )
        ),
        (
            "cargo --version => safe",
            "cargo build => ordinary",
            "cargo $x => unknown",
            "cargo install evil => dangerous: install, network",
        ),
        looks="-vV",
    ),
    Row(
        "go",
        go,
        (
            "go version => safe",
            "go test ./... => ordinary: looks at ...",
            "go list -m -u all => unknown",
            "go install evil.example/x@latest => dangerous: install, network",
        ),
    ),
    Row(
        "brew",
        verbs(
            looking={
                "list": look(flags="1 l --versions --formula --cask --full-name"),
                "config": look(),
                "--prefix": look(),
                "deps": look(flags="--tree --installed"),
                "leaves": look(),
                "--version": look(),
                "doctor": look(),
            },
            far={
                "installs, removes or reaches the network": (
                    "install uninstall upgrade update reinstall tap untap link unlink cleanup services remove rm "
                    "autoremove bundle info search outdated fetch"
                )
            },
            effects=(Effect.INSTALL, Effect.NETWORK),
        ),
        ("brew list --help => safe", "brew $x => unknown", "brew install evil => dangerous: install, network"),
    ),
    Row(
        "apt apt-get apt-cache aptitude",
        verbs(
            looking={
                "list": look(flags="--installed --upgradable -a --all-versions"),
                "show": look(flags="a"),
                "policy": look(),
                "depends": look(),
                "rdepends": look(),
                "search": look(flags="n --names-only"),
                "showpkg": look(),
                "pkgnames": look(),
                "madison": look(),
            },
            far={
                "installs or removes software": (
                    "install remove purge update upgrade full-upgrade dist-upgrade autoremove clean autoclean "
                    "download source build-dep edit-sources changelog satisfy reinstall"
                )
            },
            effects=(Effect.INSTALL, Effect.NETWORK),
        ),
        ("* remove python3 => dangerous: install, network", "* --version => safe", "* a.txt => unknown"),
    ),
    Row(
        "gem",
        verbs(
            looking={
                "list": look(flags="l --local --no-versions"),
                "env": look(),
                "environment": look(),
                "which": look(),
                "contents": look(),
                "dependency": look(),
            },
            far={
                "installs, removes or publishes": (
                    "install uninstall update push fetch yank owner signin sources cert cleanup pristine exec build"
                )
            },
            effects=(Effect.INSTALL, Effect.NETWORK),
        ),
        ("gem install evil => dangerous: install, network", "gem => unknown"),
    ),
    Row(
        "conda mamba micromamba",
        verbs(
            looking={
                "list": look(flags="ef --export --json", values="n --name"),
                "info": look(flags="es a --envs --json"),
                "env": verbs(
                    looking={"list": look(flags="--json")},
                    far={"changes environments": "create remove update export config"},
                ),
            },
            far={
                "installs, removes or runs": (
                    "install remove update create clean config run search activate deactivate init uninstall "
                    "upgrade build"
                )
            },
            effects=(Effect.INSTALL, Effect.NETWORK),
        ),
        ("* install evil => dangerous: install, network", "* --version => safe", "* a.txt => unknown"),
    ),
    Row(
        "rustup",
        verbs(
            looking={
                "show": look(flags="v"),
                "which": look(),
                "toolchain": verbs(looking={"list": look(flags="v")}),
                "component": verbs(looking={"list": look(flags="--installed")}),
                "target": verbs(looking={"list": look(flags="--installed")}),
            },
            far={"installs or changes toolchains": "update install default override self uninstall run set"},
            effects=(Effect.INSTALL, Effect.NETWORK),
        ),
        ("rustup => unknown", "rustup --version => safe"),
    ),
    Row(
        "composer",
        verbs(
            building="licenses show validate",
            far={
                "installs, removes or runs": (
                    "install update require remove global create-project self-update exec run-script "
                    "dump-autoload outdated config publish"
                )
            },
            effects=(Effect.INSTALL, Effect.NETWORK),
        ),
        ("composer => unknown", "composer --version => safe"),
    ),
    Row(
        "dotnet",
        verbs(
            looking={"--info": look(), "--list-sdks": look(), "--list-runtimes": look()},
            far={"installs or publishes packages": "add remove tool nuget publish workload new restore sdk"},
            building="build clean format msbuild pack run test vstest watch",
            effects=(Effect.INSTALL, Effect.NETWORK),
        ),
        ("dotnet => unknown", "dotnet --version => safe"),
        tasks=True,
    ),
    Row(
        "mvn",
        steered(
            verbs(
                far={"publishes": "deploy release:perform release:prepare", "installs packages": "install"},
                building=(
                    "-q clean compile dependency:tree package site spotless:apply spotless:check test "
                    "test-compile validate verify"
                ),
                versions="--help --version -h -v",
            )
        ),
        ("mvn --version => ordinary", "mvn => unknown"),
        tasks=True,
    ),
    Row(
        "gradle",
        verbs(
            far={"publishes": "publish publishToMavenLocal uploadArchives"},
            building=(
                "assemble build check clean compileJava compileKotlin dependencies ktlintCheck lint projects "
                "properties run spotlessApply spotlessCheck tasks test"
            ),
            versions="--help --version -h -v",
        ),
        ("gradle => unknown", "gradle --version => safe"),
        tasks=True,
    ),
    Row(
        "terraform tofu",
        verbs(
            looking={
                "version": look(flags="json"),
                "fmt": terraform_fmt,
                "validate": everyday,
                "providers": everyday,
                "graph": everyday,
            },
            far={
                "acts on infrastructure, or shows its secrets": (
                    "apply destroy import init plan state taint untaint console output show refresh login logout "
                    "workspace force-unlock get test"
                )
            },
            effects=(Effect.NETWORK,),
        ),
        ("* apply -auto-approve => dangerous: network", "* fmt -diff => ordinary", "* fmt -check => safe"),
        looks="fmt -check, fmt -check -recursive, fmt -recursive -check, fmt -check -diff",
    ),
    Row(
        (
            "yum dnf apk zypper port nix-env emerge dpkg-reconfigure easy_install twine flit cpan cpanm luarocks "
            "opam cabal stack choco winget scoop mise corepack vcpkg conan serverless sam cdk vercel netlify "
            "heroku wrangler firebase gcloud aws az gsutil doctl eksctl ansible ansible-playbook ansible-vault "
            "vagrant packer nix nix-shell cook chef puppet salt linode-cli ibmcloud oc argocd flux vault op bw "
            "pass gopass lpass consul nomad"
        ),
        elsewhere,
        ("* install evil => dangerous: install, network", "* --version => safe"),
    ),
    Row(
        "pacman",
        elsewhere,
        ("pacman -Q => safe", "pacman -Syu => dangerous: install, network"),
        asks=r"-Q[eqdmtil]*|--version",
    ),
    Row(
        "snap",
        elsewhere,
        ("snap list => safe", "snap install evil => dangerous: install, network"),
        looks="list, version",
    ),
    Row("flatpak", elsewhere, ("flatpak => dangerous: install, network", "flatpak --version => safe"), looks="list"),
    Row(
        "volta", elsewhere, ("volta => dangerous: install, network", "volta --version => safe"), looks="list, list all"
    ),
    Row("nvm", elsewhere, ("nvm ls => safe", "nvm => dangerous: install, network"), looks="ls, list, current, version"),
    Row(
        "pyenv",
        elsewhere,
        ("pyenv versions => safe", "pyenv install 3 => dangerous: install, network"),
        looks=(
            "versions, versions --bare, version, version-name, root, global, local, shims, commands, which "
            "python, which python3, which pip, whence python"
        ),
    ),
    Row(
        "asdf",
        elsewhere,
        ("asdf current => safe", "asdf => dangerous: install, network"),
        looks="current, list, plugin list, version",
    ),
    Row(
        "rbenv",
        elsewhere,
        ("rbenv => dangerous: install, network", "rbenv --version => safe"),
        looks="versions, version, root, global, local",
    ),
    Row(
        "helm",
        elsewhere,
        ("helm version --short => safe", "helm uninstall app => dangerous: install, network"),
        looks="version, version --short, plugin list, --version",
    ),
    Row(
        "pulumi flyctl skaffold",
        elsewhere,
        ("* up --yes => dangerous: install, network", "* --version => safe"),
        looks="version, --version",
    ),
    Row("fly", elsewhere, ("fly => dangerous: install, network", "fly --version => safe"), looks="--version"),
)
