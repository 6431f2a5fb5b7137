"""What gets a session on whose disk is full: programs that `next` proposes. They move, and delete nothing.

Scratch space is memory, and /mnt/files is on disk and outlives the sandbox: large files are moved from the one to the
other, to the same path below /mnt/files/moved. Left where they are: folders whose name begins with a dot and installed
packages, because programs look for them there; and open files, whose writers would go on into nothing.
"""

from __future__ import annotations

from workbench.model.tier import STANDARD

STILL_OPEN = "still full: open, so not moved:"
"""what the first program says when the second one is needed"""
STILL_HIDDEN = "still full: what is left is hidden, installed or small"
"""what it says when there is nothing that it may move"""
FILES_FULL = "/mnt/files has no room"
"""what it says when there is nowhere to move to"""

# What runs while /mnt/files is over its quota is interrupted, so that this stays well below it.
_MOST_BYTES = STANDARD.files_bytes * 9 // 10
_MOVE = f"""\
import glob, os, shutil, sys
def is_full(want):
    s = os.statvfs("/tmp")
    return s.f_bavail < s.f_blocks * want or s.f_favail < s.f_files * want
def files(root, skip=False):
    for folder, names, inside in os.walk(root):
        if skip: names[:] = [n for n in names if n[0] != "." and n not in ("site-packages", "node_modules")]
        for path in (os.path.join(folder, f) for f in inside if not skip or f[0] != "."):
            if os.path.isfile(path) and not os.path.islink(path): yield os.path.getsize(path), path
held, moved, used = set(), 0, sum(size for size, _ in files("/mnt/files"))
for link in glob.glob("/proc/[0-9]*/fd/*"):
    try: held.add(os.readlink(link))
    except OSError: pass
found = sorted([*files("/home/user", True), *files("/tmp", True)], reverse=True)
for size, path in found:
    if not is_full(0.5): break
    if path in held: continue
    used += size
    if used > {_MOST_BYTES}: sys.exit("{FILES_FULL}")
    to = "/mnt/files/moved" + path
    while os.path.lexists(to): to += "~"
    os.makedirs(os.path.dirname(to), exist_ok=True)
    try: shutil.copy2(path, to)
    except OSError as problem:
        if os.path.lexists(to): os.remove(to)
        sys.exit(f"{FILES_FULL}: {{problem}}")
    os.remove(path)
    moved += 1
    if moved <= 20: print(path, "->", to)
print(moved, "files moved to /mnt/files/moved")
if is_full(0.02):
    large = [path for size, path in found if path in held and size > 2**20]
    sys.exit("{STILL_OPEN} " + " ".join(large[:20]) if large else "{STILL_HIDDEN}")
"""
MAKE_ROOM = f"python3 -c '{_MOVE}'; s=$?; df -h /tmp /mnt/files; exit $s"
"""for a shell: large files out of /home/user and /tmp, until half of it is free"""

CLOSE_FILES = """\
def _close_large_files():
    import gc, io, os, shutil
    held, paths = [], set()
    for one in gc.get_objects():
        if not issubclass(type(one), io.IOBase) or one.closed: continue
        path = getattr(one, "name", None)
        if isinstance(path, str) and os.path.abspath(path).startswith(("/home/user/", "/tmp/")): held.append(one)
    for kind in (io.TextIOBase, io.BufferedIOBase, io.IOBase):
        for one in held:
            if isinstance(one, kind) and not one.closed and os.fstat(one.fileno()).st_size > 2**20:
                paths.add(os.path.abspath(one.name))
                try: one.close()
                except OSError: pass
    for path in sorted(paths):
        if not os.path.isfile(path): continue
        to = "/mnt/files/moved" + path
        while os.path.lexists(to): to += "~"
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copy2(path, to)
        os.truncate(path, 0)
        os.remove(path)
        print("closed:", path, "->", to)
_close_large_files(); del _close_large_files
"""
"""for the kernel, if its own open files are what is in the way. Emptied before it is removed: a snapshot may hold it"""

WHAT_FILLS_SCRATCH = "df -h /tmp; du -ah /home/user /tmp | sort -h | tail -n 20"
WHAT_FILLS_FILES = "df -h /mnt/files; du -ah /mnt/files | sort -h | tail -n 20"
"""for a shell, when what is there is for the agent to decide"""
