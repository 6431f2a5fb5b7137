"""Files that carry their text: all of it comes out, in an order and a shape that can be read."""

from __future__ import annotations

import datetime
import email.message
import os
from pathlib import Path

import docx
import openpyxl
import pptx
import pytest
from bench.documents import DIGITAL, found, make_pdf
from reportlab.pdfgen import canvas
from tests.extract.conftest import Read


@pytest.mark.parametrize("name", DIGITAL)
def test_all_words_of_every_kind_are_found(read: Read, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    words = DIGITAL[name](path, 7)
    told = read(path)
    assert told.error == ""
    assert found(told.text, tuple(words)) >= 0.98 * len(words)
    expected = {"md": "markdown", "tsv": "csv", "txt": "text"}.get(path.suffix[1:], path.suffix[1:])
    assert told.kind == expected
    assert told.pages == {"pdf": 3, "xlsx": 2, "pptx": 3}.get(told.kind, 1)


def test_the_content_decides_and_not_the_name(read: Read, tmp_path: Path) -> None:
    make_pdf(tmp_path / "a.pdf", 1)
    (tmp_path / "a.pdf").rename(tmp_path / "a.txt")
    assert read(tmp_path / "a.txt").kind == "pdf"
    (tmp_path / "b.pdf").write_text("only words")
    told = read(tmp_path / "b.pdf")
    assert (told.kind, told.text) == ("text", "only words")


def test_rows_of_a_table_in_a_pdf_are_lines_with_bars(read: Read, tmp_path: Path) -> None:
    from reportlab.platypus import SimpleDocTemplate, Table

    rows = [["Name", "City"], ["Alice", "Berlin"], ["Bob", "Paris"]]
    SimpleDocTemplate(str(tmp_path / "t.pdf")).build([Table(rows, colWidths=[150, 150])])
    assert read(tmp_path / "t.pdf").text.splitlines() == ["Name | City", "Alice | Berlin", "Bob | Paris"]


def test_two_columns_of_a_pdf_are_read_one_after_the_other(read: Read, tmp_path: Path) -> None:
    page = canvas.Canvas(str(tmp_path / "c.pdf"))
    for x, side in ((72, "left"), (320, "right")):
        for number in range(5):
            page.drawString(x, 700 - number * 14, f"{side} line {number}")
    page.save()
    assert read(tmp_path / "c.pdf").text.splitlines() == [f"{s} line {n}" for s in ("left", "right") for n in range(5)]


def test_what_was_filled_into_a_form_is_read(read: Read, tmp_path: Path) -> None:
    page = canvas.Canvas(str(tmp_path / "f.pdf"))
    page.drawString(72, 700, "Surname of the applicant, in block letters:")
    page.acroForm.textfield(name="surname", value="Lovelace", x=72, y=640, width=200, height=24)
    page.save()
    told = read(tmp_path / "f.pdf")
    assert "Surname" in told.text
    assert "Lovelace" in told.text


def test_a_document_gives_headings_lists_tables_headers_footers_and_no_deleted_text(read: Read, tmp_path: Path) -> None:
    document = docx.Document()
    document.sections[0].header.paragraphs[0].text = "the header"
    document.sections[0].footer.paragraphs[0].text = "the footer"
    document.add_heading("Chapter", level=2)
    document.add_paragraph("before\tafter")
    table = document.add_table(rows=2, cols=2)
    for index, text in enumerate(("a", "b", "c one\nc two", "d")):
        table.cell(index // 2, index % 2).text = text
    document.save(str(tmp_path / "d.docx"))
    assert read(tmp_path / "d.docx").text.splitlines() == [
        "the header", "", "## Chapter", "before\tafter", "a | b", "c one c two | d", "", "the footer",
    ]  # fmt: skip


def test_sheets_come_with_names_dates_numbers_and_formulas(read: Read, tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.title = "First one"
    book.active.append(["when", "how much", "is it", "sum"])
    book.active.append([datetime.date(2026, 3, 1), 1.1, True, "=B2*2"])
    book.active.append([datetime.datetime.fromisoformat("2026-03-01 14:30"), 12, None, "end"])
    book.create_sheet("Second")["C3"] = "far away"
    book.save(str(tmp_path / "s.xlsx"))
    told = read(tmp_path / "s.xlsx")
    assert told.text.splitlines() == [
        "## Sheet: First one", "when | how much | is it | sum", "2026-03-01 | 1.1 | TRUE | =B2*2",
        "2026-03-01 14:30:00 | 12 |  | end", "", "## Sheet: Second", " |  | far away",
    ]  # fmt: skip
    assert told.pages == 2


def test_slides_come_in_their_order_with_notes(read: Read, tmp_path: Path) -> None:
    show = pptx.Presentation()
    for number in (1, 2):
        slide = show.slides.add_slide(show.slide_layouts[1])
        slide.shapes.title.text = f"title {number}"
        slide.notes_slide.notes_text_frame.text = f"said {number}"
    # The second is shown first.
    slides = show.slides._sldIdLst
    slides.insert(0, slides[1])
    show.save(str(tmp_path / "p.pptx"))
    text = read(tmp_path / "p.pptx").text
    assert text.index("title 2") < text.index("Notes: said 2") < text.index("title 1") < text.index("Notes: said 1")


def test_html_gives_what_a_reader_sees(read: Read, tmp_path: Path) -> None:
    (tmp_path / "h.html").write_text(
        "<!doctype html><title>T</title><script>hidden()</script><style>hidden</style><h1>Head</h1><ul><li>one<li>two"
        "</ul><table><tr><th>a<th>b<tr><td>1<td><table><tr><td>x<td>y</table></table><p>caf&eacute; <b>bo</b>ld"
    )
    text = read(tmp_path / "h.html").text
    assert [line for line in text.splitlines() if line] == [
        "T", "# Head", "- one", "- two", "a | b", "1 | x | y", "café bold",
    ]  # fmt: skip


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_of_a_table_is_found(read: Read, tmp_path: Path, delimiter: str) -> None:
    rows = [["name", "note"], ["Alice", '"a quoted\nline"'], ["Bob", "plain"]]
    (tmp_path / "t.csv").write_text("\n".join(delimiter.join(row) for row in rows))
    assert read(tmp_path / "t.csv").text.splitlines() == ["name | note", "Alice | a quoted line", "Bob | plain"]


def test_a_mail_gives_its_headers_body_and_attachments_and_mails_in_it(read: Read, tmp_path: Path) -> None:
    inner = email.message.EmailMessage()
    inner["From"], inner["Subject"] = "c@example.org", "inner subject"
    inner.set_content("<p>inner <b>body</b></p>", subtype="html")
    outer = email.message.EmailMessage()
    outer["From"], outer["To"], outer["Subject"] = "Zoë <a@example.org>", "b@example.org", "größer"
    outer["Date"] = "Tue, 03 Feb 2026 10:00:00 +0000"
    outer.set_content("plain body")
    outer.add_alternative("<p>marked body</p>", subtype="html")
    outer.add_attachment(b"name,n\nAlice,1\n", maintype="text", subtype="csv", filename="list.csv")
    outer.add_attachment(b"\x00\x01\x02\x03" * 50, maintype="application", subtype="x-thing", filename="thing.bin")
    outer.add_attachment(inner)
    (tmp_path / "m.eml").write_bytes(outer.as_bytes())
    told = read(tmp_path / "m.eml")
    assert told.error == ""
    for wanted in ("From: Zoë <a@example.org>", "To: b@example.org", "Subject: größer", "Date: Tue, 03 Feb 2026",
                   "plain body", "Attachment: list.csv", "Alice | 1", "Attachment: thing.bin", "inner subject",
                   "inner body"):  # fmt: skip
        assert wanted in told.text
    assert "marked body" not in told.text


def test_a_name_beside_the_caller_does_not_get_in_the_way_of_the_program(read: Read, tmp_path: Path) -> None:
    for name in ("csv", "email", "json", "zipfile", "typing", "dataclasses", "subprocess"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the wrong one')")
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    assert read(tmp_path / "t.csv", cwd=tmp_path).text == "a | b\n1 | 2"


def test_nothing_is_written_beside_the_file(read: Read, tmp_path: Path) -> None:
    make_pdf(tmp_path / "a.pdf", 1)
    before = (tmp_path / "a.pdf").stat()
    read(tmp_path / "a.pdf")
    assert os.listdir(tmp_path) == ["a.pdf"]
    assert (tmp_path / "a.pdf").stat().st_mtime_ns == before.st_mtime_ns
