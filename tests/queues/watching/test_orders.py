"""What a watching process is told arrives as it was sent."""

from __future__ import annotations

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.queues import End, Page, Stage
from benchrigor.queues.watching.orders import Order
from benchrigor.queues.watching.sampling import Watching


def order_of(*stages: Stage, watching: Watching | None = None) -> Order:
    return Order.of(stages, watching or Watching(), state="state.rates", record=None, launcher=7)


def test_an_order_travels_as_one_line(page: Page) -> None:
    watching = Watching(period_s=None, method="quantile", guards=False, target=0.1)
    stage = Stage("hash", reads=[End(page, "in.head")], writes=[End(page, "out.tail")], servers=2)
    order = order_of(stage, watching=watching)
    line = order.to_json()
    assert "\n" not in line
    assert Order.from_json(line) == order
    assert Order.from_json(line.encode()).watching == watching


def test_the_stages_are_the_same_with_pages_opened_once(page: Page) -> None:
    ends = [End(page, name, servers=2, item_bytes=8) for name in ("a.head", "b.head")]
    page.claim("b.head").count()
    (stage,) = Order.from_json(order_of(Stage("hash", reads=ends)).to_json()).open_stages()
    assert [(end.name, end.servers, end.item_bytes) for end in stage.reads] == [
        ("a.head", 2, 8),
        ("b.head", 2, 8),
    ]
    assert stage.reads[0].page is stage.reads[1].page
    assert not stage.reads[0].page.writable
    assert [each.items for each in stage.reads[1].read()] == [1]


def test_a_page_that_is_gone_is_named() -> None:
    with Page.create() as page:
        order = order_of(Stage("hash", reads=[End(page, "a.head")]))
    with pytest.raises(InvalidInput, match=page.path.name):
        order.open_stages()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"stages": 3}', '{"stages": []}'])
def test_what_is_no_order_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="order"):
        Order.from_json(text)
