"""Files of every kind with words that are known, made anew each time by the libraries that others make theirs with.

A scan is a picture here, never a page with a text layer. Used by bench/extract.py and tests/extract/.
"""

from __future__ import annotations

import csv
import email.message
import importlib.util
import io
import json
import random
import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_WORDS = (
    "account amount answer autumn balance banana bridge budget button camera candle castle circle clause coffee "
    "column copper corner cotton credit danger decade delivery deposit desert dinner doctor dragon effort engine "
    "estate evening factor family father figure finger forest formal garden gather gentle global golden guitar "
    "hammer harbor history honest hunter insect invoice island jacket journal jungle kettle kitchen ladder lantern "
    "leather letter liberty library limit machine manager marble market meadow member mirror monitor morning mountain "
    "museum narrow nature needle notice number object office orange orchard oxygen packet palace parcel payment pencil "
    "people pepper planet pocket policy powder prison profit public purple quarter rabbit random receipt record "
    "region report result ribbon river saddle sample school season secret shadow shipment silver simple spring square "
    "station steady summer supply system tariff temple ticket timber total travel tunnel valley vendor village violin "
    "volume wagon warning weather window winter wonder yellow Straße Größe Müller Äpfel schön prüfen Übung"
)
_JAPANESE = (
    "東京 大阪 会議 請求書 金額 確認 来週 月曜日 火曜日 日本 世界 都市 春 桜 観光客 電話 番号 住所 会社 社長 銀行 "
    "契約 期限 報告 結果 時間 場所 天気 新聞 学校 先生 学生 図書館 病院 駅前 電車 空港 料金 予約 注文 商品 販売 "
    "価格 数量 合計 税金 支払 領収書 担当者 部長 計画 開発 研究 技術 機械 工場 農業 医療 教育 文化 歴史 音楽 映画"
)
WORDS, JAPANESE = _WORDS.split(), _JAPANESE.split()
_SCAN_LINES = 34
_WORDS_A_LINE = 7
_A4_INCHES = (8.27, 11.69)


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A file, and the words that are to be found in it."""

    name: str
    path: Path
    words: tuple[str, ...]


def words(seed: int, count: int) -> list[str]:
    """Some of the list, always the same for a seed."""
    return random.Random(seed).choices(WORDS, k=count)


def found(text: str, wanted: tuple[str, ...]) -> int:
    """How many of the words are there, each as often as it was written."""
    text = unicodedata.normalize("NFC", text)
    if any(word in JAPANESE for word in wanted):
        # Written without spaces between words.
        text = re.sub(r"\s", "", text)
        return sum(min(text.count(word), times) for word, times in Counter(wanted).items())
    there = Counter(re.findall(r"\w+", text))
    return sum(min(there[word], times) for word, times in Counter(wanted).items())


def lines_of(all_words: list[str], per_line: int = _WORDS_A_LINE) -> list[str]:
    """Lines of so many words."""
    return [" ".join(all_words[at : at + per_line]) for at in range(0, len(all_words), per_line)]


# --- born digital


def make_pdf(path: Path, seed: int) -> list[str]:
    """Three pages of paragraphs, with a table on each."""
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate, Table

    all_words, story = words(seed, 300), []
    style = getSampleStyleSheet()
    for page in range(3):
        own = all_words[page * 100 : page * 100 + 100]
        story += [Paragraph(" ".join(own[:5]), style["Heading1"]), Paragraph(" ".join(own[5:70]), style["BodyText"])]
        story += [Table([own[at : at + 3] for at in range(70, 100, 3)], colWidths=[120] * 3), PageBreak()]
    SimpleDocTemplate(str(path)).build(story)
    return all_words


def make_docx(path: Path, seed: int) -> list[str]:
    """Paragraphs, a list, a table, a header and a footer."""
    import docx

    all_words = words(seed, 160)
    document = docx.Document()
    document.add_heading(" ".join(all_words[:4]), level=1)
    for line in lines_of(all_words[4:84]):
        document.add_paragraph(line)
    document.add_paragraph(" ".join(all_words[84:90]), style="List Bullet")
    table = document.add_table(rows=0, cols=4)
    for at in range(90, 150, 4):
        for cell, word in zip(table.add_row().cells, all_words[at : min(at + 4, 150)], strict=False):
            cell.text = word
    document.sections[0].header.paragraphs[0].text = " ".join(all_words[150:155])
    document.sections[0].footer.paragraphs[0].text = " ".join(all_words[155:160])
    document.save(str(path))
    return all_words


def make_xlsx(path: Path, seed: int) -> list[str]:
    """Two sheets, with numbers between the words."""
    import openpyxl

    all_words = words(seed, 200)
    book = openpyxl.Workbook()
    for number, sheet in enumerate((book.active, book.create_sheet(all_words[199]))):
        own = all_words[number * 100 : number * 100 + 100 - number]
        for at in range(0, len(own), 4):
            sheet.append([*own[at : at + 4], at * 1.5])
    book.save(str(path))
    return all_words


def make_pptx(path: Path, seed: int) -> list[str]:
    """Slides with a title, a text, a table and notes."""
    import pptx
    from pptx.util import Inches

    all_words = words(seed, 120)
    show = pptx.Presentation()
    for at in range(0, 120, 40):
        own = all_words[at : at + 40]
        slide = show.slides.add_slide(show.slide_layouts[1])
        slide.shapes.title.text = " ".join(own[:4])
        slide.placeholders[1].text = "\n".join(lines_of(own[4:24]))
        table = slide.shapes.add_table(2, 4, Inches(1), Inches(5), Inches(6), Inches(1)).table
        for index, word in enumerate(own[24:32]):
            table.cell(index // 4, index % 4).text = word
        slide.notes_slide.notes_text_frame.text = " ".join(own[32:])
    show.save(str(path))
    return all_words


def make_html(path: Path, seed: int) -> list[str]:
    """A page with what belongs on one, and a script that is not to be read."""
    all_words = words(seed, 150)
    rows = "".join(
        f"<tr><td>{a}</td><td><b>{b}</b></td></tr>" for a, b in zip(*[iter(all_words[100:])] * 2, strict=True)
    )
    text = "<br>".join(lines_of(all_words[10:100]))
    head = f"<title>{all_words[0]}</title><script>var unread = 'unread';</script><style>p {{color: red}}</style>"
    path.write_text(
        f"<!DOCTYPE html><html><head><meta charset=utf-8>{head}</head><body><h1>{' '.join(all_words[1:10])}</h1>"
        f"<p>{text}</p><table>{rows}</table></body></html>", encoding="utf-8",
    )  # fmt: skip
    return all_words


def make_table(path: Path, seed: int) -> list[str]:
    """csv or tsv, by the name."""
    all_words = words(seed, 200)
    text = io.StringIO()
    writer = csv.writer(text, delimiter="\t" if path.suffix == ".tsv" else ";")
    writer.writerows(all_words[at : at + 5] for at in range(0, 200, 5))
    path.write_text(text.getvalue(), encoding="utf-8")
    return all_words


def make_mail(path: Path, seed: int) -> list[str]:
    """A body, and three attachments."""
    all_words = words(seed, 60)
    message = email.message.EmailMessage()
    message["From"], message["To"] = f"{all_words[0]} <a@example.org>", f"{all_words[1]} <b@example.org>"
    message["Subject"] = " ".join(all_words[2:6])
    message["Date"] = "Tue, 03 Feb 2026 10:00:00 +0000"
    message.set_content("\n".join(lines_of(all_words[6:60])))
    folder = path.parent
    for maker, name, seed_of_it in ((make_docx, "in.docx", 1), (make_pdf, "in.pdf", 2), (make_table, "in.csv", 3)):
        inner = folder / f"{path.stem}-{name}"
        all_words += maker(inner, seed + seed_of_it)
        message.add_attachment(inner.read_bytes(), maintype="application", subtype="octet-stream", filename=name)
        inner.unlink()
    path.write_bytes(message.as_bytes())
    return all_words


def _plain(encoding: str, shape: Callable[[list[str]], str]) -> Callable[[Path, int], list[str]]:
    def make(path: Path, seed: int) -> list[str]:
        all_words = words(seed, 200)
        path.write_bytes(shape(lines_of(all_words)).encode(encoding))
        return all_words

    return make


def _joined(lines: list[str]) -> str:
    return "\n".join(lines)


DIGITAL: dict[str, Callable[[Path, int], list[str]]] = {
    "text.pdf": make_pdf,
    "text.docx": make_docx,
    "text.xlsx": make_xlsx,
    "text.pptx": make_pptx,
    "text.html": make_html,
    "text.csv": make_table,
    "text.tsv": make_table,
    "text.eml": make_mail,
    "text.md": _plain("utf-8", lambda lines: "# A title\n\n" + "\n".join(f"* {line}" for line in lines)),
    "utf-8.txt": _plain("utf-8", _joined),
    "utf-8-bom.txt": _plain("utf-8-sig", _joined),
    "utf-16.txt": _plain("utf-16", _joined),
    "utf-16-le.txt": _plain("utf-16-le", _joined),
    "latin-1.txt": _plain("latin-1", _joined),
    "text.json": _plain("utf-8", lambda lines: json.dumps(lines, ensure_ascii=False)),
    "text.xml": _plain(
        "utf-8", lambda lines: "<?xml version='1.0'?><all>" + "".join(f"<p>{a}</p>" for a in lines) + "</all>"
    ),
}


def digital(folder: Path, seed: int = 7) -> list[Made]:
    """One of every kind."""
    made = []
    for number, (name, make) in enumerate(DIGITAL.items()):
        path = folder / name
        made.append(Made(name=name, path=path, words=tuple(make(path, seed + number * 10))))
    return made


# --- scans


def font_file(name: str) -> Path:
    """Of the fonts that come with matplotlib, and the one for Japanese."""
    package, inner = ("matplotlib_fontja", "fonts") if name == "ipaexg" else ("matplotlib", "mpl-data/fonts/ttf")
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / inner / f"{name}.ttf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """How one was made."""

    name: str
    font: str = "DejaVuSans"
    dpi: int = 200
    turned: float = 0.0
    """degrees, against the clock"""
    japanese: bool = False


SCANS = (
    Scan(name="sans-200.png"),
    Scan(name="serif-200.png", font="STIXGeneral"),
    Scan(name="mono-200.jpg", font="DejaVuSansMono"),
    Scan(name="sans-300.pdf", dpi=300),
    Scan(name="serif-300.pdf", font="STIXGeneral", dpi=300),
    Scan(name="skewed-200.pdf", font="DejaVuSerif", turned=4.0),
    Scan(name="on-its-side-200.pdf", turned=90.0),
    Scan(name="upside-down-200.tiff", font="STIXGeneral", turned=180.0),
    Scan(name="japanese-200.pdf", font="ipaexg", japanese=True),
)


def scanned(folder: Path, scan: Scan, seed: int = 3) -> Made:
    """A page as a scanner gives it: a little soft, with noise, in lossy compression."""
    choice = random.Random(seed)
    count = 5 if scan.japanese else _WORDS_A_LINE
    lines = [choice.choices(JAPANESE if scan.japanese else WORDS, k=count) for _ in range(_SCAN_LINES)]
    page = draw([("、" if scan.japanese else " ").join(line) for line in lines], font_file(scan.font), scan.dpi)
    path = folder / scan.name
    save_scan(worn(page, scan.turned), path, scan.dpi)
    return Made(name=scan.name, path=path, words=tuple(word for line in lines for word in line))


def draw(lines: list[str], font: Path, dpi: int) -> Any:
    """A page of A4 with these lines at 11 points."""
    from PIL import Image, ImageDraw, ImageFont

    page = Image.new("L", (round(_A4_INCHES[0] * dpi), round(_A4_INCHES[1] * dpi)), 255)
    pen, face = ImageDraw.Draw(page), ImageFont.truetype(str(font), round(dpi * 11 / 72))
    for number, line in enumerate(lines):
        pen.text((dpi, dpi + number * dpi * 0.27), line, font=face, fill=20)
    return page


def worn(page: Any, turned: float) -> Any:
    """What glass, light and a hasty hand do to it."""
    from PIL import Image, ImageChops, ImageFilter

    if turned:
        page = page.rotate(turned, expand=True, fillcolor=255, resample=Image.Resampling.BICUBIC)
    page = page.filter(ImageFilter.GaussianBlur(0.5))
    grain = Image.effect_noise(page.size, 14)
    return ImageChops.add(page, grain, scale=1.0, offset=-136)


def save_scan(page: Any, path: Path, dpi: int) -> None:
    """As a picture, or as a PDF of nothing but a picture."""
    if path.suffix == ".pdf":
        page.save(path, "PDF", resolution=dpi, quality=75)
    else:
        page.save(path, dpi=(dpi, dpi))


def many_scans(folder: Path, pages: int) -> Made:
    """One PDF of so many pictures."""
    made = [scanned(folder, Scan(name=f"page-{number}.jpg"), seed=number) for number in range(pages)]
    path = folder / "many-scans.pdf"
    from PIL import Image

    pictures = [Image.open(one.path) for one in made]
    pictures[0].save(path, "PDF", resolution=200, save_all=True, append_images=pictures[1:])
    for picture, one in zip(pictures, made, strict=True):
        picture.close()
        one.path.unlink()
    return Made(name=path.name, path=path, words=tuple(word for one in made for word in one.words))


def many_pages(folder: Path, pages: int) -> Made:
    """One PDF of so many pages of text."""
    from reportlab.pdfgen import canvas

    path, all_words = folder / "many-pages.pdf", words(11, pages * 280)
    book = canvas.Canvas(str(path))
    for page in range(pages):
        for number, line in enumerate(lines_of(all_words[page * 280 : page * 280 + 280])):
            book.drawString(72, 770 - number * 17, line)
        book.showPage()
    book.save()
    return Made(name=path.name, path=path, words=tuple(all_words))
