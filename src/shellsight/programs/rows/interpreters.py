"""Shells and interpreters."""

from __future__ import annotations

from shellsight.programs.row import Row
from shellsight.programs.shells import interpreter, manage, managed, shell

ROWS = (
    Row(
        "sh bash zsh dash ksh ash mksh rbash yash fish csh tcsh",
        shell,
        (
            '* -c "rm -rf ~/x" => dangerous: deletes /home/me/x/**, writes /home/me/x',
            "* plan.txt => ordinary: reads plan.txt",
            "* --norc --login -c 'rm -rf /' => forbidden: deletes /**, writes /",
        ),
    ),
    Row(
        (
            "python python2 python3 python3.7 python3.8 python3.9 python3.10 python3.11 python3.12 python3.13 "
            "python3.14 python3.15 pypy pypy3"
        ),
        managed(
            interpreter(
                code="-c",
                flags="-B -E -I -O -OO -P -S -b -bb -d -q -s -u -v -x",
                values="-W -X",
                module="-m",
                shown="--help --version -V -VV -h",
                judged="-c",
            )
        ),
        (
            "* -m pip install --user evil => dangerous: install, network",
            "* -m pytest tests => ordinary: looks at tests",
            "* --version => safe",
            "* -c 'import app; print(app.version())' => ordinary: runs code",
            "* -c 'import os; os.remove(\"x\")' => dangerous: runs code",
        ),
    ),
    Row(
        "node nodejs",
        interpreter(
            code="--eval --experimental-loader --import --loader --print --require -e -p -pe -r",
            flags=(
                "--enable-source-maps --experimental-strip-types --harmony --no-warnings --test "
                "--trace-warnings --use-strict --watch"
            ),
            values="--max-old-space-size --stack-size",
            shown="--help --version -h -v",
            check="--check -c",
        ),
        (
            "* --eval='process.exit()' => dangerous: runs code",
            "* --version => safe",
            "* -- -e.js => ordinary: reads -e.js",
        ),
    ),
    Row(
        "perl",
        # No option only parses: `-c` runs BEGIN blocks and whatever is imported.
        interpreter(code="-E -M -d -e -i -m -n -p", flags="-T -W -c -t -w"),
        (
            "perl -c evil.pl => ordinary: reads evil.pl",
            "perl -pi -e 's/a/b/' ~/.bashrc => dangerous: writes /home/me/.bashrc, runs code",
        ),
    ),
    Row(
        "ruby",
        interpreter(code="-C -e -i -n -p -r -x", flags="-W -w", check="-c"),
        ("ruby -c a.rb => safe: reads a.rb", "ruby -e 'File.delete(\"x\")' => dangerous: runs code"),
    ),
    Row(
        "php",
        interpreter(code="-B -E -R -S -a -d -r", flags="-n -q", check="-l"),
        ("php -l a.php => safe: reads a.php", "php -r x => dangerous: runs code"),
        looks="-m, --ini",
    ),
    Row(
        (
            "lua luajit Rscript julia guile tclsh groovy pwsh powershell ghci iex elixir erl swipl octave R "
            "expect wish irb ipython ts-node tsx racket sbcl clojure jshell"
        ),
        interpreter(code="--eval -E -c -e -l -x", flags=""),
        (
            "* -e 'os.remove(\"x\")' => dangerous: runs code",
            "* plan.jsh => ordinary: reads plan.jsh",
            "* --version => safe",
        ),
    ),
    Row(
        "scala",
        interpreter(code="--eval -E -c -e -l -x", flags=""),
        ("scala => dangerous: runs code", "scala --version => safe"),
        looks="-version",
    ),
    Row("manage.py", manage, ("manage.py => ordinary",)),
)
