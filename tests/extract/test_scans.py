"""Pages that are pictures: which way up, how straight and in which script is found out, not asked."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from bench.documents import SCANS, Scan, draw, font_file, found, lines_of, many_scans, save_scan, scanned, words, worn
from PIL import Image, ImageDraw, ImageFont
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen import canvas
from tests.extract.conftest import Read

pytestmark = pytest.mark.timeout(180)


@pytest.mark.parametrize("scan", [scan for scan in SCANS if scan.turned or scan.japanese], ids=lambda scan: scan.name)
def test_nine_words_of_ten_are_found(read: Read, tmp_path: Path, scan: Scan) -> None:
    made = scanned(tmp_path, scan)
    told = read(made.path)
    assert told.error == ""
    assert found(told.text, made.words) >= 0.9 * len(made.words)


def test_a_page_with_text_and_a_page_without_are_read_each_its_own_way(read: Read, tmp_path: Path) -> None:
    picture = io.BytesIO()
    worn(draw(["harbor meadow lantern"] * 6, font_file("DejaVuSans"), 200), 0).save(picture, "JPEG")
    book = canvas.Canvas(str(tmp_path / "mixed.pdf"), pagesize=(595, 842))
    book.drawString(72, 700, "a page that carries its text by itself")
    book.showPage()
    book.drawImage(ImageReader(picture), 0, 0, 595, 842)
    book.drawString(500, 20, "page 2")
    book.showPage()
    book.showPage()
    book.save()
    told = read(tmp_path / "mixed.pdf")
    assert (told.pages, told.error) == (3, "")
    assert told.text.startswith("a page that carries its text by itself\n\n")
    assert told.text.count("harbor meadow lantern") == 6


def test_rows_of_a_table_on_a_scan_are_lines_with_bars(read: Read, tmp_path: Path) -> None:
    page = draw([], font_file("DejaVuSans"), 200)
    pen, face = ImageDraw.Draw(page), ImageFont.truetype(str(font_file("DejaVuSans")), 30)
    rows = [("Article", "Amount", "Vendor"), *((f"{word} box", "12.50", "Market") for word in ("Copper", "Silver") * 4)]
    for number, row in enumerate(rows):
        for column, cell in enumerate(row):
            pen.text((200 + column * 450, 250 + number * 70), cell, font=face, fill=0)
            pen.rectangle((180 + column * 450, 235 + number * 70, 630 + column * 450, 305 + number * 70), outline=0)
    page.save(tmp_path / "table.png")
    assert read(tmp_path / "table.png").text.splitlines() == [" | ".join(row) for row in rows]


def test_two_columns_of_prose_on_a_scan_are_read_one_after_the_other(read: Read, tmp_path: Path) -> None:
    page = draw([], font_file("STIXGeneral"), 200)
    pen, face = ImageDraw.Draw(page), ImageFont.truetype(str(font_file("STIXGeneral")), 30)
    columns = [lines_of(words(seed, 120), 5) for seed in (1, 2)]
    for column, lines in enumerate(columns):
        for number, line in enumerate(lines):
            pen.text((120 + column * 750, 200 + number * 45), line, font=face, fill=0)
    page.save(tmp_path / "columns.png")
    text = read(tmp_path / "columns.png").text
    assert text.index(columns[0][-1]) < text.index(columns[1][0])


def test_a_tiff_of_several_pages_gives_them_all(read: Read, tmp_path: Path) -> None:
    pages = [draw([f"{word} orchard timber"] * 5, font_file("DejaVuSans"), 150) for word in ("silver", "copper")]
    pages[0].save(tmp_path / "two.tiff", save_all=True, append_images=pages[1:])
    told = read(tmp_path / "two.tiff")
    assert told.pages == 2
    assert told.text.index("silver orchard") < told.text.index("copper orchard")


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.webp", "a.bmp", "a.gif", "a.tiff"])
def test_every_format_of_pictures_is_read(read: Read, tmp_path: Path, name: str) -> None:
    save_scan(draw(["castle lantern violin"] * 5, font_file("DejaVuSans"), 150), tmp_path / name, 150)
    told = read(tmp_path / name)
    assert told.kind == "image"
    assert told.text.count("castle lantern violin") == 5


def test_a_screenshot_of_small_white_letters_on_black_is_read(read: Read, tmp_path: Path) -> None:
    shot = Image.new("RGB", (700, 200), "black")
    pen, face = ImageDraw.Draw(shot), ImageFont.truetype(str(font_file("DejaVuSans")), 14)
    for number in range(6):
        pen.text((8, 8 + number * 24), "the weather report for the mountain station", font=face, fill="white")
    shot.save(tmp_path / "shot.png")
    assert read(tmp_path / "shot.png").text.count("weather report for the mountain station") == 6


def test_letters_on_nothing_are_read_as_if_on_paper(read: Read, tmp_path: Path) -> None:
    page = draw(["castle lantern violin"] * 6, font_file("DejaVuSans"), 150)
    clear = Image.new("RGBA", page.size, (0, 0, 0, 0))
    clear.putalpha(page.point(lambda value: 255 - value))
    clear.save(tmp_path / "clear.png")
    assert read(tmp_path / "clear.png").text.count("castle lantern violin") == 6


def test_a_script_without_language_data_is_named_with_what_to_do(read: Read, tmp_path: Path) -> None:
    lines = ["столица страны является крупнейшим городом", "население города растёт каждый год"] * 12
    save_scan(draw(lines, font_file("DejaVuSans"), 200), tmp_path / "ru.png", 200)
    told = read(tmp_path / "ru.png")
    assert "looks like Cyrillic" in told.error
    assert "put rus.traineddata into /mnt/files/tessdata" in told.error


def test_a_picture_without_text_says_so(read: Read, tmp_path: Path) -> None:
    Image.new("L", (800, 600), 255).save(tmp_path / "white.png")
    Image.effect_noise((800, 600), 60).save(tmp_path / "noise.png")
    for name in ("white.png", "noise.png"):
        told = read(tmp_path / name)
        assert told.text == ""
        assert f"no text was found in {tmp_path / name}" in told.error


def test_the_pages_of_a_long_scan_follow_each_other(read: Read, tmp_path: Path) -> None:
    made = many_scans(tmp_path, 3)
    told = read(made.path)
    assert (told.pages, told.error) == (3, "")
    assert found(told.text, made.words) >= 0.9 * len(made.words)
