import sys
import types

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.instrument import ProbeRegistry, probe_module

SOURCE = """
from json import dumps

def read(): return "read"
def write(): return dumps("write")
async def fetch(): return "fetch"
constant = 3

class Store:
    def get(self): return "get"
    @staticmethod
    def make(): return "make"
    @classmethod
    def open(cls): return cls
"""


@pytest.fixture
def module() -> types.ModuleType:
    made = types.ModuleType("shop")
    exec(SOURCE, made.__dict__)  # noqa: S102  # a module of its own for each test
    return made


def test_functions_that_fit_are_timed_until_that_is_undone(
    module: types.ModuleType, registry: ProbeRegistry
) -> None:
    plain = dict(vars(module))
    timed = probe_module(module, registry=registry)
    assert timed.names == ("shop.read", "shop.write", "shop.fetch")
    assert (module.read(), module.write()) == ("read", '"write"')
    timed.undo()
    assert (module.read(), vars(module)) == ("read", plain)
    assert [each.count for each in registry.read().values()] == [1, 1, 0]


def test_a_pattern_chooses(module: types.ModuleType, registry: ProbeRegistry) -> None:
    with probe_module(module, "[rf]e*", registry=registry) as timed:
        assert timed.names == ("shop.read", "shop.fetch")
    assert not hasattr(module.read, "__probe__")


def test_methods_are_taken_when_they_are_asked_for(
    module: types.ModuleType, registry: ProbeRegistry
) -> None:
    with probe_module(module, "Store.*", classes=True, registry=registry) as timed:
        store = module.Store()
        assert (store.get(), store.make(), store.open()) == ("get", "make", module.Store)
    assert timed.names == ("shop.Store.get", "shop.Store.make", "shop.Store.open")
    assert module.Store.make() == "make"
    assert [each.count for each in registry.read().values()] == [1, 1, 1]


def test_what_is_timed_already_stays(module: types.ModuleType, registry: ProbeRegistry) -> None:
    with probe_module(module, "read", registry=registry):
        again = probe_module(module, registry=registry)
        assert again.names == ("shop.write", "shop.fetch")
        module.read()
        again.undo()
    assert registry.probe("shop.read").read().count == 1


def test_what_somebody_else_has_replaced_stays(
    module: types.ModuleType, registry: ProbeRegistry
) -> None:
    with probe_module(module, "read", registry=registry):
        module.read = len
    assert module.read is len


def test_what_cannot_be_timed_is_refused(module: types.ModuleType, registry: ProbeRegistry) -> None:
    for wrong in ((module, "red"), ("shop",), (sys,), (module, 3)):
        with pytest.raises(InvalidInput):
            probe_module(*wrong, registry=registry)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["sell", "s" * 200], ids=["of another clock", "too long"])
def test_where_one_function_cannot_be_timed_none_is_replaced(
    name: str, module: types.ModuleType, registry: ProbeRegistry
) -> None:
    setattr(module, name, module.read)
    registry.probe("shop.sell")
    plain = dict(vars(module))
    with pytest.raises(InvalidInput):
        probe_module(module, clock="cpu", registry=registry)
    assert vars(module) == plain


def test_a_class_that_refuses_to_be_changed_is_told_and_nothing_is_replaced(
    module: types.ModuleType, registry: ProbeRegistry
) -> None:
    class Sealed(type):
        def __setattr__(cls, name: str, value: object) -> None:
            raise AttributeError("sealed")

    module.Safe = Sealed("Safe", (), {"__module__": "shop", "lock": module.read})
    plain = dict(vars(module))
    with pytest.raises(InvalidInput):
        probe_module(module, classes=True, registry=registry)
    assert vars(module) == plain
