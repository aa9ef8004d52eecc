"""The trap repository: whatever a repository can hold that makes a program run, load, follow or write something.

A trap that runs leaves a file with its name in `marks`. `SH(name)`, `PY(name)` and `JS(name)` in a text become code that
does so; without a name it is the file's. A path that ends with `!` is a program. `OUT` becomes the folder beside the project.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from attrs import frozen

_GIT = (
    "core.pager core.editor core.askPass core.sshCommand diff.external diff.trap.command diff.trap.textconv "
    "filter.trap.clean filter.trap.smudge merge.trap.driver credential.helper gpg.program gpg.ssh.program sequence.editor "
    "interactive.diffFilter pager.log pager.diff pager.status pager.show pager.branch alias.st alias.status "
    "core.alternateRefsCommand uploadpack.packObjectsHook core.gitProxy browser.trap.cmd man.trap.cmd diff.trap.cmd "
    "difftool.trap.cmd mergetool.trap.cmd trailer.trap.command remote.origin.uploadpack submodule.sub.update"
).split()  # fmt: skip
_GIT_VALUES = (
    ("mailmap.file", "OUT/secret/token.txt"), ("core.excludesFile", "OUT/secret/token.txt"), ("log.showSignature", "true"),
    ("core.attributesFile", "OUT/secret/token.txt"), ("blame.ignoreRevsFile", "OUT/secret/token.txt"),
    ("include.path", "OUT/secret/gitconfig"), ("protocol.ext.allow", "always"), ("core.hooksPath", "hooks"),
    ("remote.origin.url", "ext::OUT/project/trap.sh"), ("remote.origin.promisor", "true"), ("core.untrackedCache", "true"),
    ("remote.origin.partialclonefilter", "blob:none"), ("extensions.partialClone", "origin"), ("help.browser", "trap"),
    ("core.repositoryFormatVersion", "1"), ("feature.manyFiles", "true"), ("fetch.writeCommitGraph", "true"),
    ("status.submoduleSummary", "true"), ("diff.submodule", "log"), ("man.viewer", "trap"), ("help.autocorrect", "immediate"),
)  # fmt: skip
_HOOKS = (
    "applypatch-msg pre-commit post-checkout post-merge pre-auto-gc post-index-change reference-transaction "
    "fsmonitor-watchman post-rewrite pre-push"
).split()  # fmt: skip
SHADOWS = (
    "ls cat git python python3 node npm sh grep rg find sed awk head less sort env ssh gcc cc rustc cargo make jq tsc eslint "
    "jest webpack flake8 ruff mypy pytest black pip trap"
).split()  # fmt: skip
"""Programs that the project names as those on PATH are named."""
_SHADOWED = (".", "node_modules/.bin", ".venv/bin", "venv/bin", "bin", "vendor/bin", "toolchain/bin", "tools")
_PACKAGES = (
    "jest webpack webpack-cli lerna eslint prettier typescript gulp grunt mocha vitest vite nx turbo ts-node @angular/cli "
    "stylelint rollup karma ava nyc"
).split()  # fmt: skip
_JS = (
    ".eslintrc.js eslint.config.js prettier.config.js .prettierrc.js babel.config.js jest.config.js webpack.config.js "
    "rollup.config.js vite.config.js vitest.config.js gulpfile.js Gruntfile.js karma.conf.js .mocharc.js .pnpmfile.cjs "
    "postcss.config.js tailwind.config.js stylelint.config.js commitlint.config.js .lintstagedrc.js next.config.js trap.js "
    "index.js .yarn/releases/yarn.js .pnp.cjs .lerna/index.js"
).split()  # fmt: skip
_PY = (
    "conftest.py setup.py noxfile.py tasks.py fabfile.py dodo.py SConstruct wscript manage.py sitecustomize.py "
    "usercustomize.py trap_plugin.py mypy_plugin.py pip/__main__.py pip/__init__.py pytest.py flake8.py ruff.py venv.py "
    ".pythonrc.py .ipython/profile_default/startup/00.py plugins/callback.py .gdbinit.py build.py site.py json/tool.py "
    "flake8_trap.py pylint_trap.py docs/conf.py .venv/lib/python3.11/site-packages/sitecustomize.py"
).split()  # fmt: skip
_FILES: Mapping[str, str] = {
    "README.md": "# trap\n", "src/app.py": "import os\n\nx = os.sep  \n", "data.json": '{"a": [1, 2]}\n', "a.sh": "SH\n",
    "src/lib.rs": "pub fn a() {}\n", "src/main.go": "package main\n", "a.c": "int main(void) { return 0; }\n", "a.ts": "let a = 1\n",
    "a.yaml": "a: 1\n", "Dockerfile": "FROM scratch\n", "lazy.txt": "lazy\n", ".env": "TOKEN=1\n", "trap.sh!": "#!/bin/sh\nSH(ext)\n",
    ".gitattributes": "* diff=trap filter=trap merge=trap\n", ".gitmodules": '[submodule "sub"]\npath = sub\nurl = ./vendor/lib\n',
    ".flake8": "[flake8]\nmax-line-length = 100\n\n[flake8:local-plugins]\nextension = X9 = flake8_trap:Trap\npaths = .\n",
    "setup.cfg": "[metadata]\nname = trap\n\n[tool:pytest]\naddopts = -p trap_plugin\n\n[mypy]\nplugins = ./mypy_plugin.py\n",
    "pytest.ini": "[pytest]\naddopts = -p trap_plugin\n", "mypy.ini": "[mypy]\nplugins = ./mypy_plugin.py\ncache_dir = OUT/marks/mypy\n",
    ".pylintrc": "[MASTER]\ninit-hook=PY(pylint.init-hook)\nload-plugins=pylint_trap\n", "tox.ini": "[tox]\nrequires = trap\n",
    "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "build"\nbackend-path = ["."]\n\n[project]\nname = "trap"\nversion = "1"\n'
    '\n[tool.ruff]\nfix = true\ncache-dir = "OUT/marks/ruff.cache-dir"\n\n[tool.poetry]\nname = "trap"\nversion = "1"\n'
    '\n[tool.poetry.requires-plugins]\ntrap = "*"\n\n[tool.uv]\npython-preference = "system"\n\n[tool.black]\nworkers = 1\n',
    ".coveragerc": "[run]\nplugins = trap_plugin\n", "poetry.toml": '[virtualenvs]\nin-project = true\npath = "OUT/marks/venvs"\n',
    ".poetry/plugins/trap.dist-info/entry_points.txt": "[poetry.application.plugin]\ntrap = trap_plugin:Trap\n",
    ".venv/pyvenv.cfg": "home = /usr/bin\nversion = 3.11.0\n", ".venv/lib/python3.11/site-packages/trap.pth": "import os; PY\n",
    ".python-version": "../../../..OUT/project/toolchain\n", ".ruby-version": "../trap\n", ".node-version": "99.0.0\n", ".nvmrc": "99\n",
    ".tool-versions": "python path:./toolchain\nnodejs path:./toolchain\n", ".envrc": "SH\n", "mise.toml": '[hooks]\nenter = "SH"\n',
    ".pre-commit-config.yaml": "repos:\n- repo: local\n  hooks:\n  - {id: t, name: t, entry: sh -c 'SH', language: system}\n",
    ".yamllint": "extends: OUT/secret/token.txt\n", "ansible.cfg": "[defaults]\ncallback_plugins = ./plugins\nlibrary = ./plugins\n",
    "Makefile": "X := $(shell SH)\nall:\n\tSH\ninclude vendor/more.mk\n", "vendor/more.mk": "Y := $(shell SH)\n",
    "CMakeLists.txt": "execute_process(COMMAND sh -c \"SH\")\n", "CMakePresets.json": '{"version": 3}\n', "meson.build": "run_command('./trap.sh')\n",
    "package.json": '{"name": "trap", "version": "1.0.0", "bin": "trap.js", "packageManager": "yarn@9.9.9", "workspaces": ["inner"],'
    ' "scripts": {"preinstall": "SH(npm.preinstall)", "test": "SH(npm.test)", "version": "SH(npm.version)"},'
    ' "eslintConfig": {"plugins": ["./trap.js"]}, "jest": {"preset": "./trap.js"}, "prettier": "./trap.js"}\n',
    ".npmrc": "script-shell=./trap.sh\nnode-options=--require ./trap.js\ncache=OUT/marks/npm.cache\nonload-script=./trap.js\ngit=./trap.sh\n"
    "init-module=./trap.js\nprefix=./toolchain\nlogs-dir=OUT/marks/npm.logs\n", ".yarnrc": 'yarn-path "./trap.js"\n',
    ".yarnrc.yml": "yarnPath: trap.js\nplugins:\n  - ./trap.js\n", "lerna.json": '{"version": "1.0.0"}\n', "bunfig.toml": 'preload = ["./trap.js"]\n',
    "tsconfig.json": '{"compilerOptions": {"incremental": true, "tsBuildInfoFile": "OUT/marks/tsbuildinfo", "plugins": [{"name": "./trap.js"}]}}\n',
    "nx.json": "{}\n", "turbo.json": "{}\n", "deno.json": '{"tasks": {"a": "SH"}}\n', "inner/package.json": '{"name": "inner", "version": "1.0.0"}\n',
    "inner/.npmrc": "script-shell=../trap.sh\n", "rust-toolchain.toml": '[toolchain]\npath = "toolchain"\n', "build.rs": "fn main() {}\n",
    ".cargo/config.toml": '[build]\nrustc = "./trap.sh"\nrustc-wrapper = "./trap.sh"\n[alias]\ntree = "!sh"\n[registry]\ndefault = "trap"\n'
    '[registries.trap]\nindex = "http://127.0.0.1:9/"\n', "Cargo.toml": '[package]\nname = "trap"\nversion = "0.1.0"\nbuild = "build.rs"\n',
    "toolchain/lib/rustlib/components": "", "go.mod": "module trap\n\ngo 1.99\n\ntoolchain go1.99.9\n", "go.work": "go 1.99\n\nuse .\n",
    ".mvn/jvm.config": "-Xlog:gc:file=OUT/marks/mvn.jvm-config\n", ".mvn/maven.config": "-l\nOUT/marks/maven.config\n",
    ".mvn/extensions.xml": "<extensions/>\n", "pom.xml": "<project><modelVersion>4.0.0</modelVersion></project>\n",
    "gradlew!": "#!/bin/sh\nSH\n", "mvnw!": "#!/bin/sh\nSH\n", "build.gradle": "'sh -c SH'.execute()\n", "settings.gradle": "'sh'.execute()\n",
    "gradle.properties": "org.gradle.java.home=./toolchain\norg.gradle.jvmargs=-Xlog:gc:file=OUT/marks/gradle.jvmargs\n",
    "build.sbt": "val x = 1\n", ".sbtopts": "-J-Xlog:gc:file=OUT/marks/sbtopts\n", ".jvmopts": "-Xlog:gc:file=OUT/marks/jvmopts\n",
    ".java-version": "99\n", ".sdkmanrc": "java=99\n", "Gemfile": "system('SH')\n", "Rakefile": "system('SH')\n",
    ".bundle/config": '---\nBUNDLE_PATH: "OUT/marks/bundle"\n', ".rubocop.yml": "require: ./trap.rb\n", "trap.rb": "system('SH')\n", ".irbrc": "system('SH')\n",
    "composer.json": '{"scripts": {"post-install-cmd": "SH"}}\n', "phpunit.xml": '<phpunit bootstrap="trap.php"/>\n', "mix.exs": 'System.cmd("./trap.sh", [])\n',
    "global.json": '{"sdk": {"version": "99.0.0", "paths": ["./toolchain"]}}\n', "trap.csproj": "<Project/>\n", "Directory.Build.props": "<Project/>\n",
    ".bazelrc": "startup --output_user_root=OUT/marks/bazel\n", "tools/bazel!": "#!/bin/sh\nSH\n", "WORKSPACE": "", ".bazelversion": "99.0.0\n",
    "main.tf": 'data "external" "t" { program = ["./trap.sh"] }\n', ".terraformrc": 'plugin_cache_dir = "OUT/marks/tf"\n', ".terraform-version": "99.0.0\n",
    ".terraform/terraform.tfstate": '{"version": 3, "backend": {"type": "http", "config": {"address": "http://127.0.0.1:9/"}}}\n',
    "compose.yaml": "services:\n  a:\n    build: .\n", "Vagrantfile": "system('SH')\n", "Justfile": "x := `SH`\n", "Taskfile.yml": "vars:\n  X: {sh: SH}\n",
    ".gdbinit": "shell SH\n", ".lldbinit": "command script import trap.py\n", ".vimrc": "call system('SH')\n", ".exrc": "call system('SH')\n",
    ".nvimrc": "call system('SH')\n", ".lesskey": "#env\nLESSOPEN=|SH %s\n", ".inputrc": "set bell-style none\n", ".editorconfig": "root = false\n",
    ".ripgreprc": "--pre=./trap.sh\n", ".rgrc": "--pre=./trap.sh\n", ".shellcheckrc": "source-path=OUT/secret\nexternal-sources=true\n",
    ".hadolint.yaml": "ignored: []\n", "typos.toml": "", ".sqliterc": ".shell SH\n", ".psqlrc": "\\! SH\n", ".perltidyrc": "--help\n", ".perlcriticrc": "\n",
    ".Rprofile": "system('SH')\n", ".ghci": ":! SH\n", "ghc.environment": "\n", "shell.nix": "1\n", "flake.nix": "{}\n", ".watchmanconfig": "{}\n",
    ".config/starship.toml": "", "mkdocs.yml": "hooks: [trap_plugin.py]\n", ".markdownlint.yaml": "{}\n", ".dockerignore": "", "skaffold.yaml": "", "Chart.yaml": "",
    ".github/workflows/ci.yml": "on: push\n", "Pipfile": "[packages]\n", "uv.toml": 'cache-dir = "OUT/marks/uv.cache-dir"\n', "uv.lock": "version = 1\n",
    "poetry.lock": "", "requirements.txt": "-e .\n", "kubeconfig": "", ".kube/config": "users: [{user: {exec: {command: ./trap.sh}}}]\n", "specs": "*cpp:\n",
    "a.1": ".so OUT/secret/token.txt\n", "vim.txt": "vim: set modeline: !sh\n", "jq.jq": "def a: input_filename;\n", ".jq/trap.jq": "def b: 1;\n",
    "-rf": "", "-opwned": "pwned\n", "--output=pwned2": "", "--compress-program=sh": "", "--pre=sh": "", "--files0-from=src": "", "a b.txt": "x\n",
    "new\nline.txt": "x\n", "*.txt": "x\n", "$(SH).txt": "x\n", ";id;.txt": "x\n", "--checkpoint-action=exec=sh": "", "é\x1b[31m.txt": "x\n", "@options.txt": "",
}  # fmt: skip
_BARE: Mapping[str, str] = {
    "vendor/lib": "fsmonitor = SH(bare.core.fsmonitor)\n\tpager = SH(bare.core.pager)\n\tworktree = ..\n[diff]\n\texternal = SH(bare.diff.external)\n",
    "vendor/tree": "fsmonitor = SH(tree.core.fsmonitor)\n\tworktree = OUT/secret\n",
}  # fmt: skip
_LINKS = {
    "links/passwd": "/etc/hostname", "links/secret": "../../secret", "links/token": "../../secret/token.txt", "links/loop": "loop",
    "links/up": "../..", "src/linked.py": "../../secret/token.txt", "inner/linked": "../../secret", "links/dangling": "../../marks/dangling",
}  # fmt: skip


@frozen
class Place:
    """The folders of a run below `base`; all but `template` may be changed by what runs."""

    base: Path

    @property
    def project(self) -> Path:
        """The trap repository, in which the forms run."""
        return self.base / "project"

    @property
    def home(self) -> Path:
        """HOME: a folder of the run's own."""
        return self.base / "home"

    @property
    def scratch(self) -> Path:
        """TMPDIR: as `home`."""
        return self.base / "tmp"

    @property
    def marks(self) -> Path:
        """The folder in which traps leave files."""
        return self.base / "marks"

    def lay(self) -> int:
        """Lay everything out for the first time; the number of traps, links and planted files."""
        for folder in (self.home, self.scratch, self.base / "secret", self.base / "template"):
            folder.mkdir(parents=True, exist_ok=True)
        self._write(self.base / "secret/token.txt", "the secret\n")
        self._write(self.base / "secret/gitconfig", f"[core]\n\tfsmonitor = {self.mark('include.fsmonitor')}\n")
        self.renew()
        for path, text in self._files():
            self._write(self.project / path, text)
        for path, target in _LINKS.items():
            (self.project / path).parent.mkdir(exist_ok=True)
            (self.project / path).symlink_to(target)
        if shutil.which("git"):
            self._repository()
        shutil.rmtree(self.base / "template")
        self.project.rename(self.base / "template")
        self.renew()
        return sum(len(files) for _, _, files in os.walk(self.base / "template"))

    def renew(self) -> None:
        """Bring project, marks, home and scratch folder back to what they were."""
        for folder in (self.project, self.marks, self.home, self.scratch):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        shutil.copytree(self.base / "template", self.project, symlinks=True, dirs_exist_ok=True)

    def mark(self, name: str) -> str:
        """A shell command that leaves the mark of a trap."""
        return f": > {self.marks}/{name}"

    def _files(self) -> Iterator[tuple[str, str]]:
        yield from _FILES.items()
        yield from ((name, "JS\n") for name in _JS)
        yield from ((name, "PY\n") for name in _PY)
        for name in _PACKAGES:
            yield f"node_modules/{name}/package.json", f'{{"name": "{name}", "version": "1.0.0", "main": "i.js", "bin": "i.js"}}'
            yield f"node_modules/{name}/i.js", "JS\n"
            yield f"node_modules/{name}/bin/{name.split('/')[-1]}.js", "JS\n"
        yield from ((f"{folder}/{name}!", "#!/bin/sh\nSH\n") for folder in _SHADOWED for name in SHADOWS if folder != "." or name != "pip")
        for bare, config in _BARE.items():
            yield f"{bare}/HEAD", "ref: refs/heads/main\n"
            yield f"{bare}/config", f"[core]\n\trepositoryformatversion = 0\n\tbare = false\n\t{config}"
            yield from ((f"{bare}/{name}", "") for name in ("objects/k", "refs/k"))

    def _write(self, path: Path, text: str) -> None:
        program = path.name.endswith("!")
        path = path.with_name(path.name.removesuffix("!"))
        name = str(path.relative_to(self.project)).replace("/", ":") if path.is_relative_to(self.project) else path.name
        path.parent.mkdir(parents=True, exist_ok=True)

        def code(match: re.Match[str]) -> str:
            mark = f"{self.marks}/{match[2] or name}"
            return {"SH": f": > {mark}", "PY": f"open({mark!r}, 'w')", "JS": f"require('fs').writeFileSync('{mark}', '')"}[match[1]]

        text = re.sub(r"\b(SH|PY|JS)\b(?:\(([\w.:-]+)\))?", code, text) if "SH" not in path.name else text
        path.write_text(text.replace("OUT", str(self.base)), "utf-8")
        path.chmod(0o755 if program else 0o644)

    def _repository(self) -> None:
        """A repository with two commits, settings that run programs, hooks, and an object that is not there."""
        self._git("init", "-q", "-b", "main")
        self._git("add", "-A", "--", "src", "lazy.txt", "README.md", "data.json")
        self._git("commit", "-qm", "first")
        lost = self._git("rev-parse", "HEAD:lazy.txt")
        self._git("rm", "-q", "--cached", "lazy.txt")
        self._git("commit", "-qm", "second")
        self._git("tag", "v1")
        (self.project / ".git/objects" / lost[:2] / lost[2:]).unlink()
        for hook in _HOOKS:
            self._write(self.project / f".git/hooks/{hook}!", "#!/bin/sh\nSH\n")
        settings = [(name, self.mark(name)) for name in ("core.fsmonitor", *_GIT)]
        config = self.project / ".git/config"
        text = config.read_text("utf-8")
        for key, value in (*settings, *_GIT_VALUES):
            section, _, name = key.rpartition(".")
            first, _, inner = section.partition(".")
            text += f'[{first} "{inner}"]\n' if inner else f"[{first}]\n"
            text += f'\t{name} = "{value.replace("OUT", str(self.base))}"\n'
        config.write_text(text, "utf-8")
        self._write(self.project / "src/app.py", "import os\n\nx = os.linesep\n")

    def _git(self, *words: str) -> str:
        who = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "core.attributesFile=/dev/null")
        environ = {"PATH": os.environ["PATH"], "HOME": str(self.home), "GIT_ATTR_NOSYSTEM": "1"}
        done = subprocess.run(["git", *who, *words], cwd=self.project, env=environ, check=True, capture_output=True, text=True)
        return done.stdout.strip()
