"""PythonLists: each rule of what may be installed, with what it must leave alone."""

from __future__ import annotations

import pytest

from workbench.contracts.packages import PackageLists, rule_of
from workbench.errors import PackageRefused
from workbench.model.packages import Language, PackagePolicy, PackageRule
from workbench.packages.python_lists import PythonLists

SUPPORTED, POPULAR, ANY, OFF = PackagePolicy.SUPPORTED, PackagePolicy.POPULAR, PackagePolicy.ANY, PackagePolicy.OFF
EVERY_POLICY = list(PackagePolicy)
LISTS = PythonLists()


def refused_import(module: str, policy: PackagePolicy = SUPPORTED, lists: PythonLists = LISTS) -> PackageRefused:
    with pytest.raises(PackageRefused) as caught:
        lists.providing(module, policy)
    return caught.value


def refused_name(name: str, policy: PackagePolicy = SUPPORTED, lists: PythonLists = LISTS) -> PackageRefused:
    with pytest.raises(PackageRefused) as caught:
        lists.admitted(name, policy)
    return caught.value


def test_the_lists_are_of_python() -> None:
    lists: PackageLists = PythonLists(allow=["a"], deny=["b"])
    assert lists.language is Language.PYTHON


@pytest.mark.parametrize("policy", EVERY_POLICY)
@pytest.mark.parametrize(
    ("module", "distribution"),
    [
        ("tabulate", "tabulate"),
        ("docx", "python-docx"),
        ("dotenv", "python-dotenv"),
        ("jwt", "pyjwt"),
        ("fitz", "pymupdf"),
        ("telegram", "python-telegram-bot"),
        ("bs4", "beautifulsoup4"),
        ("yaml", "pyyaml"),
        ("sklearn", "scikit-learn"),
        ("PIL", "pillow"),
        ("cv2", "opencv-python-headless"),
        ("bson", "pymongo"),
        ("Crypto", "pycryptodome"),
        ("dateutil", "python-dateutil"),
        ("serial", "pyserial"),
        ("slugify", "python-slugify"),
        ("github", "pygithub"),
        ("OpenSSL", "pyopenssl"),
        ("humanize", "humanize"),
        ("xmltodict", "xmltodict"),
        ("prettytable", "prettytable"),
        ("pycountry", "pycountry"),
        ("emoji", "emoji"),
    ],
)
def test_the_well_known_distribution_of_a_module_is_found_under_every_policy(
    module: str, distribution: str, policy: PackagePolicy
) -> None:
    assert LISTS.providing(module, policy) == distribution


def test_a_submodule_belongs_to_the_distribution_of_its_package() -> None:
    assert LISTS.providing("sklearn.linear_model", SUPPORTED) == "scikit-learn"
    assert LISTS.providing("bs4.element.Tag", SUPPORTED) == "beautifulsoup4"


@pytest.mark.parametrize(
    ("module", "distribution"),
    [
        ("google.cloud.storage", "google-cloud-storage"),
        ("google.cloud.storage.blob", "google-cloud-storage"),
        ("google.cloud.bigquery", "google-cloud-bigquery"),
        ("google.oauth2.service_account", "google-auth"),
        ("google.protobuf.message", "protobuf"),
        ("google.genai", "google-genai"),
        ("azure.storage.blob", "azure-storage-blob"),
        ("azure.identity.aio", "azure-identity"),
        ("ruamel.yaml", "ruamel-yaml"),
        ("zope.interface", "zope-interface"),
    ],
)
def test_in_a_shared_namespace_the_longest_name_decides(module: str, distribution: str) -> None:
    assert LISTS.providing(module, SUPPORTED) == distribution


@pytest.mark.parametrize("policy", EVERY_POLICY)
@pytest.mark.parametrize("module", ["google", "google.cloud", "azure", "azure.storage", "zope", "ruamel"])
def test_a_bare_namespace_is_refused_and_says_what_is_in_it(module: str, policy: PackagePolicy) -> None:
    message = refused_import(module, policy).message
    assert f"{module!r} is shared by many" in message
    assert f"{module}." in message


