"""Which reader reads which kind. Readers are imported when they are needed, as their libraries are large."""

from __future__ import annotations

from workbench_guest.extract import kinds
from workbench_guest.extract.values import Document, Source


def kind_of(source: Source) -> str:
    """What it is.

    Raises:
        Unreadable: nothing here reads it.
    """
    return kinds.detect(source)


def read_as(kind: str, source: Source, first: int = 0) -> Document:
    """The document, from that page on if its kind can be read from any page.

    Raises:
        Unreadable: it is encrypted, broken or too large.
    """
    if kind == "pdf":
        from workbench_guest.extract.pdf import read_pdf

        return read_pdf(source, first)
    if kind == "image":
        from workbench_guest.extract.pictures import read_picture

        return read_picture(source, first)
    if kind in ("docx", "xlsx", "pptx"):
        return _office(kind, source)
    if kind == "eml":
        from workbench_guest.extract.mail import read_mail

        return read_mail(source)
    from workbench_guest.extract.texts import read_text

    return read_text(kind, source)


def _office(kind: str, source: Source) -> Document:
    if kind == "docx":
        from workbench_guest.extract.word import read_word

        return read_word(source)
    if kind == "xlsx":
        from workbench_guest.extract.sheets import read_sheets

        return read_sheets(source)
    from workbench_guest.extract.slides import read_slides

    return read_slides(source)
