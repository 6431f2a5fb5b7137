"""The filter, run in a small interpreter of classic BPF: what it answers for each call, on both architectures."""

from __future__ import annotations

import errno
import struct

import pytest

from workbench_guest.confine.seccomp import DENIED, NEWEST_REVIEWED, build_filter

ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
MACHINES = list(ARCH)
# Numbers of <asm/unistd.h>, written down here a second time on purpose.
NUMBERS = {
    "x86_64": {
        "read": 0, "openat": 257, "clone": 56, "fork": 57, "execve": 59, "socket": 41, "socketpair": 53, "ioctl": 16,
        "personality": 135, "clone3": 435, "sched_setaffinity": 203, "sched_getaffinity": 204, "mmap": 9, "kill": 62,
        "ptrace": 101, "mount": 165, "unshare": 272, "setns": 308, "bpf": 321, "keyctl": 250, "io_uring_setup": 425,
        "prctl": 157, "seccomp": 317, "setsockopt": 54,
    },
    "aarch64": {
        "read": 63, "openat": 56, "clone": 220, "execve": 221, "socket": 198, "socketpair": 199, "ioctl": 29,
        "personality": 92, "clone3": 435, "sched_setaffinity": 122, "sched_getaffinity": 123, "mmap": 222, "kill": 129,
        "ptrace": 117, "mount": 40, "unshare": 97, "setns": 268, "bpf": 280, "keyctl": 219, "io_uring_setup": 425,
        "prctl": 167, "seccomp": 277, "setsockopt": 208,
    },
}  # fmt: skip
HARMLESS = ["read", "openat", "execve", "mmap", "kill", "sched_getaffinity", "prctl"]


def refused(code: int) -> int:
    return ERRNO | code


def answer(program: bytes, arch: int, number: int, *arguments: int) -> int:
    """What the kernel would do with the call."""
    six = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    data = struct.pack("=IIQ6Q", number, arch, 0, *(value % 2**64 for value in six))
    steps = [struct.unpack_from("=HBBI", program, offset) for offset in range(0, len(program), 8)]
    loaded, at = 0, 0
    while True:
        code, if_true, if_false, value = steps[at]
        at += 1
        if code == 0x20:
            assert value % 4 == 0
            (loaded,) = struct.unpack_from("=I", data, value)
        elif code == 0x06:
            return int(value)
        else:
            holds = {0x15: loaded == value, 0x25: loaded > value, 0x35: loaded >= value, 0x45: bool(loaded & value)}
            at += if_true if holds[code] else if_false


@pytest.fixture(params=MACHINES)
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def program(machine: str) -> bytes:
    return build_filter(pin_cpus=False, machine=machine)


def _ask(program: bytes, machine: str, name: str, *arguments: int) -> int:
    return answer(program, ARCH[machine], NUMBERS[machine][name], *arguments)


def test_a_program_is_within_the_kernels_limits(program: bytes) -> None:
    assert len(program) % 8 == 0
    assert len(program) // 8 <= 4096


@pytest.mark.parametrize("name", DENIED)
def test_a_denied_call_is_refused(program: bytes, machine: str, name: str) -> None:
    number = DENIED[name][MACHINES.index(machine)]
    if number is not None:
        assert answer(program, ARCH[machine], number) == refused(errno.EPERM)


@pytest.mark.parametrize("name", ["ptrace", "mount", "unshare", "setns", "bpf", "keyctl", "io_uring_setup"])
def test_the_numbers_of_denied_calls_are_those_of_the_kernel(program: bytes, machine: str, name: str) -> None:
    assert DENIED[name][MACHINES.index(machine)] == NUMBERS[machine][name]
    assert _ask(program, machine, name) == refused(errno.EPERM)


@pytest.mark.parametrize("name", HARMLESS)
def test_what_every_program_needs_passes(program: bytes, machine: str, name: str) -> None:
    assert _ask(program, machine, name) == ALLOW


def test_no_number_is_both_denied_and_needed(machine: str) -> None:
    denied = {numbers[MACHINES.index(machine)] for numbers in DENIED.values()}
    assert not denied & {NUMBERS[machine][name] for name in HARMLESS}


def test_every_number_up_to_the_newest_is_answered_and_later_ones_do_not_exist(program: bytes, machine: str) -> None:
    for number in range(NEWEST_REVIEWED + 1):
        assert answer(program, ARCH[machine], number) in (
            ALLOW, refused(errno.EPERM), refused(errno.ENOSYS), refused(errno.EAFNOSUPPORT),
        )  # fmt: skip
    for number in (NEWEST_REVIEWED + 1, 500, 1000, 0x3FFFFFFF):
        assert answer(program, ARCH[machine], number) == refused(errno.ENOSYS)