def test_a_slip_within_a_namespace_is_answered_with_the_nearest_of_it() -> None:
    assert "did you mean 'google.cloud.storage'?" in refused_import("google.cloud.storge").message


def test_a_slip_within_a_namespace_is_never_taken_for_a_distribution() -> None:
    assert rule_of(refused_import("google.cloud.nonesuch", ANY)) is PackageRule.NOT_SUPPORTED


@pytest.mark.parametrize("policy", EVERY_POLICY)
@pytest.mark.parametrize(
    "module", ["utils", "config", "main", "helpers", "common", "data", "models", "api", "utils.io"]
)
def test_a_generic_name_is_a_file_of_the_agents_own_under_every_policy(module: str, policy: PackagePolicy) -> None:
    problem = refused_import(module, policy)
    assert rule_of(problem) is PackageRule.NOT_SUPPORTED
    assert "file of yours" in problem.message


@pytest.mark.parametrize("module", ["requests_toolbelt", "dataclasses_json", "jsonschema"])
def test_a_name_that_only_contains_a_generic_one_is_left_alone(module: str) -> None:
    assert LISTS.providing(module, SUPPORTED)


@pytest.mark.parametrize("policy", EVERY_POLICY)
@pytest.mark.parametrize(
    ("module", "instead"),
    [
        ("imp", "importlib"),
        ("distutils.core", "shutil"),
        ("asyncore", "asyncio"),
        ("cgi", "urllib.parse"),
        ("urllib2", "requests"),
        ("ConfigParser", "configparser"),
        ("StringIO", "io.StringIO"),
        ("win32com.client", "openpyxl"),
        ("winreg", "Windows"),
        ("AppKit", "macOS"),
        ("RPi.GPIO", "Raspberry"),
        ("google.colab", "working directory"),
        ("torch", "onnxruntime"),
        ("torchvision.models", "torch"),
        ("tensorflow.keras", "scikit-learn"),
        ("tkinter", "matplotlib"),
        ("PyQt5.QtWidgets", "display"),
        ("tabula", "pdfplumber"),
    ],
)
def test_what_cannot_be_here_is_refused_with_what_to_use_instead(
    module: str, instead: str, policy: PackagePolicy
) -> None:
    problem = refused_import(module, policy)
    assert problem.message.startswith(repr(module))
    assert instead in problem.message
    assert rule_of(problem) is PackageRule.NOT_SUPPORTED


@pytest.mark.parametrize("policy", EVERY_POLICY)
def test_a_package_without_wheels_has_failed_rather_than_being_unsupported(policy: PackagePolicy) -> None:
    assert rule_of(refused_import("dlib", policy)) is PackageRule.FAILED
    assert rule_of(refused_name("dlib", policy)) is PackageRule.FAILED


@pytest.mark.parametrize("policy", [SUPPORTED, POPULAR])
@pytest.mark.parametrize(
    ("module", "nearest"),
    [
        ("reqeusts", "requests"),
        ("beutifulsoup4", "bs4"),
        ("openpyxI", "openpyxl"),
        ("huggingface_cli", "huggingface-hub"),
    ],
)
def test_a_slip_or_an_invented_name_is_refused_with_the_nearest(
    module: str, nearest: str, policy: PackagePolicy
) -> None:
    problem = refused_import(module, policy)
    assert rule_of(problem) is PackageRule.NOT_SUPPORTED
    assert nearest in problem.message


def test_the_message_for_a_slip_is_one_sentence_with_the_next_step() -> None:
    assert refused_import("reqeusts").message == "no supported package provides 'reqeusts'; did you mean 'requests'?"


@pytest.mark.parametrize(
    ("module", "right"),
    [("pyyaml", "yaml"), ("beautifulsoup4", "bs4"), ("scikit_learn", "sklearn"), ("Faker", "faker")],
)
@pytest.mark.parametrize("policy", [SUPPORTED, PackagePolicy.POPULAR, PackagePolicy.ANY])
def test_who_imports_what_a_package_is_called_is_told_its_modules(
    module: str, right: str, policy: PackagePolicy
) -> None:
    message = refused_import(module, policy).message
    assert message.startswith(f"no module is named {module!r}: the package ")
    assert repr(right) in message


