"""Rich outputs on their whole way: updates, clearings and large formats, from a real kernel into the result."""

from __future__ import annotations

from tests.host.cells import make_kernel, run

from workbench.host_client.connection import HostConnection

_PAGE = "from IPython.display import HTML, display\npage = '<p>é</p>' * 200_000\n"


async def test_a_large_format_is_a_file_of_its_own_and_the_result_says_where(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    result = await run(shared_host, sandbox, f"{_PAGE}display({{'text/html': page, 'text/plain': 'small'}}, raw=True)")
    (shown,) = result.displays
    assert shown.data == {"text/plain": "small"}
    path = shown.files["text/html"]
    assert f"display 1: text/html of 1,600,000 characters is in {path}" in result.displays_note
    assert (await run(shared_host, sandbox, f"open({path!r}).read() == page")).results.text == "True"


async def test_a_picture_that_is_too_large_is_a_picture_in_a_file(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    code = "import numpy as np\nfrom PIL import Image\n"
    code += "display(Image.fromarray(np.random.randint(0, 255, (1600, 1600, 3), 'uint8')))"
    (shown,) = (await run(shared_host, sandbox, code)).displays
    assert "image/png" not in shown.data
    look = f"from PIL import Image\nImage.open({shown.files['image/png']!r}).format"
    assert (await run(shared_host, sandbox, look)).results.text == "'PNG'"


async def test_a_flood_of_large_displays_is_bounded_and_all_of_it_is_kept(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    result = await run(shared_host, sandbox, f"{_PAGE}for n in range(60): display(HTML(f'{{n:02}}{{page}}'))")
    assert (len(result.displays), result.displays_left_out) == (50, 10)
    last = result.displays[-1].files["text/html"]
    count = f"open({last!r}).read(2), sum(1 for _ in open({result.displays_file_path!r}))"
    assert (await run(shared_host, sandbox, count)).results.text == "('49', 10)"


async def test_an_update_is_the_display_as_it_is_in_the_end(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    code = (
        "from IPython.display import display, update_display\nhandle = display('1 of 3', display_id='progress')\n"
        "display('beside')\nfor n in (2, 3): update_display(f'{n} of 3', display_id='progress')"
    )
    result = await run(shared_host, sandbox, code)
    assert [one.data["text/plain"] for one in result.displays] == ["'3 of 3'", "'beside'"]
    later = await run(shared_host, sandbox, "handle.update('done')")
    told = [(one.data["text/plain"], one.display_id, one.is_update) for one in later.displays]
    assert told == [("'done'", "progress", True)]


async def test_what_a_cell_clears_is_not_in_its_result(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    code = (
        "from IPython.display import clear_output, display\n"
        "for n in range(5):\n    clear_output(wait=True)\n    print('step', n)\n    display(n)\n"
    )
    result = await run(shared_host, sandbox, code)
    assert (result.stdout.text, [one.data["text/plain"] for one in result.displays]) == ("step 4\n", ["4"])
    waits = await run(shared_host, sandbox, "print('stays')\nclear_output(wait=True)")
    assert waits.stdout.text == "stays\n"
    goes = await run(shared_host, sandbox, "print('goes')\nclear_output()")
    assert goes.stdout.text == ""