@pytest.mark.parametrize("number", [0x40000000, 0x40000000 + 59, 0x7FFFFFFF, 0xFFFFFFFF])
def test_the_x32_doubles_of_calls_do_not_exist(program: bytes, machine: str, number: int) -> None:
    assert answer(program, ARCH[machine], number) == refused(errno.ENOSYS)


@pytest.mark.parametrize("foreign", [0x40000003, 0x40000028, 0, 0xFFFFFFFF])
def test_a_call_of_another_architecture_kills(program: bytes, machine: str, foreign: int) -> None:
    for number in (0, 1, 59, 500):
        assert answer(program, foreign, number) == KILL
    other = next(arch for name, arch in ARCH.items() if name != machine)
    assert answer(program, other, 0) == KILL


@pytest.mark.parametrize(
    "flag", [0x10000000, 0x00020000, 0x20000000, 0x40000000, 0x08000000, 0x04000000, 0x02000000]
)  # fmt: skip
def test_clone_makes_no_namespace(program: bytes, machine: str, flag: int) -> None:
    threads = 0x003D0F00
    assert _ask(program, machine, "clone", flag) == refused(errno.EPERM)
    assert _ask(program, machine, "clone", flag | threads) == refused(errno.EPERM)
    # High halves of the register are not part of the flags, and must not hide them either.
    assert _ask(program, machine, "clone", flag | 0xDEAD << 32) == refused(errno.EPERM)


@pytest.mark.parametrize("flags", [17, 0x01200011, 0x003D0F00, 0x4111])
def test_clone_makes_processes_and_threads(program: bytes, machine: str, flags: int) -> None:
    assert _ask(program, machine, "clone", flags) == ALLOW


def test_clone3_does_not_exist(program: bytes, machine: str) -> None:
    assert _ask(program, machine, "clone3") == refused(errno.ENOSYS)


@pytest.mark.parametrize("family", range(64))
def test_only_a_few_families_of_sockets_can_be_made(program: bytes, machine: str, family: int) -> None:
    for netlink in (0, 4, 9, 15, 20):
        # 16 is netlink; libzmq aborts a program that is told anything else than this.
        refusal = refused(errno.EOPNOTSUPP if family == 16 else errno.EAFNOSUPPORT)
        expected = ALLOW if family in (1, 2, 10) else refusal
        assert _ask(program, machine, "socket", family, 3, netlink) == expected
    assert _ask(program, machine, "socketpair", family) == (ALLOW if family == 1 else refused(errno.EAFNOSUPPORT))


def test_nothing_can_be_typed_into_a_terminal(program: bytes, machine: str) -> None:
    for request in (0x5412, 0x541C, 0x5423, 0x5412 | 1 << 32):
        assert _ask(program, machine, "ioctl", 0, request) == refused(errno.EPERM)
    for request in (0x5401, 0x5413, 0x541B):
        assert _ask(program, machine, "ioctl", 0, request) == ALLOW


def test_a_personality_can_be_asked_for_and_not_changed(program: bytes, machine: str) -> None:
    assert _ask(program, machine, "personality", 0xFFFFFFFF) == ALLOW
    for other in (0, 8, 0x0040000):
        assert _ask(program, machine, "personality", other) == refused(errno.EPERM)


def test_the_cpus_can_be_chosen_only_where_they_are_not_the_limit(machine: str) -> None:
    for pin_cpus, expected in ((True, refused(errno.EPERM)), (False, ALLOW)):
        program = build_filter(pin_cpus=pin_cpus, machine=machine)
        assert _ask(program, machine, "sched_setaffinity") == expected
        assert _ask(program, machine, "sched_getaffinity") == ALLOW


def test_an_unknown_machine_has_no_filter() -> None:
    with pytest.raises(ValueError, match="riscv64"):
        build_filter(pin_cpus=False, machine="riscv64")


def test_no_filter_can_be_hung_on_a_socket_and_other_options_are_free(program: bytes, machine: str) -> None:
    """Compiled filters come from one budget for the whole machine, which one sandbox could use up."""
    for option in (26, 50, 51, 52):
        assert _ask(program, machine, "setsockopt", 5, 1, option) == refused(errno.EPERM)
        assert _ask(program, machine, "setsockopt", 5, 6, option) == ALLOW
    for option in (2, 7, 8, 9, 15):
        assert _ask(program, machine, "setsockopt", 5, 1, option) == ALLOW


def test_no_program_inside_can_load_a_filter_of_its_own(program: bytes, machine: str) -> None:
    assert _ask(program, machine, "seccomp", 1, 0, 0) == refused(errno.ENOSYS)
    assert _ask(program, machine, "prctl", 22, 2, 0) == refused(errno.EINVAL)
    for option in (1, 4, 15, 38):
        assert _ask(program, machine, "prctl", option) == ALLOW