def test_what_is_missing_is_the_module_and_not_what_was_wanted_of_it() -> None:
    assert "provides 'reqeusts'; did you mean 'requests'?" in refused_import("reqeusts.get").message
    assert "installed for 'utils': it reads like a file of yours" in refused_import("utils.helper").message


def test_what_is_like_nothing_is_refused_without_a_proposal() -> None:
    message = refused_import("zzqqxxvv").message
    assert "did you mean" not in message
    assert "operator" in message


@pytest.mark.parametrize("module", ["os.paht", "collections.OrderedDic", "json5x.", "", "a b", "a..b", "x-y"])
def test_a_part_of_python_or_no_name_at_all_is_never_installed(module: str) -> None:
    assert rule_of(refused_import(module, ANY)) is PackageRule.NOT_SUPPORTED


def test_a_popular_module_is_installed_by_its_own_name_under_popular_only() -> None:
    assert rule_of(refused_import("nodeenv", SUPPORTED)) is PackageRule.NOT_SUPPORTED
    assert LISTS.providing("nodeenv", POPULAR) == "nodeenv"
    assert LISTS.providing("nodeenv", ANY) == "nodeenv"


def test_under_supported_a_popular_one_is_refused_with_the_policy_that_has_it() -> None:
    assert "'popular'" in refused_name("editables").message


def test_underscores_of_a_module_are_hyphens_of_its_distribution() -> None:
    assert LISTS.providing("pyproject_hooks.x", POPULAR) == "pyproject-hooks"


def test_an_unknown_module_is_installed_by_its_own_name_under_any_only() -> None:
    assert LISTS.providing("some_unlisted_name_zz.sub", ANY) == "some-unlisted-name-zz"
    for policy in (OFF, SUPPORTED, POPULAR):
        assert rule_of(refused_import("some_unlisted_name_zz", policy)) is PackageRule.NOT_SUPPORTED


def test_off_is_answered_as_supported() -> None:
    assert LISTS.providing("tabulate", OFF) == "tabulate"
    assert refused_import("nodeenv", OFF).message == refused_import("nodeenv", SUPPORTED).message


@pytest.mark.parametrize("policy", EVERY_POLICY)
@pytest.mark.parametrize(
    ("asked", "right"),
    [
        ("sklearn", "scikit-learn"),
        ("bs4", "beautifulsoup4"),
        ("cv2", "opencv-python-headless"),
        ("opencv-python", "opencv-python-headless"),
        ("PIL", "pillow"),
        ("yaml", "pyyaml"),
        ("jwt", "pyjwt"),
        ("docx", "python-docx"),
        ("dotenv", "python-dotenv"),
        ("fitz", "pymupdf"),
        ("telegram", "python-telegram-bot"),
        ("pyyml", "pyyaml"),
        ("beautifulsoup", "beautifulsoup4"),
        ("google-oauth", "google-auth-oauthlib"),
        ("Google_OAuth", "google-auth-oauthlib"),
        ("psycopg2", "psycopg2-binary"),
    ],
)
def test_a_name_that_is_asked_for_in_error_is_refused_with_the_right_one(
    asked: str, right: str, policy: PackagePolicy
) -> None:
    problem = refused_name(asked, policy)
    assert f"use {right!r}" in problem.message
    assert rule_of(problem) is PackageRule.NOT_SUPPORTED


@pytest.mark.parametrize("asked", ["pathlib", "asyncio", "typing", "json"])
def test_a_part_of_python_is_never_installed_by_name(asked: str) -> None:
    assert "a part of Python" in refused_name(asked, ANY).message


def test_the_name_of_a_module_is_refused_with_the_distribution_that_has_it() -> None:
    assert "'grpcio'" in refused_name("grpc").message


@pytest.mark.parametrize("asked", ["PyYAML", "pyyaml", "PyYaml", "PYYAML"])
def test_an_admitted_name_comes_back_as_the_index_writes_it(asked: str) -> None:
    assert LISTS.admitted(asked, SUPPORTED) == "pyyaml"


