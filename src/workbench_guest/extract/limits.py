"""How much is read before reading is refused. Sized for the standard tier, where everything shares 1 GB."""

from __future__ import annotations

MIB = 1024 * 1024
# A larger file would not leave room beside a kernel, as it may lie in memory itself.
MAX_FILE_BYTES = 256 * MIB
# Text is decoded as a whole: four bytes a character at worst, twice for a moment.
MAX_TEXT_BYTES = 32 * MIB
# What anybody could still use; also what the answer may cost in memory.
MAX_TEXT_CHARS = 16_000_000
# BARRIER: a document of zipped parts is refused by the sizes that it declares, before anything is unpacked, and no part
# gives more than it declared; held by tests/extract/test_hostile_files.py.
MAX_UNPACKED_BYTES = 256 * MIB
MAX_PARTS = 20_000
MAX_XML_DEPTH = 256
# A mail is taken apart as a whole, which takes seven times its size; few servers carry one of over 25 MB.
MAX_MAIL_BYTES = 36 * MIB
# Mails in mails, and what hangs on them.
MAX_MAIL_DEPTH = 3
MAX_ATTACHMENTS = 50
MAX_PAGES = 5_000
# BARRIER: a picture is refused by the size in its header, before it is decoded; held by
# tests/extract/test_hostile_files.py. A4 at 600 dpi has 35 million pixels.
MAX_PIXELS = 50_000_000
# What is recognised at most: A4 at 350 dpi. More costs time and gives nothing.
MAX_OCR_PIXELS = 12_000_000
# One page of a scan takes about two seconds of one CPU, which may be shared.
PAGE_S = 30
# A page that was ended costs a new worker; a file that ends them all is not worth more.
MAX_FAILED_PAGES = 8
TOTAL_S = 540.0
# Beyond the worker's own clock, in case it cannot even be told by a signal.
STOP_S = 5.0
# BARRIER: of the worker's own memory, so that a picture inside of a PDF cannot cost the sandbox its kernel; held by
# tests/extract/test_hostile_files.py.
WORKER_BYTES = 420 * MIB
