"""Files that are wrong, or mean harm: each gets an answer that names it and the next step, and takes nothing else."""

from __future__ import annotations

import os
import struct
import time
import zipfile
import zlib
from pathlib import Path

import docx
import pytest
from bench.documents import DIGITAL, make_docx
from PIL import Image
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfgen import canvas
from tests.extract.conftest import Read

_CONTENT_TYPES = "[Content_Types].xml"
_OLD = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
_SECRET = "what stands in another file"


def _replaced(source: Path, target: Path, part: str, content: bytes) -> None:
    """The same document, with one part exchanged."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, content if name == part else old.read(name))


def _document(inside: str) -> bytes:
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    return f'<w:document xmlns:w="{space}"><w:body>{inside}</w:body></w:document>'.encode()


# --- what is not a file to read


def test_what_is_no_file_is_named(read: Read, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "empty.pdf").touch()
    for path, said in (
        (tmp_path / "missing.pdf", f"no such file: {tmp_path}/missing.pdf; list the folder {tmp_path}"),
        (tmp_path, "is a folder: give the path of one file"),
        (tmp_path / "fifo", "is not a regular file"),
        (Path("/dev/zero"), "is not a regular file"),
        (tmp_path / "loop", "is a symbolic link that leads to itself"),
        (tmp_path / "empty.pdf", "is empty"),
        (tmp_path / "empty.pdf" / "in", "cannot be opened: Not a directory"),
    ):
        told = read(path)
        assert said in told.error
        assert (told.text, told.pages, told.kind) == ("", 0, "")


def test_a_link_to_a_file_is_read(read: Read, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("some words")
    (tmp_path / "link").symlink_to("a.txt")
    assert read(tmp_path / "link").text == "some words"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.bin", bytes(range(256)) * 20, "is of an unknown binary kind (it begins with 00 01 02"),
        ("a.docx", b"\x00\x01garbage\x02\x03" * 99, "is called .docx, but is broken or something else"),
        ("a.doc", _OLD + "WordDocument".encode("utf-16-le"), "save it as .docx"),
        ("a.rtf", b"{\\rtf1 words}", "is an RTF file: save it as .docx"),
        ("a.pdf", b"%PDF-1.7\nand nothing more", "is a broken or cut off PDF"),
        ("a.png", b"\x89PNG\r\n\x1a\nand nothing more", "is a broken or unknown picture"),
        ("a.xlsx", b"PK\x03\x04 and nothing more", "is a broken or cut off zip or Office file"),
        (
            "locked.docx",
            _OLD + "EncryptedPackage".encode("utf-16-le"),
            "is encrypted: open it with its password",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_by_name(
    read: Read, tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    (tmp_path / name).write_bytes(content)
    told = read(tmp_path / name)
    assert told.text == ""
    assert told.error.startswith(str(tmp_path / name))
    assert said in told.error


@pytest.mark.parametrize("name", ["text.pdf", "text.docx", "text.xlsx", "text.pptx", "text.eml"])
def test_a_file_that_is_cut_off_anywhere_gets_an_answer(read: Read, tmp_path: Path, name: str) -> None:
    DIGITAL[name](tmp_path / name, 3)
    content = (tmp_path / name).read_bytes()
    for part in (0.1, 0.5, 0.9):
        (tmp_path / name).write_bytes(content[: int(len(content) * part)])
        told = read(tmp_path / name)
        assert told.text or told.error


def test_a_cut_off_picture_says_so(read: Read, tmp_path: Path) -> None:
    Image.effect_noise((900, 900), 80).save(tmp_path / "a.png")
    content = (tmp_path / "a.png").read_bytes()
    (tmp_path / "a.png").write_bytes(content[: len(content) // 2])
    assert "is broken or cut off" in read(tmp_path / "a.png").error


def test_a_pdf_that_needs_a_password_says_so(read: Read, tmp_path: Path) -> None:
    page = canvas.Canvas(str(tmp_path / "locked.pdf"), encrypt=StandardEncryption("secret", canPrint=0))
    page.drawString(72, 700, "hidden words")
    page.save()
    told = read(tmp_path / "locked.pdf")
    assert told.text == ""
    assert "is encrypted: open it with its password" in told.error


def test_a_zip_archive_is_not_unpacked(read: Read, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.txt", "words")
    assert "is a zip archive: unpack it" in read(tmp_path / "a.zip").error


# --- too much of it


def test_a_document_that_would_unpack_to_gigabytes_is_not_unpacked(read: Read, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.docx", "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr(_CONTENT_TYPES, "<Types/>")
        with bomb.open("word/document.xml", "w", force_zip64=True) as part:
            for _ in range(300):
                part.write(b" " * 2**20)
    began = time.monotonic()
    told = read(tmp_path / "bomb.docx")
    assert "would unpack to 300 MB, and at most 256 MB are unpacked" in told.error
    assert time.monotonic() - began < 20


def test_a_document_that_lies_about_its_size_gives_no_more_than_it_declared(read: Read, tmp_path: Path) -> None:
    make_docx(tmp_path / "a.docx", 1)
    body = _document("<w:p><w:r><w:t>" + "word " * 4_000_000 + "</w:t></w:r></w:p>")
    _replaced(tmp_path / "a.docx", tmp_path / "lie.docx", "word/document.xml", body)
    content = (tmp_path / "lie.docx").read_bytes()
    size = struct.pack("<I", len(body))
    assert content.count(size) == 2
    (tmp_path / "lie.docx").write_bytes(content.replace(size, struct.pack("<I", 1000)))
    told = read(tmp_path / "lie.docx")
    assert "is broken" in told.error
    assert len(told.text) < 2000


def test_a_picture_of_a_billion_pixels_is_not_decoded(read: Read, tmp_path: Path) -> None:
    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 0, 0, 0, 0)
    rows = zlib.compress(bytes(60_001 * 500), 9)
    (tmp_path / "bomb.png").write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    )
    told = read(tmp_path / "bomb.png")
    assert "is too large: 60000 x 60000 pixels, at most 50 million are read" in told.error


def test_a_picture_of_a_billion_pixels_inside_of_a_pdf_costs_its_page_and_no_other(read: Read, tmp_path: Path) -> None:
    side = 30_000
    font = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
    packer = zlib.compressobj(9)
    picture = b"".join(packer.compress(bytes(side)) for _ in range(side)) + packer.flush()
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count 2/Kids[3 0 R 4 0 R]>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 5 0 R/Resources<</XObject<</I 6 0 R>>>>>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 7 0 R/Resources<</Font<</F %s>>>>>>" % font,
        _stream(b"", b"600 0 0 800 0 0 cm /I Do"),
        _stream(
            b"/Type/XObject/Subtype/Image/Width %d/Height %d/ColorSpace/DeviceRGB/BitsPerComponent 8/Filter/FlateDecode"
            % (side, side),
            picture,
        ),
        _stream(b"", b"BT /F 12 Tf 72 700 Td (the second page has words of its own) Tj ET"),
    ]
    (tmp_path / "bomb.pdf").write_bytes(_pdf(objects))
    told = read(tmp_path / "bomb.pdf")
    assert told.pages == 2
    assert "the second page has words of its own" in told.text


def test_a_page_that_would_never_end_is_given_up_and_the_others_are_read(read_within: Read, tmp_path: Path) -> None:
    _with_a_page_that_never_ends(tmp_path / "slow.pdf")
    told = read_within(tmp_path / "slow.pdf", 8, 60.0)
    assert told.text == "the first page\n\nthe third page"
    assert f"page 2 of {tmp_path}/slow.pdf was given up after 8 s: its text is missing" in told.error


def test_a_file_that_takes_all_the_time_gives_what_there_is_until_then(read_within: Read, tmp_path: Path) -> None:
    _with_a_page_that_never_ends(tmp_path / "slow.pdf")
    told = read_within(tmp_path / "slow.pdf", 60, 6.0)
    assert told.text == "the first page"
    assert f"stopped at page 2 of {tmp_path}/slow.pdf after 6 s" in told.error


def test_a_mail_that_would_take_all_memory_is_given_up_without_taking_it(read: Read, tmp_path: Path) -> None:
    (tmp_path / "many.eml").write_bytes(b"From: a\nTo: b\nDate: c\n" + b"X: y\n" * 6_000_000 + b"\nthe body")
    told = read(tmp_path / "many.eml")
    assert "needs more memory than reading may take" in told.error


def test_a_text_that_is_too_large_is_refused_before_it_is_read(read: Read, tmp_path: Path) -> None:
    with (tmp_path / "large.txt").open("wb") as file:
        file.write(b"words in it\n" * (40 * 2**20 // 12 + 1))
    with (tmp_path / "larger.pdf").open("wb") as file:
        file.truncate(300 * 2**20)
    assert "is too large for a text: 40 MB, at most 32 MB are read" in read(tmp_path / "large.txt").error
    assert "is too large: 300 MB, at most 256 MB are read" in read(tmp_path / "larger.pdf").error


def test_more_text_than_anybody_can_use_is_cut_with_a_word_about_it(read: Read, tmp_path: Path) -> None:
    (tmp_path / "long.csv").write_text("a,b\n" * 5_000_000)
    told = read(tmp_path / "long.csv")
    assert len(told.text) <= 16_000_000 + 20_000
    assert "has over 16000000 characters: this is the beginning" in told.error


# --- what it would like to be read


def test_an_entity_of_a_document_is_not_followed_to_another_file(read: Read, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(_SECRET)
    make_docx(tmp_path / "a.docx", 1)
    body = f'<!DOCTYPE d [<!ENTITY x SYSTEM "file://{tmp_path}/secret">]>'.encode() + _document(
        "<w:p><w:r><w:t>&x;</w:t></w:r></w:p>"
    )
    _replaced(tmp_path / "a.docx", tmp_path / "xxe.docx", "word/document.xml", body)
    told = read(tmp_path / "xxe.docx")
    assert _SECRET not in told.text
    assert "declares a document type" in told.error


def test_entities_that_double_and_double_are_refused(read: Read, tmp_path: Path) -> None:
    make_docx(tmp_path / "a.docx", 1)
    entities = '<!ENTITY a0 "ha">' + "".join(f'<!ENTITY a{n + 1} "&a{n};&a{n};&a{n};&a{n};">' for n in range(20))
    body = f"<!DOCTYPE d [{entities}]>".encode() + _document("<w:p><w:r><w:t>&a20;</w:t></w:r></w:p>")
    _replaced(tmp_path / "a.docx", tmp_path / "laughs.docx", "word/document.xml", body)
    assert "declares a document type" in read(tmp_path / "laughs.docx").error


def test_an_xml_file_is_text_and_its_entities_stay_as_they_are(read: Read, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(_SECRET)
    text = f'<?xml version="1.0"?><!DOCTYPE d [<!ENTITY x SYSTEM "file://{tmp_path}/secret">]><d>&x;</d>'
    (tmp_path / "a.xml").write_text(text)
    assert read(tmp_path / "a.xml").text == text


def test_a_document_that_is_nested_without_end_is_refused(read: Read, tmp_path: Path) -> None:
    make_docx(tmp_path / "a.docx", 1)
    deep = _document("<w:p>" * 100_000 + "</w:p>" * 100_000)
    _replaced(tmp_path / "a.docx", tmp_path / "deep.docx", "word/document.xml", deep)
    assert "is nested too deeply" in read(tmp_path / "deep.docx").error


def test_html_that_is_nested_without_end_is_read_all_the_same(read: Read, tmp_path: Path) -> None:
    (tmp_path / "deep.html").write_text("<!doctype html>" + "<table><tr><td>" * 20_000 + "the core")
    assert "the core" in read(tmp_path / "deep.html").text


def test_mails_within_mails_end_somewhere(read: Read, tmp_path: Path) -> None:
    mail = b"From: a@example.org\r\nTo: b@example.org\r\nSubject: the core\r\n\r\nthe core\r\n"
    for _ in range(40):
        mail = (
            b"From: a@example.org\r\nTo: b@example.org\r\nSubject: outer\r\nMIME-Version: 1.0\r\n"
            b"Content-Type: message/rfc822\r\n\r\n" + mail
        )
    (tmp_path / "deep.eml").write_bytes(mail)
    told = read(tmp_path / "deep.eml")
    assert "Subject: outer" in told.text
    assert "too many mails within each other" in told.error


def test_a_link_of_a_document_to_somewhere_else_is_not_followed(read: Read, tmp_path: Path) -> None:
    document = docx.Document()
    document.add_paragraph("the text itself")
    target = f"file://{tmp_path}/secret"
    document.part.relate_to(target, "http://schemas.openxmlformats.org/officeDocument/2006/relationships/header", True)
    (tmp_path / "secret").write_text(_SECRET)
    document.save(str(tmp_path / "a.docx"))
    told = read(tmp_path / "a.docx")
    assert (told.text, told.error) == ("the text itself", "")


def _stream(fields: bytes, content: bytes) -> bytes:
    return b"<<" + fields + b"/Length %d>>stream\n" % len(content) + content + b"\nendstream"


def _pdf(objects: list[bytes]) -> bytes:
    out, places = b"%PDF-1.7\n", []
    for number, content in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n" % number + content + b"\nendobj\n"
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, len(out))
    return out + b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + table + end


def _with_a_page_that_never_ends(path: Path) -> None:
    """It has no text, so it is drawn to be looked at: half a million times over."""
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents %d 0 R/Resources<</Font<</F 9 0 R>>>>>>"
    line = b"BT /F 12 Tf 72 700 Td (the %s page) Tj ET"
    drawn = zlib.compress(b"0 0 590 790 re 10 10 580 780 re f* " * 500_000, 9)
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Count 3/Kids[3 0 R 4 0 R 5 0 R]>>",
        page % 6, page % 7, page % 8,
        _stream(b"", line % b"first"), _stream(b"/Filter/FlateDecode", drawn), _stream(b"", line % b"third"),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]  # fmt: skip
    path.write_bytes(_pdf(objects))
