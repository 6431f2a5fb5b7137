"""Text out of files, offline: what `smart_file_extract` stands on. Run as a process of its own, never in a kernel."""

# The program must clean its path before anything is imported, so what is here is imported when it is asked for.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from workbench_guest.extract.reading import extract
    from workbench_guest.extract.values import Extracted

__all__ = ["Extracted", "extract"]


def __getattr__(name: str) -> object:
    if name == "extract":
        from workbench_guest.extract.reading import extract

        return extract
    if name == "Extracted":
        from workbench_guest.extract.values import Extracted

        return Extracted
    raise AttributeError(name)
