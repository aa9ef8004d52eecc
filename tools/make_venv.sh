#!/bin/sh
# Makes the virtual environment $1 with the first interpreter that is new enough: $PYTHON, python3, python3.13 ... 3.11.
set -eu
venv=$1

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

for candidate in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11 python; do
    if new_enough "$candidate"; then
        echo "set-up: making $venv with $("$candidate" --version 2>&1)" >&2
        if "$candidate" -m venv --clear "$venv"; then
            exit 0
        fi
        rm -rf "$venv"
        echo "set-up: $candidate could not make a virtual environment." >&2
        echo "        On Debian and Ubuntu the module is a package of its own: install python3-venv, then run make again." >&2
        exit 1
    fi
done

found=$(python3 --version 2>&1 || echo "no python3 at all")
echo "set-up: Punie needs Python 3.11 or newer; python3 here is: $found." >&2
echo "        Install a newer one, or name it: make PYTHON=/path/to/python3.12 ..." >&2
exit 1
