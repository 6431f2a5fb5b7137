"""Kinds of values, as cells define them, with what is true of them in a copy of the session, or why they stay."""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    """One of them."""

    cell: str
    expected: str
    """an expression that is true in the copy; for what stays, a word of the reason"""


def _kinds(text: str) -> dict[str, Kind]:
    """Blocks of `== name`, the cell, `-> expected`."""
    blocks = (block.partition("\n") for block in text.split("\n== ")[1:])
    parts = {name: rest.rpartition("\n-> ") for name, _, rest in blocks}
    return {name: Kind(cell, expected.strip()) for name, (cell, _, expected) in parts.items()}


IMPORTS = """
import abc, array, asyncio, collections, dataclasses, datetime, decimal, enum, fractions, functools, inspect, io
import itertools, json, math, operator, pathlib, queue, random, re, string, threading, typing, types, uuid, weakref
from collections import OrderedDict
x = 1
shared = [1]
"""
# True after `x = 5` in the copy.
KINDS = _kinds(r'''
== numbers
n1 = (1, 1.5, 2j, 10 ** 100, True, None, ...)
-> n1 == (1, 1.5, 2j, 10**100, True, None, ...)

== text
n2 = 'é\ud800\n' * 3000
-> n2 == 'é\ud800\n' * 3000

== bytes
n3 = [b'x', bytearray(b'y')]
-> n3 == [b'x', bytearray(b'y')] and type(n3[1]) is bytearray

== containers
n4 = {1: [2, (3, {4})], 'f': frozenset([5])}
-> n4 == {1: [2, (3, {4})], 'f': frozenset([5])}

== ranges and slices
n5 = [range(5), slice(1, 2)]
-> n5 == [range(5), slice(1, 2)]

== ordered dicts
n6 = OrderedDict(b=1, a=2)
-> list(n6) == ['b', 'a'] and type(n6) is OrderedDict

== default dicts
n7 = collections.defaultdict(lambda: x)
-> n7['new'] == 5

== counters
n8 = collections.Counter('aab')
-> n8['a'] == 2

== deques
n9 = collections.deque([1], maxlen=3)
-> n9.maxlen == 3 and list(n9) == [1]

== times
n10 = datetime.datetime(2020, 1, 2, tzinfo=datetime.timezone.utc)
-> n10.isoformat() == '2020-01-02T00:00:00+00:00'

== decimals and fractions
n11 = (decimal.Decimal('1.10'), fractions.Fraction(1, 3))
-> str(n11[0]) == '1.10' and n11[1] * 3 == 1

== paths
n12 = pathlib.Path('/tmp/x')
-> n12.name == 'x'

== patterns
n13 = re.compile('a+')
-> n13.match('aa').end() == 2

== uuids
n14 = uuid.UUID(int=5)
-> n14.int == 5

== random generators
n15 = random.Random(4)
n15.random()
-> n15.random() == [r := random.Random(4), r.random(), r.random()][2]

== arrays
n16 = array.array('i', [1, 2])
-> n16.tolist() == [1, 2]

== iterators
n17 = iter([1, 2])
next(n17)
-> list(n17) == [2]

== text in memory
n18 = io.StringIO('abc')
n18.read(1)
-> n18.read() == 'bc'

== locks
n19 = threading.Lock()
-> n19.acquire(timeout=1)

== weak references
class W:
    pass
n20 = W()
n20r = weakref.ref(n20)
-> n20r() is n20

== plain objects
n21 = types.SimpleNamespace(a=shared)
-> n21.a is shared

== code
n22 = compile('x + 1', 'cell', 'eval')
-> eval(n22) == 6

== types
n23 = [int, list[int], int | None, typing.Optional[str]]
-> n23[1] == list[int] and n23[0] is int

== modules
import json as j
-> j is json and j.loads('[1]') == [1]

== functions of modules
n25 = [math.sin, json.dumps, operator.itemgetter(1)]
-> n25[1] is json.dumps

== functions
def f():
    return x
-> f() == 5 and f.__globals__ is globals()

== functions that call themselves
def fact(n):
    return 1 if n < 2 else n * fact(n - 1)
-> fact(5) == 120

== functions with defaults
def kw(a=shared, *, b: int=3) -> str:
    """doc"""
    return (a, b)
-> kw()[0] is shared

== lambdas
lam = [lambda a: a + x]
-> lam[0](1) == 6

== closures
def counter(n):

    def count():
        nonlocal n
        n += 1
        return n
    return count
count = counter(10)
count()
-> count() == 12

== decorated functions
def deco(fn):

    @functools.wraps(fn)
    def w(*a):
        return fn(*a) + x
    return w

@deco
def plus(a):
    return a
dumps = deco(json.dumps)
-> plus(1) == 6 and dumps.__wrapped__ is json.dumps and dumps.__globals__ is globals()

== partials
part = functools.partial(lambda a, b: a + b + x, 1)
-> part(2) == 8

== cached functions
@functools.lru_cache(maxsize=7)
def cached(a):
    return a + x
-> cached(1) == 6 and cached.cache_parameters()['maxsize'] == 7

== coroutine functions
async def co():
    return x
-> asyncio.run(co()) == 5

== generator functions
def gen():
    yield x
-> list(gen()) == [5]

== classes
class A:
    y = 3

    def __init__(self, v):
        self.v = v

    def m(self):
        return self.v + x

    @classmethod
    def k(cls):
        return cls.y

    @staticmethod
    def q():
        return 4

    @property
    def p(self):
        return self.v * 2
a = A(1)
meth = a.m
-> isinstance(a, A) and (a.m(), A.k(), A.q(), a.p, meth()) == (6, 3, 4, 2, 6) and meth.__self__ is a

== derived classes
class Low:

    def m(self):
        return 1

class High(Low):

    def m(self):
        return super().m() + x
high = High()
-> isinstance(high, High) and isinstance(high, Low) and high.m() == 6

== classes in classes
class Out:

    class In:
        pass
inner = Out.In()
-> isinstance(inner, Out.In)

== classes without a name
def local():

    class L:
        pass
    return (L(), L())
la, lb = local()
-> type(la) is type(lb)

== classes that know their instances
class Dog:
    all = []

    def __init__(self):
        self.all.append(self)
rex = Dog()
dogs = [rex]
-> Dog.all[0] is rex and dogs[0] is rex and isinstance(rex, Dog)

== singletons
class One:
    it = None

    def __new__(cls):
        cls.it = cls.it or super().__new__(cls)
        return cls.it
one = One()
-> One() is one

== enums
class Col(enum.Enum):
    R = 1
    G = 2
    C = 2

    def up(self):
        return x

    @classmethod
    def _missing_(cls, v):
        return cls.R
col = Col.R
-> col is Col.R is Col(1) is Col(99) and Col.C is Col.G and col.up() == 5 and list(Col) == [Col.R, Col.G]

== enums with fields
class Planet(enum.Enum):
    E = (1, 2)

    def __init__(self, a, b):
        self.a = a

    def __str__(self):
        return 'p'
-> Planet.E.a == 1 and str(Planet.E) == 'p' and Planet((1, 2)) is Planet.E

== flags and texts that are enums
class Fl(enum.IntFlag):
    A = enum.auto()
    B = enum.auto()

class Se(str, enum.Enum):
    A = 'a'
both = Fl.A | Fl.B
se = Se.A
-> both == 3 and isinstance(both, Fl) and se is Se.A and se == 'a'

== dataclasses
@dataclasses.dataclass
class P:
    a: int
    b: list = dataclasses.field(default_factory=list)
p = P(1)
-> p == P(1) and isinstance(p, P) and dataclasses.asdict(dataclasses.replace(p, a=2)) == {'a': 2, 'b': []}

== frozen dataclasses with slots
@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Pf:
    a: int = 0
pf = Pf(3)
-> pf == Pf(3) and pf < Pf(4) and hash(pf) == hash(Pf(3))

== named tuples
Nt = collections.namedtuple('Nt', 'a b', defaults=[4])
nt = Nt(1)
-> nt == (1, 4) and isinstance(nt, Nt) and nt._replace(a=3).a == 3

== named tuples with methods
class Tn(typing.NamedTuple):
    a: int
    b: int = 3

    def s(self):
        return self.a + x
tn = Tn(2)
-> isinstance(tn, Tn) and tn.s() == 7 and Tn(1).b == 3

== abstract classes
class Ab(abc.ABC):

    @abc.abstractmethod
    def f(self):
        ...
Ab.register(int)

class Ac(Ab):

    def f(self):
        return 7
ac = Ac()
-> isinstance(ac, Ab) and ac.f() == 7 and isinstance(3, Ab) and inspect.isabstract(Ab)

== generics
T = typing.TypeVar('T')

class G(typing.Generic[T]):

    def __init__(self, v):
        self.v = v
g = G[int](3)
-> isinstance(g, G) and g.v == 3 and G.__parameters__ == (T,)

== new types
Uid = typing.NewType('Uid', int)
-> Uid(3) == 3

== slots
class Sl:
    __slots__ = ('a', '__b')

    def __init__(self):
        self.a = 1
        self.__b = 2

    def b(self):
        return self.__b
sl = Sl()
-> (sl.a, sl.b()) == (1, 2) and not hasattr(sl, '__dict__')

== metaclasses
class Meta(type):

    def __len__(cls):
        return 9

class Wm(metaclass=Meta):
    pass
wm = Wm()
-> len(Wm) == 9 and isinstance(wm, Wm) and type(Wm) is Meta

== descriptors
class Desc:

    def __set_name__(self, o, n):
        self.n = n

    def __get__(self, o, t):
        return self.n

class Hd:
    d = Desc()
hd = Hd()
-> hd.d == 'd'

== exceptions
class Ex(Exception):

    def __init__(self, a, b=2):
        super().__init__(a)
        self.b = b
ex = Ex(1)
-> isinstance(ex, Ex) and ex.b == 2 and ex.args == (1,)

== subclasses of dict
class Ds(dict):
    pass
ds = Ds(a=1)
ds.extra = shared
-> ds == {'a': 1} and ds.extra is shared and isinstance(ds, Ds)

== the names themselves
import __main__ as here
everything = globals()
-> everything is globals() and here.everything is everything

== two names of one object
also = shared
holder = {'s': shared}
-> also is shared and holder['s'] is shared

== rings
r1 = []
r2 = [r1]
r1.append(r2)
r3 = []
r3.append(r3)
-> r1[0] is r2 and r2[0] is r1 and r3[0] is r3

== trees
class Node:

    def __init__(self):
        self.kids, self.up = ([], None)
root, kid = (Node(), Node())
root.kids.append(kid)
kid.up = root
-> root.kids[0] is kid and kid.up is root and isinstance(kid, Node)
''')
# Told by the side that packs, under the name of the variable.
LEFT = _kinds(r"""
== running
running = (n for n in range(3))
-> generator

== opened
opened = open('/dev/null', 'w')
-> an open file

== connected
import socket
connected = socket.socket()
-> socket

== frame
frame = inspect.currentframe()
-> frame

== view
view = memoryview(b'abc')
-> memoryview

== deep
deep = []
for _ in range(100000):
    deep = [deep]
-> RecursionError

== refuses
class Refuses:

    def __reduce__(self):
        raise OSError(28, 'no ' * 500)
refuses = Refuses()
-> OSError

== interrupts
class Interrupts:

    def __reduce__(self):
        raise KeyboardInterrupt
interrupts = Interrupts()
-> KeyboardInterrupt

== wordless
class Wordless(Exception):

    def __str__(self):
        raise ValueError

class Raises:

    def __reduce__(self):
        raise Wordless
wordless = Raises()
-> Wordless

== pretends
class Pretends:

    @property
    def __class__(self):
        raise RuntimeError('no')
pretends = Pretends()
-> no

== holds
holds = {'it': refuses}
-> it holds refuses, which cannot be carried: OSError
""")
# Told by the side that unpacks.
LEFT_WHEN_LOADED = _kinds(r"""
== holder_read_first
holder_read_first = []
-> it holds exits, which cannot be carried: SystemExit: 3

== exits
class Exits:

    def __setstate__(self, s):
        raise SystemExit(3)
exits = Exits()
exits.a = 1
holder_read_first.append(exits)
-> SystemExit: 3

== holder_of_it
holder_of_it = [exits]
-> it holds exits, which cannot be carried: SystemExit: 3
""")