def test_names_are_compared_as_the_index_compares_them() -> None:
    assert LISTS.admitted("Ruamel_YAML", SUPPORTED) == LISTS.admitted("ruamel.yaml", SUPPORTED) == "ruamel-yaml"


def test_an_unlisted_name_is_admitted_under_any_only() -> None:
    assert LISTS.admitted("some-unlisted-name-zz", ANY) == "some-unlisted-name-zz"
    for policy in (OFF, SUPPORTED, POPULAR):
        assert "is not supported" in refused_name("some-unlisted-name-zz", policy).message


def test_a_slip_in_a_name_is_refused_with_the_nearest() -> None:
    assert "did you mean 'requests'?" in refused_name("reqeusts").message


def test_a_generic_name_is_refused_as_a_package_too() -> None:
    assert rule_of(refused_name("utils", SUPPORTED)) is PackageRule.NOT_SUPPORTED
    assert rule_of(refused_name("utils", POPULAR)) is PackageRule.NOT_SUPPORTED


@pytest.mark.parametrize("asked", ["", "-x", "a b", "a/b", "../a", "a==1", "https://x", "a;b", "a[b]", "ä", "x" * 200])
@pytest.mark.parametrize("policy", EVERY_POLICY)
def test_what_is_no_name_is_refused_under_every_policy(asked: str, policy: PackagePolicy) -> None:
    assert rule_of(refused_name(asked, policy)) is PackageRule.NOT_SUPPORTED


@pytest.mark.parametrize("policy", EVERY_POLICY)
def test_what_the_operator_allows_is_admitted_under_every_policy(policy: PackagePolicy) -> None:
    lists = PythonLists(allow=["Acme_Tools", "torch", "utils"])
    assert lists.admitted("acme.tools", policy) == "acme-tools"
    assert lists.providing("acme_tools.api", policy) == "acme-tools"
    assert lists.providing("acme.tools.api", policy) == "acme-tools"
    assert lists.providing("torch.nn", policy) == "torch"
    assert lists.admitted("torch", policy) == "torch"
    assert lists.providing("utils", policy) == "utils"


def test_what_the_operator_allows_opens_nothing_else() -> None:
    lists = PythonLists(allow=["acme-tools", "torch"])
    assert refused_import("acme_other", lists=lists)
    assert refused_import("torchvision", lists=lists)
    assert refused_name("acme", lists=lists)


def test_what_the_operator_allows_does_not_take_a_module_from_the_reviewed_table() -> None:
    lists = PythonLists(allow=["docx"])
    assert lists.providing("docx", SUPPORTED) == "python-docx"
    assert lists.admitted("docx", SUPPORTED) == "docx"


@pytest.mark.parametrize("policy", EVERY_POLICY)
def test_what_the_operator_denies_is_never_admitted_even_if_allowed(policy: PackagePolicy) -> None:
    lists = PythonLists(allow=["python-docx", "acme"], deny=["Python_Docx", "acme"])
    for problem in (
        refused_import("docx", policy, lists),
        refused_name("python.docx", policy, lists),
        refused_import("acme", policy, lists),
    ):
        assert "denied by the operator" in problem.message
        assert rule_of(problem) is PackageRule.NOT_SUPPORTED


def test_a_denied_name_leaves_its_neighbours_alone() -> None:
    lists = PythonLists(deny=["python-docx"])
    assert lists.providing("pptx", SUPPORTED) == "python-pptx"


@pytest.mark.parametrize("policy", [OFF, SUPPORTED, POPULAR])
@pytest.mark.parametrize(
    "module", ["google", "utils", "imp", "dlib", "win32com", "reqeusts", "zzqq", "a b", "os.x", "google.cloud.x"]
)
def test_every_refusal_is_one_line_that_names_the_thing(module: str, policy: PackagePolicy) -> None:
    message = refused_import(module, policy).message
    assert "\n" not in message
    assert repr(module) in message
    assert len(message) < 500


@pytest.mark.parametrize(
    ("module", "right"), [("opencv", "'cv2'"), ("tomllibb", "'tomllib'?"), ("colections", "'collections'?")]
)
def test_a_refusal_names_what_to_import(module: str, right: str) -> None:
    assert right in refused_import(module).message
