import pytest

CSV = "who,t\na,1\nb,100\na,N/A\na,2\na,3\n"
LINES = "".join(
    f'{{"who": "{who}", "t": {t}}}\n'
    for who, t in [("a", 1), ("b", 9), ("a", "null"), ("a", 2), ("a", 3)]
)


def told(cli, tmp_path, text, *options) -> str:
    path = tmp_path / "f"
    path.write_text(text)
    return cli("analyze", str(path), "--column", "t", *options).output


@pytest.mark.parametrize("text", [CSV, LINES])
def test_rows_are_selected_and_missing_ones_left_out_when_asked(cli, tmp_path, text) -> None:
    output = told(cli, tmp_path, text, "--where", "who=a", "--missing", "skip")
    assert "3 readings" in output


@pytest.mark.parametrize(
    ("where", "said"),
    [("x=1", "choose one with --where"), ("who=z", "no row left"), ("who", "expected COLUMN=")],
)
def test_a_selection_that_fits_nothing_is_an_error(cli, tmp_path, where, said) -> None:
    assert said in " ".join(told(cli, tmp_path, CSV, "--where", where).split())
