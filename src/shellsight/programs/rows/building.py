"""Programs that build, test and publish a project."""

from __future__ import annotations

from shellsight.programs.archives import listed
from shellsight.programs.building import cmake, coded, exempted, hyperfine, loading_tool, make, precommit, tool
from shellsight.programs.row import Row
from shellsight.words.call import always, dangerous, ordinary
from shellsight.words.form import Operands, form
from shellsight.words.verbs import look, verbs

ROWS = (
    Row(
        (
            "as astro autoconf autoflake automake autopep8 ava babel bandit behave biome brakeman buck2 "
            "bumpversion clang-format clang-tidy clippy-driver codespell commitizen configure cosmic-ray coverage "
            "cpack cspell ctest cypress cython cz dart deptry docformatter dot doxygen dune esbuild eslint flake8 "
            "gcov goimports golangci-lint gprof granian gunicorn hlint hypercorn hypothesis import-linter "
            "interrogate javac jupyter jupytext kotlinc ktlint lcov licensecheck lint-imports locust markdownlint "
            "markdownlint-cli2 maturin minitest mkdocs mocha monkeytype mutmut nbconvert next nim nose2 nuitka "
            "nuxt oxlint parcel php-cs-fixer phpstan phpunit pip-audit pip-compile playwright prettier psalm "
            "pyan3 pydeps pyinstaller pyre pyupgrade radon ranlib rebar3 reuse robot rollup rspec rubocop rustfmt "
            "scalac scons setup-py snakeviz sphinx-build sqlfluff standard staticcheck strip stubgen stubtest "
            "stylelint stylish-haskell swc swiftc towncrier tslint ty unittest uvicorn vale vite vue-tsc webpack "
            "xcodebuild xenon xo yapf zensical"
        ),
        tool,
        (
            "* app --host 0.0.0.0 => dangerous: looks at app, looks at 0.0.0.0, network",
            "* run -m pytest => ordinary: looks at run, looks at pytest",
            "* --version => safe",
        ),
    ),
    Row("celery", loading_tool, ("celery -A app purge => dangerous", "celery => ordinary"), far="purge", code="shell"),
    Row(
        "mypy",
        tool,
        ("mypy src => ordinary: looks at src", "mypy --install-types src => dangerous: runs code"),
        code="--python-e --install",
    ),
    Row(
        "c++ cc clang clang++ g++ gcc",
        coded("-B -fplugin -wrapper -specs -Xclang -load"),
        (
            "* -o/home/me/x x.c => ordinary: writes /home/me/x, looks at x.c",
            "* -wrapper ./evil.sh x.c => dangerous: runs code",
            "* --version => safe",
        ),
    ),
    Row("ant lerna turbo", tool, ("* --version => safe", "* a.txt => ordinary: looks at a.txt"), tasks=True),
    Row(
        "alembic doit invoke just nox nx task",
        loading_tool,
        (
            "* release-notes => dangerous: looks at release-notes",
            "* test => ordinary: looks at test",
            "* --version => safe",
        ),
        tasks=True,
    ),
    Row(
        "pylint",
        tool,
        ("pylint src => ordinary: looks at src", "pylint --init-hook 'import os' src => dangerous: runs code"),
        code="--init",
    ),
    Row("swift", tool, ("swift -e 'exit(0)' => dangerous: runs code", "swift => ordinary"), code="-e -load"),
    Row(
        "bazel bazelisk",
        tool,
        ("* clean --expunge => dangerous", "* --version => safe", "* a.txt => ordinary: looks at a.txt"),
        far="clean shutdown",
    ),
    Row("punie", always(dangerous("starts an agent")), ('punie --mode auto ask "delete everything" => dangerous',)),
    Row(
        "hyperfine",
        hyperfine,
        (
            "hyperfine --version => safe",
            "hyperfine --warmup=3 -r5 ls => ordinary: looks at 3, looks at ls, looks at .",
            'hyperfine "rm -rf x" => dangerous: looks at rm -rf x, deletes x/**',
            "hyperfine 'rm -rf /' => forbidden: looks at rm -rf , deletes /**, writes /",
        ),
    ),
    Row("buf semantic-release", exempted, ("* --version => safe", "* push => dangerous: network")),
    Row(
        "mix",
        loading_tool,
        ("mix test => ordinary: looks at test", "mix run -e 'System.halt()' => dangerous: runs code"),
        code="-e --eval -r --require eval cmd",
        tasks=True,
    ),
    Row("jest py.test pytest vitest", loading_tool, ("* -q => ordinary", "* --version => safe")),
    Row(
        "basedpyright pyright",
        tool,
        ("* --version => safe", "* a.txt => ordinary: looks at a.txt", "* --pythonpath => dangerous: runs code"),
        code="--pythonpath",
    ),
    Row(
        "pandoc",
        tool,
        (
            "pandoc -o .mcp.json x.md => ordinary: writes .mcp.json, looks at x.md",
            "pandoc README.md -o ~/.bashrc => dangerous: looks at README.md, writes /home/me/.bashrc, environment",
        ),
        code="--filter -F --lua-filter -L --pdf-engine -d --defaults",
    ),
    Row("meson", tool, ("meson test => ordinary: looks at test", "meson install => dangerous"), far="install"),
    Row(
        "kotlin",
        tool,
        ("kotlin => ordinary", "kotlin --version => safe", "kotlin -e => dangerous: runs code"),
        code="-e -expression",
    ),
    Row(
        "pre-commit",
        precommit,
        ("pre-commit run --all-files => ordinary: looks at run", "pre-commit install => dangerous: git history"),
    ),
    Row(
        "java",
        coded("-agentpath -agentlib -javaagent -cp -classpath --class-path -jar -Xbootclasspath -XX:OnError -XX:OnOut"),
        ("java => ordinary", "java --version => safe"),
    ),
    Row("crystal", tool, ("crystal eval 'exit' => dangerous: runs code", "crystal => ordinary"), code="eval"),
    Row(
        "ld",
        tool,
        (
            "ld --dynamic-linker=./evil x.o -o ~/x => ordinary: looks at evil, looks at x.o, writes /home/me/x",
            "ld --version => safe",
            "ld -plugin => dangerous: runs code",
        ),
        code="-plugin --plugin",
    ),
    Row(
        "ar",
        listed("t tv -t -tv", "", tool),
        (
            "ar t libfoo.a => safe: reads libfoo.a",
            "ar x lib.a --output ~/x => ordinary: looks at x, looks at lib.a, writes /home/me/x",
        ),
    ),
    Row(
        "pdflatex",
        tool,
        ("pdflatex --shell-escape paper.tex => dangerous: runs code", "pdflatex => ordinary"),
        code="-shell-escape --shell-escape -enable-write18 --enable-write18 \\",
    ),
    Row(
        "ninja",
        tool,
        ("ninja -C build => ordinary: looks at build", "ninja --version => safe", "ninja install => dangerous"),
        far="install uninstall",
    ),
    Row(
        "sbt",
        loading_tool,
        ("sbt 'eval sys.exit()' => dangerous: runs code", "sbt => ordinary"),
        code="eval",
        tasks=True,
    ),
    Row(
        "pkg-config",
        form(
            flags=(
                "--cflags --libs --exists --modversion --list-all --static --print-errors --cflags-only-I "
                "--libs-only-l --libs-only-L --print-requires --print-variables --help --version"
            ),
            values="--variable --atleast-version --exact-version --max-version",
            operands=Operands.TEXT,
        ),
        ("pkg-config --modversion openssl => safe", "pkg-config --define-variable=a=b x => unknown"),
    ),
    Row("ocaml", tool, ("ocaml -e 'exit 0' => dangerous: runs code", "ocaml => ordinary"), code="-e -init -pp"),
    Row(
        "ghc",
        coded("-e -F -pgm -package-env"),
        ("ghc -e 'System.Process.system \"rm -rf x\"' => dangerous: runs code", "ghc => ordinary"),
    ),
    Row(
        "protoc",
        tool,
        ("protoc => ordinary", "protoc --version => safe", "protoc --plugin => dangerous: runs code"),
        code="--plugin",
    ),
    Row(
        "latexmk",
        tool,
        ("latexmk -pdf a.tex => ordinary: looks at a.tex", "latexmk -e 'system(1)' paper.tex => dangerous: runs code"),
        code=(
            "-e --e -r -pdflatex= --pdflatex= -latex= --latex= -xelatex= --xelatex= -lualatex= --lualatex= "
            "-shell-escape --shell-escape"
        ),
    ),
    Row(
        "django-admin",
        loading_tool,
        ("django-admin shell -c 'x' => dangerous: runs code", "django-admin => ordinary"),
        code="shell dbshell",
        tasks=True,
    ),
    Row("flutter", tool, ("flutter clean => dangerous", "flutter => ordinary"), far="clean upgrade"),
    Row(
        "rustc",
        verbs(
            looking={"--print": look()},
            versions="--help --version -V -h -vV",
            bare=ordinary("rustc: builds, checks or changes the project"),
        ),
        ("rustc => ordinary", "rustc --version => safe"),
    ),
    Row(
        "flask",
        loading_tool,
        ("flask routes => ordinary: looks at routes", "flask shell => dangerous: runs code"),
        code="shell",
        tasks=True,
    ),
    Row(
        "cmake",
        cmake,
        (
            "cmake -E rm -rf ~/x => dangerous: writes /home/me/x",
            "cmake -E env --unset=X A=b rm -rf / => forbidden: writes /, deletes /**",
        ),
        far="--install install",
    ),
    Row(
        "rake",
        loading_tool,
        ("rake test => ordinary: looks at test", "rake -e 'exit' => dangerous: runs code"),
        code="-e -E -p --execute --eval",
        tasks=True,
    ),
    Row("zig", tool, ("zig version => safe", "zig => ordinary"), looks="version"),
    Row(
        "gmake make",
        make,
        ("* SHELL=./evil.sh => dangerous: runs code", "* => ordinary", "* --version => safe"),
        tasks=True,
    ),
    Row(
        "otool",
        form(flags="-L -l -h -f -t -v -V -tV -D -I -d -X", single=True),
        (
            "otool -L build/app => safe: reads build/app",
            "otool -arch all -x y @f => unknown: reads all, reads y, reads @f",
        ),
    ),
    Row(
        "pipdeptree",
        form(
            flags="ralfu --reverse --all --local-only --freeze --json --json-tree --user-only --help --version",
            values="pewd --packages --exclude --warn --depth",
            operands=Operands.NONE,
        ),
        ("pipdeptree -p flask => safe", "pipdeptree --python ./x => unknown"),
    ),
)
