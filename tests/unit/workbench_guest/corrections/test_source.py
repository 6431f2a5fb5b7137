"""Source that does not compile, in its one reading or left alone."""

from __future__ import annotations

import ast

import pytest

from workbench_guest.corrections.source import mended, problem_of

_FENCE = "```"


def _mended(text: str) -> str | None:
    assert problem_of(text) is not None
    found = mended(text, lambda one: problem_of(one) is None)
    return found.text if found is not None else None


@pytest.mark.parametrize(
    ("broken", "whole"),
    [
        (f"{_FENCE}python\nx = 1\n{_FENCE}", "x = 1"),
        (f"{_FENCE}python\nx = '''\n{_FENCE}\n'''\n{_FENCE}", f"x = '''\n{_FENCE}\n'''"),
        (f"{_FENCE}{{.python}}\nx = \u201c1\u201d\n{_FENCE}", 'x = "1"'),
        ("x = \u00abeins\u00bb", 'x = "eins"'),
        ("x = \u201ca &amp; b\u201d", 'x = "a &amp; b"'),
        ('x = \u2018say "y"\u2019', "x = 'say \"y\"'"),
        ("if x\n    y = 1\nelse\n    y = 2", "if x:\n    y = 1\nelse:\n    y = 2"),
        ("x = {\\n  'a': 1\\n}", "x = {\n  'a': 1\n}"),
        ("if a &lt; b and c &gt; d: pass", "if a < b and c > d: pass"),
        ("8: x = 1\n9: y = 2\n10: z = 3", "x = 1\ny = 2\nz = 3"),
    ],
)
def test_one_reading_is_taken(broken: str, whole: str) -> None:
    better = _mended(broken)
    assert better is not None
    assert ast.dump(ast.parse(better)) == ast.dump(ast.parse(whole))


@pytest.mark.parametrize(
    "broken",
    [
        "x = (1,",
        "x = 'open",
        "print 'two'",
        "a && b",
        "I will now read the file",
        f"{_FENCE}json\n{{}}\n{_FENCE}",
        f"{_FENCE}python\nx = 1",
        f"{_FENCE}python\nx = 1\n{_FENCE}\ny = 2",
        f"{_FENCE}python\nx = 1\n{_FENCE}\nOutput:\n{_FENCE}\n1\n{_FENCE}",
        f"{_FENCE}python\nx = (1,\n{_FENCE}\n{_FENCE}python\n2)\n{_FENCE}",
        'x = \u201cone"',
        "x = \u2018don\u2019t\u2019",
        "x = \u201c\u201cdeep\u201d\u201d",
        "return\u200bx y",
        "if x:\n\u3000\u3000y = 1",
        "x = 3\u20134 5",
        "if a &lt; 1:\n    x = '&lt;'",
        "x = &quot;&lt;b&gt;&quot; 1",
        "1: 'a',\n2: 'b',",
        "1: x = 1\n3: y = 2",
        "if x\ny = 1",
        "else if x:\n    y = 1",
    ],
)
def test_without_one_reading_nothing_is_done(broken: str) -> None:
    assert _mended(broken) is None


@pytest.mark.parametrize("broken", [f"Text\n{_FENCE}py\n1\n{_FENCE}\nend", "if 1\n  2", "x = \u201ca\u201d\ny = 2"])
def test_lines_keep_their_numbers(broken: str) -> None:
    better = _mended(broken)
    assert better is not None
    assert better.count("\n") == broken.count("\n")
    assert not better.startswith("\n")
