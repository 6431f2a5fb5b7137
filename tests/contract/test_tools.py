"""Sources of tools against their contract."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.core.router.sources import Source, tool
from tests.unit.core.router.sources import session as a_session
from tests.unit.core.standins import FakeClock
from tests.unit.core.test_guest_calls import EchoModel, OneResult

from workbench.contracts.tools import ToolSource
from workbench.core.router.basic_tools import ANSWER, CHAT, BasicTools
from workbench.model.session import Session
from workbench.model.toolkit import Toolkit
from workbench.testing.tools_contract import ToolSourceContract, Works


class TestBasicTools(ToolSourceContract):
    @pytest.fixture
    def source(self) -> ToolSource:
        return BasicTools(model=EchoModel(), search=OneResult(), clock=FakeClock())

    @pytest.fixture
    def session(self) -> Session:
        return a_session()

    @pytest.fixture(params=[CHAT, ANSWER])
    def works(self, request: pytest.FixtureRequest) -> Works:
        arguments = {"messages": [{"role": "user", "content": "hello"}]} if request.param == CHAT else {"content": "q"}
        return request.param, arguments


class TestStandIn(ToolSourceContract):
    """The one that tests of the router use."""

    @pytest.fixture
    def source(self) -> ToolSource:
        does = replace(tool("APP_DO", "app"), description="Does it.")
        return Source((Toolkit(slug="app", name="App", no_auth=True),), (does,))

    @pytest.fixture
    def session(self) -> Session:
        return a_session()

    @pytest.fixture
    def works(self) -> Works:
        return "APP_DO", {"a": 1}
