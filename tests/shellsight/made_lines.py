"""Pieces that make lines in which shells might differ, thrown together; nothing in them does harm if it is run."""

from __future__ import annotations

from hypothesis import strategies as st

PIECES = (
    "p", "p ", "p a", " ", "  ", "\t", "\n", "\\\n", " \\\n ", ";", " ; ", "&", "&&", " && ", " || ", "|", " | ", "|&",
    "(", ")", "{ ", "; }", "}", "'", '"', "'a b'", '"a b"', '"$(p q)"', "$(p x)", "$(", "`p y`", "`", "\\", "\\\\",
    "\\'", '\\"', "\\`", "\\$", "$", "$$", "#", " #c", " # c\n", "a#b", "a", "b", "-n", "--x=y", "=", "==", "=a", "a=b",
    "A=b ", "A='x y' ", "~", "a~", "!", " ! ", "! ", "^", "%", "@", "{}", "{a}", "{a,b}", "{1..3}", "[", "]", "[a]",
    "*", "?", "1", "2", " >f", " > f ", " 2>f", " 2>&1", " >>f ", " >|f", " &>f", " &> f", "12>f", " <<<a", " <<<'a b'",
    "h <<E\na b\nE\n", "h <<'E'\n$a `b`\\\nE\n", "h <<-E\n\ta\n\tE\n", "h <<E | p x\nb\\$c\\d\nE\n", 'h <<"E"\n\'\nE\n',
    'h <<\\E\n"\nE\n', '"$(h <<E\nx\nE\n)"', "<<", "<<E", "<<-E ", "E\n", "\nE\n",
    "if p; then p a; fi", "if ! p c; then p a; else p b; fi", "for i in a b; do p c; done", "for i in 1; do ", "done",
    "if", "then", "fi", "do ", "else ", "case a in a) p;; esac", "time ", "in", "{", "function ", "f() { p; }; ", "f()",
    "()", "$'a'", '$"a"', "$'a\\'b'", '"a\\\nb"', '"\\a\\$\\\\"', "''", '""', "'#'", '"#"', ",", ".", "/", ":", "é",
    "\u00a0", "λ", "à", '"é\u00a0"', "-", "+", "p 'it'\\''s'", 'p "it\'s"', "coproc ", "[[ ", "]]", "((", "))",
    "$((1+2))", "<(p a)", ";;", "\\;", "\\(", "\\ ", "\\#", "a\\ b", "a\\\nb", "\r", "*(a)", "$(p `p z`)", '"`p w`"',
    "$(( ", "${", "${a}", "${a:-b}",
)  # fmt: skip
PLAIN = (
    " a", " 'b c'", ' "d e"', " f\\ g", "; p x", " && p y", " | p z", "\np w", " $(p s)", ' "$(p t)"', " `p u`", " >o",
    " 2>&1", " #k\n", " & p v", "; h <<E\nx\nE\n",
)  # fmt: skip

LINES = st.builds(
    "".join,
    st.tuples(st.sampled_from(("p ", "")), st.lists(st.sampled_from(PIECES + 3 * PLAIN), max_size=8).map("".join)),
)
"""About a third of them are lines that every shell reads alike."""
