from typing import Any

import pytest
from simulated.estimates import estimated

from benchrigor.errors import InvalidInput
from benchrigor.instrument.data.batches import BatchAdvice, Kernel, KernelPartition, NodeLoad


def test_a_kernel_knows_the_time_of_all_its_instances() -> None:
    uncertain = estimated(2.0, 1.0, 4.0)
    assert Kernel(name="a", instances=3, dispatch_s=1.0, work_s=uncertain).total_s == 9.0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": ""}, "name is '', expected the name of a kernel"),
        ({"instances": 0}, "instances of 'a' is 0, expected a whole number of at least 1"),
        ({"dispatch_s": -1e-6}, "dispatch_s of 'a' is -1e-06, expected a number from 0"),
        ({"work_s": float("nan")}, "work_s of 'a' is nan"),
        (
            {
                "dispatch_s": estimated(1.0, 0.5, 2.0, confidence=0.9),
                "work_s": estimated(1.0, 0.5, 2.0),
            },
            "dispatch_s and work_s of 'a' have confidences 0.9 and 0.95",
        ),
    ],
)
def test_what_does_not_fit_a_kernel_is_named(given: dict[str, Any], said: str) -> None:
    known = {"name": "a", "instances": 1, "dispatch_s": 1.0, "work_s": 1.0}
    with pytest.raises(InvalidInput, match=said):
        Kernel(**{**known, **given})


def batch(**given: Any) -> str:
    known = {"name": "a", "share": 0.5, "share_low": 0.5, "share_high": 0.5}
    return str(BatchAdvice(**{**known, "batch": 1, "saving_s": 0.0, **given}))


def test_advice_to_batch_is_one_line() -> None:
    assert batch(batch=1_200, saving_s=0.25) == "a: 50% dispatch, batch 1,200 to save 250 ms"
    assert batch() == "a: 50% dispatch, leave"
    assert batch(batch=None, saving_s=None, reason="why") == "a: 50% dispatch, no batch (why)"


def node(name: str, *kernels: str, load_s: float) -> NodeLoad:
    return NodeLoad(name=name, speed=1.0, kernels=kernels, load_s=load_s, share=0.5, traffic=0.0)


def test_a_partition_shows_an_idle_node_and_a_graph_without_traffic() -> None:
    loads = (node("one", *"abcdef", load_s=3.0), node("other", load_s=0.0))
    found = KernelPartition(nodes=loads, even_s=1.5, traffic_cut=0.0, traffic_total=0.0)
    assert (found.imbalance, found.assignment["f"]) == (1.0, "one")
    head, _, one, other = str(found).splitlines()
    assert head == "one is busiest: 3 s, 100% above an even load; 0% of the traffic crosses nodes"
    assert one.endswith("a, b, c, d and 2 more")
    assert other.endswith("-")


def test_a_partition_with_long_names_keeps_to_the_width_of_a_terminal() -> None:
    long = [f"kernel of a long name {index}" for index in range(3)]
    loads = (node("n" * 90, *long, "k" * 90, load_s=3.0), node("other", "a", load_s=3.0))
    found = KernelPartition(nodes=loads, even_s=3.0, traffic_cut=0.0, traffic_total=0.0)
    lines = str(found).splitlines()
    assert max(map(len, lines)) <= 79
    assert ", ".join(long) in " ".join(str(found).split())
    assert lines[-1].startswith("other ")
