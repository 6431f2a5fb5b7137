"""Pairs: code with a mistake and what comes of it, and its twin, which looks alike and is run exactly as it is written.

`tool(x)` is data as a helper returns it, `tool_call(x, error)` the pair that a helper returns.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Case:
    """A cell, and what its result is."""

    code: str
    out: str | None = None
    """on stdout, without ends"""
    value: str | None = None
    error: str = ""
    """the class of what ends it"""
    did: str = ""
    """rules that acted, by blanks; no others may have"""
    hints: str = ""
    says: str = ""
    """somewhere in its traceback"""
    before: str = ""
    """another cell, first"""


_USER = """
reply = tool({"data": {"user_id": 7, "firstName": "Ada", "e-mail": "a@x", "Home Town": "Bern",
              "rows": [{"rowId": 1}, {"rowId": 2}, {"rowId": 3}]}, "successful": True})
user = reply["data"]
"""
_FENCE = "```"

BEFORE = {
    "a fence around it": (
        Case(f"{_FENCE}python\nn = 20\nprint(n + 1)\n{_FENCE}", out="21", did="fence"),
        Case(f'text = """\n{_FENCE}python\nn = 1\n{_FENCE}\n"""\nprint(text.count("`"))', out="6"),
    ),
    "a fence of tildes": (
        Case("~~~\nprint('tilde')\n~~~", out="tilde", did="fence"),
        Case("print(~1)", out="-2"),
    ),
    "two blocks and prose": (
        Case(f"Let me begin.\n{_FENCE}py\na = 5\n{_FENCE}\nThen:\n{_FENCE}py\nprint(a * a)\n{_FENCE}", out="25",
             did="fence"),
        Case(f"{_FENCE}sh\necho never\n{_FENCE}", error="SyntaxError", out=""),
    ),
    "a block beside code": (
        Case(f"Here it is:\n{_FENCE}python\nprint('in')\n{_FENCE}\n", out="in", did="fence"),
        Case(f"a = 1\n{_FENCE}python\nprint('in')\n{_FENCE}\n", error="SyntaxError", out=""),
    ),
    "a closing fence left over": (
        Case(f"print('tail')\n{_FENCE}", out="tail", did="fence"),
        Case(f"print('tail')\n{_FENCE}\nNow I will send it", error="SyntaxError", out=""),
    ),
    "a fence that is not closed": (
        Case(f"{_FENCE}\nprint('whole')\n{_FENCE}\n\n", out="whole", did="fence"),
        Case(f"{_FENCE}python\nprint('cut')", error="SyntaxError", out=""),
    ),
    "lists around a fence": (
        Case(f"Steps:\n- load\n* show\n{_FENCE}python\nprint(7)\n{_FENCE}\nOutput: 7\n- done", out="7", did="fence"),
        Case(f"n = 5\n{_FENCE}python\nprint(7)\n{_FENCE}\nm: int = 6", error="SyntaxError", out=""),
    ),
    "a fence in a list": (
        Case(f"1. Run this:\n\n   {_FENCE}python\n   if 1:\n       print(8)\n   {_FENCE}\n", out="8", did="fence"),
        Case(f"   {_FENCE}python\n   print(8)\n  print(9)\n   {_FENCE}\n", error="IndentationError", out=""),
    ),
    "a fence with nothing in it": (
        Case(f"{_FENCE}python\nprint(2)\n\n{_FENCE}", out="2", did="fence"),
        Case(f"{_FENCE}python\n{_FENCE}", error="SyntaxError", out=""),
    ),
    "typographic quotes": (
        Case("print(\u201cyes\u201d, \u2018no\u2019)", out="yes no", did="unicode"),
        Case('print("a \u201cquoted\u201d word")', out="a \u201cquoted\u201d word"),
    ),
    "a quote without another": (
        Case("s = f\u201c{1 + 1}\u201d\nprint(s)", out="2", did="unicode"),
        Case('print(\u201cyes")', error="SyntaxError", out=""),
    ),
    "no-break spaces": (
        Case("for n in (1,):\n\u00a0\u00a0print('n', n)", out="n 1", did="unicode"),
        Case("print(len('x\u00a0y'), 'x\u00a0y' == 'x y')", out="3 False"),
    ),
    "a byte order mark": (
        Case("\ufeffprint('mark')", out="mark", did="unicode"),
        Case("print(ascii('\ufeff'))", out="'\\ufeff'"),
    ),
    "no width": (
        Case("print('zero')\u200b\nprint(1)", out="zero\n1", did="unicode"),
        Case("first\u200bsecond = 1", error="SyntaxError"),
    ),
    "full-width punctuation": (
        Case("print\uff08'wide'\uff0c 2\uff09", out="wide 2", did="unicode"),
        Case("print('\uff08wide\uff09')", out="\uff08wide\uff09"),
    ),
    "another dash": (
        Case("print(7 \u2212 3, 7 \u2013 3)", out="4 4", did="unicode"),
        Case("print(list(range(1\u20135)))", error="SyntaxError", out=""),
    ),
    "all of it indented": (
        Case("    n = 3\n    print(n)", out="3"),
        Case("n = 3\n    print(n)", error="IndentationError", out=""),
    ),
    "indented under a comment": (
        Case("# the answer\n    n = 4\n    print(n)", out="4", did="dedent"),
        Case("# the rest\n        n = 4\n    print(n)", error="IndentationError", out=""),
    ),
    "tabs among spaces": (
        Case("if 1:\n    a = 1\n\tb = 2\nprint(a + b)", out="3", did="tabs"),
        Case("if 1:\n    if 1:\n        a = 1\n\tb = 2\nprint(3)", error="TabError", out=""),
    ),
    "a colon missing": (
        Case("for n in range(2)  # twice\n    print(n)", out="0\n1", did="colon"),
        Case("print('a' if 1 else)", error="SyntaxError", out=""),
    ),
    "a colon somewhere else": (
        Case("def f(a,\n      b)\n    return a + b\nprint(f(1, 2))", out="3", did="colon"),
        Case("if 1\nprint('not indented')", error="SyntaxError", out=""),
    ),
    "newlines written out": (
        Case("import os\\nprint(os.curdir)", out=".", did="escaped"),
        Case("print('x\\ny')", out="x\ny"),
    ),
    "newlines written out in a text": (
        Case('print(\\"q\\")\\nprint(2)', out="q\n2", did="escaped"),
        Case("s = '''x\\\\ny'''\\nprint(s)", error="SyntaxError", out=""),
    ),
    "entities": (
        Case("if 1 &lt; 2:\n    print(&quot;less&quot;)", out="less", did="html"),
        Case("print('1 &lt; 2')", out="1 &lt; 2"),
    ),
    "entities in strings too": (
        Case("if 3 &gt; 2 and 2 &gt;= 1:\n    print(3)", out="3", did="html"),
        Case("if 3 &gt; 2:\n    print('&lt;b&gt;')", error="SyntaxError", out=""),
    ),
    "entities by number": (
        Case("if 3 &gt; 2:  # 3 &gt; 2, isn&#39;t it\n    print(&#39;a&#39;, &#x27;b&#x27;)", out="a b", did="html"),
        Case("if 3 &gt; 2:\n    print(&#39;a&#39;, '&lt;b&gt;')", error="SyntaxError", out=""),
    ),
    "numbered lines": (
        Case("1: n = 8\n2: if n:\n3:     print(n)", out="8", did="linenos"),
        Case("table = {\n1: 'one',\n2: 'two',\n}\nprint(table[2])", out="two"),
    ),
    "lines numbered with bars": (
        Case(" 9 | n = 8\n10 | print(n)", out="8", did="linenos"),
        Case("1: 'one',\n2: 'two',", error="SyntaxError"),
    ),
    "lines numbered in a dict without its last comma": (
        Case("4: n = [8,\n5:      9]\n6: print(n)", out="[8, 9]", did="linenos"),
        Case("1: 'one',\n2: 'two'", error="SyntaxError"),
    ),
    "the language's name": (
        Case("python\nprint('said')", out="said", did="language-word"),
        Case("python = 3\npython\nprint(python)", out="3"),
    ),
    "np": (
        Case("print(int(np.ones(4).sum()))", out="4", did="missing-name"),
        Case("try:\n    np\nexcept NameError:\n    print('none')", out="none"),
    ),
    "a name in a function whose caller catches its error": (
        Case("def f():\n    return math.floor(2.5)\ntry:\n    print(f())\nexcept ValueError:\n    print('none')",
             out="2", did="missing-name"),
        Case("def f():\n    return math.floor(2.5)\ntry:\n    print(f())\nexcept NameError:\n    print('none')",
             out="none"),
    ),
    "a name whose error is suppressed": (
        Case("import io\nwith io.StringIO() as f:\n    print(math.floor(2.5))", out="2", did="missing-name"),
        Case("from contextlib import suppress\nwith suppress(NameError):\n    print(np.ones(1))\nprint('end')",
             out="end"),
    ),
    "an attribute that there is not": (
        Case("print(math.floor(2.5))", out="2", did="missing-name"),
        Case("math.no_such_function(2)", error="NameError", hints="python-suggestion"),
    ),
    "time": (
        Case("print(time() > 1, sleep(0))", out="True None", did="missing-name"),
        Case("time = 6\nprint(time)", out="6"),
    ),
    "the module time": (
        Case("print(time.time() > 1)", out="True", did="missing-name"),
        Case("print('time' in globals(), 1 if 0 else time)", error="NameError", hints="python-suggestion", out=""),
    ),
    "datetime the class": (
        Case("print(datetime(2024, 5, 6).year)", out="2024", did="missing-name"),
        Case("print(datetime.date)", error="NameError", hints="python-suggestion", out=""),
    ),
    "a name in a function": (
        Case("def end(p):\n    return Path(p).suffix\nprint(end('b.csv'))", out=".csv", did="missing-name"),
        Case("print(json.dumps(1))\njson = 2", error="NameError", hints="python-suggestion", out=""),
    ),
    "a name in a function that the cell does not use": (
        Case("class A:\n    def f(self):\n        return math.floor(2.5)\nprint(A().f())", out="2", did="missing-name"),
        Case("def f():\n    return math.floor(2.5)\nn = 1\nprint(n)", out="1"),
    ),
    "a name in a function of a function": (
        Case("def read(s):\n    return json.loads(s)\ndef main():\n    print(read('[4]'))\n"
             "if __name__ == '__main__':\n    main()", out="[4]", did="missing-name"),
        Case("def read(s):\n    return json.loads(s)\ndef main():\n    print(read('[4]'))\n"
             "try:\n    main()\nexcept NameError:\n    print('no json')", out="no json"),
    ),
    "a name in a method of a class in a function": (
        Case("class A:\n    def f(self):\n        return math.floor(2.5)\ndef g():\n    return A().f()\nprint(g())",
             out="2", did="missing-name"),
        Case("class A:\n    def f(self):\n        return math.floor(2.5)\ndef g():\n    return A().f()\nprint(3)",
             out="3"),
    ),
    "names of a class that is only defined": (
        Case("class Base(ABC):\n    @abstractmethod\n    def go(self, by=math.pi): ...", out="", did="missing-name"),
        Case("class Base:\n    def go(self):\n        return math.pi", out=""),
    ),
    "types of a class's fields": (
        Case("@dataclass\nclass Row:\n    n: Optional[int] = 4\nprint(Row())", out="Row(n=4)", did="missing-name"),
        Case("def f():\n    n: Optional[int] = 4\n    return n\nprint(f())", out="4"),
    ),
    "types of arguments": (
        Case("def f(rows: List[int]) -> Optional[int]:\n    return rows[0]\nprint(f([4]))", out="4",
             did="missing-name"),
        Case("class Row:\n    n: 'Optional[int]' = 4\nprint(Row.n)", out="4"),
    ),
    "a class as a type": (
        Case("def end(p: Path, at: datetime | None = None) -> str:\n    return p.suffix\nprint(end(Path('b.csv')))",
             out=".csv", did="missing-name"),
        Case("def f(at: time):\n    return at", error="NameError", hints="python-suggestion"),
    ),
    "a name beside a command of the shell": (
        Case("%cd -q .\n!echo shell\nlines = !echo 5\nprint(json.loads(lines[0]))", out="shell\n5", did="missing-name"),
        Case("%run bound.py\nprint(math)", before="_ = open('bound.py', 'w').write('math = 5')", out="5"),
    ),
    "a name that is a parameter": (
        Case("print(json.dumps([1]))", out="[1]", did="missing-name"),
        Case("def f(json):\n    return json\nprint(f(4))", out="4"),
    ),
    "constants of another language": (
        Case("print([true, false, null])", out="[True, False, None]", did="missing-name"),
        Case("true = 5\nprint(true)", out="5"),
    ),
    "return at the end": (
        Case("n = 6\nreturn n * 7", value="42", did="return-outside-function"),
        Case("def f():\n    return 8\nf()", value="8"),
    ),
    "return before the end": (
        Case("for n in range(9):\n    if n == 2:\n        return\n    print(n)\nprint('never')", out="0\n1",
             did="return-outside-function"),
        Case("with open('/dev/null') as f:\n    return f\nprint(1)", error="SyntaxError", out=""),
    ),
    "return that is never reached": (
        Case("import asyncio\nawait asyncio.sleep(0)\nreturn 5", value="5", did="return-outside-function"),
        Case("class A:\n    return 1", error="SyntaxError"),
    ),
    "await": (
        Case("import asyncio\nawait asyncio.sleep(0)\nprint('woke')", out="woke"),
        Case("import asyncio\ndef f():\n    await asyncio.sleep(0)\nf()", error="SyntaxError", out=""),
    ),
    "IPython's own": (
        Case("%time n = 2\nprint('n is', n)"),
        Case("!echo shell", out="shell"),
    ),
    "what is cut off": (
        Case("print('a'", error="SyntaxError", out=""),
        Case("n = [1,\n     2", error="SyntaxError", out=""),
    ),
}  # fmt: skip

DURING = {
    "a field in snake case": (
        Case("print(user['first_name'])", before=_USER, out="Ada", did="key-convention"),
        Case("both['UserId']", before="both = tool({'userId': 1, 'user_id': 2})", error="KeyError",
             says="2 fields match"),
    ),
    "a field with a space": (
        Case("print(user['home_town'], user['E_Mail'])", before=_USER, out="Bern a@x", did="key-convention"),
        Case("name = 'home' + '_town'\nprint(user[name])", before=_USER, error="KeyError", says="Home Town", out=""),
    ),
    "a field by get": (
        Case("print(user.get('UserID', 0))", before=_USER, out="7", did="key-convention"),
        Case("print(*map(user.get, ['UserID']), 'UserID' in user)", before=_USER, out="None False"),
    ),
    "a field in a loop": (
        Case("print([row['row_id'] for row in user['rows']])", before=_USER, out="[1, 2, 3]", did="key-convention"),
        Case("mine = {'CH': 3}\nprint(mine.get('ch', 0))", before=_USER, out="0"),
    ),
    "a field that was assigned": (
        Case("user['userId'] = 'new'\nprint(user['userId'], user['user_id'])", before=_USER, out="new 7"),
        Case("try:\n    user.pop('userId')\nexcept KeyError:\n    print('exact')", before=_USER, out="exact"),
    ),
    "a field that is written back": (
        Case("print(user['USER_ID'] + 1)", before=_USER, out="8", did="key-convention"),
        Case("user['userId'] += 1", before=_USER, error="KeyError"),
    ),
    "a field of one letter": (
        Case("print(tool({'Id': 3})['id'])", out="3", did="key-convention"),
        Case("tool({'X': 3})['x']", error="KeyError"),
    ),
    "another word": (
        Case("print(tool({'user-name': 3})['userName'])", out="3", did="key-convention"),
        Case("tool({'title': 3})['name']", error="KeyError"),
    ),
    "a wrapper too few": (
        Case("print(reply['rows'][1]['rowId'])", before=_USER, out="2", did="wrapper-down"),
        Case("try:\n    n = reply['rows']\nexcept KeyError:\n    n = 'none'\nprint(n)", before=_USER, out="none"),
    ),
    "a wrapper too few for get": (
        Case("print(reply.get('rows'))", before=_USER, out="None", hints="wrapper-down"),
        Case("print(reply.get('nothing'))", before=_USER, out="None"),
    ),
    "a wrapper too few in a function": (
        Case("def rows(r):\n    return len(r['rows'])\nprint(rows(reply))", before=_USER, out="3", did="wrapper-down"),
        Case("def rows(r):\n    return len(r['rows'])\ntry:\n    print(rows(reply))\nexcept KeyError:\n    print('no')",
             before=_USER, out="no"),
    ),
    "a wrapper in two places": (
        Case("print(tool({'data': {'response_data': {'n': 4}}})['n'])", out="4", did="wrapper-down"),
        Case("tool({'data': {'n': 1}, 'result': {'n': 2}})['n']", error="KeyError"),
    ),
    "a wrapper too many": (
        Case("print(tool({'items': [1, 2]})['data']['items'])", out="[1, 2]", did="wrapper-up"),
        Case("tool({'error': 'too many'})['data']", error="KeyError"),
    ),
    "a wrapper too many of an element": (
        Case("print(tool({'items': [3]})['response_data']['items'])", out="[3]", did="wrapper-up"),
        Case("tool([{'id': 1}])[0]['data']", error="KeyError"),
    ),
    "a wrapper in a wrapper": (
        Case("d = tool({'data': {'output': {'n': 4}}})['data']\nprint(d['n'])", out="4", did="wrapper-down"),
        Case("tool({'rows': [{'output': {'n': 4}}]})['rows'][0]['n']", error="KeyError"),
    ),
    "a wrapper too many of what is in one": (
        Case("d = tool({'data': {'n': 4}, 'successful': True})['data']\nprint(d['data']['n'])", out="4",
             did="wrapper-up"),
        Case("d = tool({'data': {'message': 'no such thing'}})['data']\nd['data']", error="KeyError"),
    ),
    "an attribute": (
        Case("print(t.shape, t.DType)", before="t = tool({'shape': 5, 'd_type': 'q'})", out="5 q",
             did="attribute-access"),
        Case("import numpy as np\nprint(np.ndim([t]), hasattr(t, 'shape'))", before="t = tool({'shape': [1]})",
             out="1 False"),
    ),
    "an attribute of a dict": (
        Case("print(tool({'total': 5}).total)", out="5", did="attribute-access"),
        Case("print(len(tool({'items': 5}).items()), {'a': 1}.get('a'))", out="1 1"),
    ),
    "an attribute whose error is caught": (
        Case("print(tool({'total': 5}).total)", out="5", did="attribute-access"),
        Case("def total(o):\n    return o.total\ntry:\n    n = total(tool({'total': 5}))\nexcept AttributeError:\n"
             "    n = 'none'\nprint(n)", out="none"),
    ),
    "a text that is JSON": (
        Case("print(p['raw']['deep_key'])", before="""p = tool({'raw': '{"deepKey": 6}', 'note': 'words'})""", out="6",
             did="json-string"),
        Case("p['note']['deep']", before="p = tool({'raw': '{}', 'note': 'words'})", error="TypeError"),
    ),
    "a text that is JSON by get": (
        Case("print(tool({'raw': '{\"n\": 6}'})['raw'].get('n'))", out="6", did="json-string"),
        Case("print(tool({'raw': '{\"n\": 6}'})['raw'][1:4], '{1}'.upper())", out='"n" {1}'),
    ),
    "a pair that is not unpacked": (
        Case("pair = tool_call({'data': {'n': 3}}, '')\nprint(pair['data']['n'])", out="3", did="tuple-not-unpacked"),
        Case("pair = tool_call({'data': {'n': 3}}, '')\nd, e = pair\nprint(d['data'], pair[1] == '', len(pair))",
             out="{'n': 3} True 2"),
    ),
    "the data of a pair": (
        Case("pair = tool_call({'rows': [3]}, '')\nprint(pair['data']['rows'])", out="[3]", did="tuple-not-unpacked"),
        Case("pair = tool_call({'status': 404}, '')\npair['data']", error="TypeError", hints="not-by-name"),
    ),
    "a list in a pair": (
        Case("pair = tool_call([{'aB': 3}], None)\nprint(pair['data'][0]['aB'])", out="3", did="tuple-not-unpacked"),
        Case("pair = tool_call([], None)\npair['data']", error="TypeError", hints="not-by-name"),
    ),
    "a pair with an error": (
        Case("pair = tool_call({}, '403 forbidden')\npair['data']", error="RuntimeError", says="403 forbidden"),
        Case("pair = tool_call({}, 'no')\nprint(pair[1], list(pair))", out="no [{}, 'no']"),
    ),
    "JSON that the cell parses": (
        Case("import json\nd = json.loads('{\"user_id\": 3}')\nprint(d['userId'])", out="3", did="key-convention"),
        Case("import json\nd = json.JSONDecoder().decode('{\"user_id\": 3}')\nprint(type(d) is dict)", out="True"),
    ),
    "JSON with types of its own": (
        Case("import io, json\nprint(json.load(io.StringIO('{\"aB\": 3}'))['a_b'])", out="3", did="key-convention"),
        Case("import json\nprint(type(json.loads('{}', object_hook=dict)) is dict, json.loads('[1]') == [1])",
             out="True True"),
    ),
    "a table of tool data": (
        Case("import pandas as pd\nprint(list(pd.DataFrame(user['rows']).columns))", before=_USER, out="['rowId']"),
        Case("import pandas as pd\nd = pd.DataFrame(user['rows'])\nd['row_id']", before=_USER, error="KeyError",
             hints="missing-column"),
    ),
    "DataFrame.append": (
        Case("import pandas as pd\nd = pd.DataFrame({'n': [1]})\nprint(list(d.append({'n': 2}, ignore_index=True).n))",
             out="[1, 2]", did="removed-api"),
        Case("row = [1]\nrow.append(2)\nprint(row)", out="[1, 2]"),
    ),
    "Series.append": (
        Case("import pandas as pd\nprint(list(pd.Series([1]).append(pd.Series([2]))))", out="[1, 2]",
             did="removed-api"),
        Case("import pandas as pd\nd = pd.DataFrame({'append': [4]})\nprint(*d.append, hasattr(pd.Series, 'append'))",
             out="4 False"),
    ),
    "names that pandas changed": (
        Case("import pandas as pd\nd = pd.DataFrame({'n': [1.5, None]})\n"
             "print(list(d.applymap(str).n), list(d.pad().n), *d.iteritems().__next__()[1].backfill())",
             out="['1.5', 'nan'] [1.5, 1.5] 1.5 nan", did="removed-api"),
        Case("import pandas as pd\nd = pd.DataFrame({'applymap': [4]})\nprint(*d.applymap, hasattr(d, 'pad'))",
             out="4 False"),
    ),
    "names that NumPy removed": (
        Case("import numpy as np\nprint(np.float(2), np.NaN, np.NINF)", out="2.0 nan -inf", did="removed-api"),
        Case("import numpy as np\nprint(hasattr(np, 'float'), np.float64(2))", out="False 2.0"),
    ),
    "a removed name whose error is caught": (
        Case("import numpy as np\ntry:\n    print(np.product([2, 3]))\nexcept ValueError:\n    print('none')", out="6",
             did="removed-api"),
        Case("import numpy as np\ntry:\n    print(np.product([2, 3]))\nexcept AttributeError:\n    print('newer')",
             out="newer"),
    ),
    "a name that Pillow removed": (
        Case("from PIL import Image\nprint(Image.ANTIALIAS == Image.LANCZOS)", out="True", did="removed-api"),
        Case("from PIL import Image\nImage.NO_SUCH", error="AttributeError"),
    ),
    "asyncio.run": (
        Case("import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 9\nprint(asyncio.run(f()))",
             out="9", did="asyncio-run"),
        Case("import asyncio, threading\nasync def f():\n    return 9\nout = []\n"
             "t = threading.Thread(target=lambda: out.append(asyncio.run(f())))\nt.start(); t.join()\nprint(out)",
             out="[9]"),
    ),
    "run_until_complete": (
        Case("import asyncio\nasync def f():\n    return 9\nprint(asyncio.get_event_loop().run_until_complete(f()))",
             out="9", did="asyncio-run"),
        Case("import asyncio\nasync def f():\n    raise ValueError('own')\nawait f()", error="ValueError"),
    ),
    "exit": (
        Case("print('before')\nexit()\nprint('after')", out="before", did="exit-call"),
        Case("def exit():\n    return 'mine'\nprint(exit())", out="mine"),
    ),
}  # fmt: skip

AFTER = {
    "a key of a dict": (
        Case("print('ran')\nconf = {'user_id': 1}\nconf['userId']", error="KeyError", out="ran", hints="missing-key"),
        Case("conf = {'user_id': 1}\ntry:\n    conf['userId']\nexcept KeyError:\n    print('seen')", out="seen"),
    ),
    "columns of a table": (
        Case("d[['row_id', 'n']]", before="import pandas as pd\nd = pd.DataFrame({'rowId': [1], 'n': [2]})",
             error="KeyError", hints="missing-column", says="['row_id'] not in index"),
        Case("d.drop(columns=['row_id'])", before="import pandas as pd\nd = pd.DataFrame({'rowId': [1]})",
             error="KeyError"),
    ),
    "a typo in a name": (
        Case("number = 3\nprint('ran')\nprint(numbr)", error="NameError", out="ran",
             hints="close-name python-suggestion"),
        Case("print(nothing_like_it_anywhere)", error="NameError", out=""),
    ),
    "a typo in an import": (
        Case("from collections import OrderdDict", error="ImportError", hints="close-name python-suggestion"),
        Case("from collections import zzzzzz", error="ImportError"),
    ),
    "a typo among very many names": (
        Case("print(resluts)", before="results = 1\nfor _n in range(800):\n    globals()[f'n{_n}'] = _n",
             error="NameError", hints="python-suggestion close-name", says="Did you mean: 'results'?"),
        Case("print(quite_another)", before="results = 1\nfor _n in range(800):\n    globals()[f'n{_n}'] = _n",
             error="NameError"),
    ),
    "self forgotten": (
        Case("class A:\n    def __init__(self):\n        self.deep = 1\n    def f(self):\n        return deep\nA().f()",
             error="NameError", hints="python-suggestion"),
        Case("class A:\n    def f(self):\n        return unheard_of\nA().f()", error="NameError"),
    ),
    "a list by a name": (
        Case("rows = [{'n': 1}]\nrows['n']", error="TypeError", hints="not-by-name"),
        Case("rows = [1]\nrows[4]", error="IndexError"),
    ),
    "a list of one": (
        Case("tool({'rows': [{'n': 1}]})['rows']['n']", error="TypeError"),
        Case("print(tool({'rows': [{'n': 1}]})['rows'][0]['n'])", out="1"),
    ),
    "None by a name": (
        Case("found = None\nfound['n']", error="TypeError", hints="not-by-name"),
        Case("len(None)", error="TypeError"),
    ),
    "a JSON text by a name": (
        Case("text = '{\"n\": 1}'\ntext['n']", error="TypeError", hints="not-by-name"),
        Case("text = 'words'\ntext['n']", error="TypeError"),
    ),
    "a file that is not there": (
        Case("open('tabel.csv')", before="open('table.csv', 'w').close()", error="FileNotFoundError",
             hints="missing-file"),
        Case("import os\nprint(os.path.exists('tabel.csv'))", before="open('table.csv', 'w').close()", out="False"),
    ),
    "input": (
        Case("name = input('who? ')", error="StdinNotImplementedError", hints="input", out=""),
        Case("def input(prompt):\n    return 'me'\nprint(input('who? '))", out="me"),
    ),
}  # fmt: skip

PAIRS = {**BEFORE, **DURING, **AFTER}
