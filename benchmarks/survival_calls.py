"""Watch a child's system calls that change files: end it at one, let one fail, or write them down.

This is what a debugger does (ptrace), so nothing of the child is replaced, and what its libraries
write is seen as well. It needs no rights beyond those of a parent. Linux on x86-64 only.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from survival_children import end_with

TRACEME, GETREGS, SETREGS, SYSCALL = 0, 12, 13, 24
SETOPTIONS, GET_SYSCALL_INFO = 0x4200, 0x420E
STOPS_ARE_MARKED, ENDS_WITH_PARENT = 0x1, 0x100000
REGISTERS, RAX, RDX, ORIG_RAX = 27, 10, 12, 15
ENTRY, EXIT = 1, 2
HERE = -100  # AT_FDCWD

OF_HANDLE = {
    1: "write",
    18: "write",
    20: "write",
    40: "write",
    74: "sync",
    75: "sync",
    77: "write",
    91: "chmod",
    285: "write",
}
"""Calls whose first argument is an open file; cutting and reserving change its content as well."""

OF_PATH = {83: "mkdir", 84: "rmdir", 87: "unlink", 90: "chmod", 76: "truncate"}
OF_FOLDER_AND_PATH = {257: "open", 258: "mkdir", 263: "unlink", 268: "chmod"}
RENAMES = {82: False, 264: True, 316: True}  # by number; whether folders are named as well
COPY, OPEN, SYNC_ALL, WRITE, PWRITE = 326, 2, 162, 1, 18

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long


@dataclass
class Call:
    """A call that changes files below the watched folder."""

    kind: str  # write, sync, open, chmod, rename, unlink, mkdir, rmdir, truncate, syncall
    path: str
    to: str = ""  # of a rename
    size: int = 0  # of a write
    creates: bool = False  # of an open
    empties: bool = False  # of an open
    number: int = 0  # from 1, among those that were watched


Decision = str | int | None
"""None: go on. "kill": before the call. "torn": half of the write is done. A number: this errno."""


@dataclass
class Watch:
    """What to do with the calls of a child below a folder."""

    folder: Path
    decide: Callable[[Call], Decision] = lambda call: None
    after: Callable[[Call], None] = lambda call: None
    calls: list[Call] = field(default_factory=list)

    def run(self, work: Callable[[], int]) -> int:
        """Run work in a forked child, and return the status that `waitpid` knows of it."""
        pid = os.fork()
        if pid == 0:
            _libc.ptrace(TRACEME, 0, None, None)
            os.kill(os.getpid(), signal.SIGSTOP)
            end_with(work)
        os.waitpid(pid, 0)
        _ptrace(SETOPTIONS, pid, STOPS_ARE_MARKED | ENDS_WITH_PARENT)
        return self._follow(pid)

    def _follow(self, pid: int) -> int:
        passed_on = 0
        call: Call | None = None
        decision: Decision = None
        while True:
            _ptrace(SYSCALL, pid, passed_on)
            _, status = os.waitpid(pid, 0)
            if not os.WIFSTOPPED(status):
                return status
            passed_on = os.WSTOPSIG(status)
            if passed_on != signal.SIGTRAP | 0x80:
                continue
            passed_on = 0
            info = _info(pid)
            if info[0] == ENTRY:
                call = self._entered(pid, *struct.unpack_from("<7Q", info, 24))
                decision = call and self.decide(call)
                _before(pid, call, decision)
            elif info[0] == EXIT and call:
                self._left(pid, call, decision, struct.unpack_from("<q", info, 24)[0])
                call = None

    def _left(self, pid: int, call: Call, decision: Decision, result: int) -> None:
        if decision == "torn":
            os.kill(pid, signal.SIGKILL)
        elif isinstance(decision, int):
            _change(pid, RAX, -decision)
        elif result >= 0:
            self.after(call)

    def _entered(self, pid: int, number: int, *args: int) -> Call | None:
        call = _understood(pid, number, args)
        if call is None:
            return None
        top = str(self.folder)
        inside = any(p == top or p.startswith(top + "/") for p in (call.path, call.to))
        if not (inside or call.kind == "syncall"):
            return None
        if call.kind == "open" and not (call.creates or call.empties):
            return None
        call.number = len(self.calls) + 1
        self.calls.append(call)
        return call


def _before(pid: int, call: Call | None, decision: Decision) -> None:
    """Change a call that is about to be made."""
    if decision == "kill":
        os.kill(pid, signal.SIGKILL)
    elif decision == "torn" and call:
        _change(pid, RDX, call.size // 2)
    elif decision:
        _change(pid, ORIG_RAX, -1)


def _understood(pid: int, number: int, args: tuple[int, ...]) -> Call | None:
    """Return what a call does to a file, or None."""
    if number in OF_HANDLE or number == COPY:
        handle = args[2] if number == COPY else args[0]
        path = _opened(pid, handle)
        if path is None:
            return None
        size = args[2] if number in (WRITE, PWRITE) else 0
        return Call(OF_HANDLE.get(number, "write"), path, size=size)
    if number in OF_PATH:
        return Call(OF_PATH[number], _path(pid, HERE, args[0]))
    if number == SYNC_ALL:
        return Call("syncall", "")
    if number in RENAMES:
        old, new = (
            ((args[0], args[1]), (args[2], args[3]))
            if RENAMES[number]
            else (
                (HERE, args[0]),
                (HERE, args[1]),
            )
        )
        return Call("rename", _path(pid, *old), _path(pid, *new))
    if number == OPEN or number in OF_FOLDER_AND_PATH:
        where, rest = (HERE, args) if number == OPEN else (args[0], args[1:])
        path = _path(pid, where, rest[0])
        kind = "open" if number == OPEN else OF_FOLDER_AND_PATH[number]
        if kind == "open":
            flags, there = rest[1], os.path.lexists(path)
            creates = bool(flags & os.O_CREAT) and not there
            return Call(kind, path, creates=creates, empties=bool(flags & os.O_TRUNC) and there)
        return Call("rmdir" if kind == "unlink" and rest[1] & 0x200 else kind, path)
    return None


def _signed(number: int) -> int:
    return ctypes.c_int32(number & 0xFFFFFFFF).value


def _opened(pid: int, handle: int) -> str | None:
    try:
        found = os.readlink(f"/proc/{pid}/fd/{_signed(handle)}")  # noqa: PTH115
    except OSError:
        return None
    return found if found.startswith("/") else None


def _path(pid: int, folder: int, address: int) -> str:
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        memory.seek(address)
        text = b""
        while b"\0" not in text:
            # Not beyond the page: the next one may not be there.
            text += memory.read(4096 - (address + len(text)) % 4096)
    name = os.fsdecode(text.split(b"\0")[0])
    if name.startswith("/"):
        return os.path.normpath(name)
    top = (
        os.readlink(f"/proc/{pid}/cwd")  # noqa: PTH115
        if _signed(folder) == HERE
        else _opened(pid, folder)
    )
    return os.path.normpath(f"{top}/{name}")


def _info(pid: int) -> bytes:
    room = ctypes.create_string_buffer(96)
    _ptrace(GET_SYSCALL_INFO, pid, ctypes.addressof(room), 96)
    return room.raw


def _change(pid: int, which: int, value: int) -> None:
    registers = (ctypes.c_uint64 * REGISTERS)()
    _ptrace(GETREGS, pid, ctypes.addressof(registers))
    registers[which] = value & 0xFFFFFFFFFFFFFFFF
    _ptrace(SETREGS, pid, ctypes.addressof(registers))


def _ptrace(request: int, pid: int, data: int, address: int = 0) -> None:
    if _libc.ptrace(request, pid, address, data) < 0:
        number = ctypes.get_errno()
        if number != errno.ESRCH:  # it has just been killed: `waitpid` will say so
            raise OSError(number, f"ptrace: {os.strerror(number)}")
