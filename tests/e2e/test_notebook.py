"""Results in a notebook: one output for each."""

import asyncio

import pytest

CELLS = (
    "%load_ext benchrigor.notebook\nimport benchrigor as br\nfrom benchrigor import workbench",
    "%%bench budget_s=0.3\nsorted(range(100))",
    "br.measure_pair(lambda: sorted(range(100)), lambda: sorted(range(200)), budget_s=0.3)",
    "br.measure_many({'a': dict, 'b': list}, budget_s=0.2)",
    """search = workbench.PeakSearch(threshold_s=0.1, seed_load=50.0)
while (trial := search.ask()) is not None:
    answer_s = 0.01 / (1 - trial.load / 400) if trial.load < 390 else 1.0
    n = int(trial.load * trial.duration_s)
    given = dict(scheduled=n, sent=n, completed=n)
    search.tell(trial, br.LoadResult(mean_response_s=answer_s, p95_response_s=None, **given))
search.result()""",
    """levels = {'n': [1, 2, 4, 8], 'm': [1, 2, 3]}
factors = [workbench.Factor(name, levels=each) for name, each in levels.items()]
search = workbench.SurfaceMap(factors, samples=9, seed=1)
while (sample := search.ask()) is not None:
    value = 100.0 * sample.point['n'] + 10.0 * sample.point['m']
    search.tell(sample, (value, 0.98 * value, 1.02 * value))
search.result()""",
)


def test_each_result_is_one_output_of_a_notebook() -> None:
    """Only where a kernel can be started."""
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    written = nbformat.v4.new_notebook(cells=[*map(nbformat.v4.new_code_cell, CELLS)])
    asyncio.run(nbclient.NotebookClient(written, timeout=200).async_execute())
    outputs = [cell["outputs"] for cell in written["cells"]]
    assert outputs[0] == []
    for (only,) in outputs[1:]:
        assert only["output_type"] == "execute_result"
        assert "<svg" in only["data"]["text/html"] or "<table" in only["data"]["text/html"]
