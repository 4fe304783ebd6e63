"""Lines of tables and keys in TOML."""

from benchrigor.storage.toml_tables import lines_of


def test_keys_are_found_by_their_lines_whatever_stands_between():
    text = '''\
# a = 1
"quoted key".b = """
[not.a.table]
c = 2
""" # [nor.this]
d = [ "]", # e = 5
  { f = 1 },
]
[ g . 'h' ]
i = {j = 1, k = [
2]}
l = \'\'\'
m = 3\'\'\'
[[n]]
o = "[" # [
[[n]]
o = 'x'
[n.p]
q = 1\r
'''
    assert lines_of(text) == {
        ("quoted key",): 2,
        ("quoted key", "b"): 2,
        ("d",): 6,
        ("g", "h"): 9,
        ("g", "h", "i"): 10,
        ("g", "h", "i", "j"): 10,
        ("g", "h", "i", "k"): 10,
        ("g", "h", "l"): 12,
        ("n", "0"): 14,
        ("n", "0", "o"): 15,
        ("n", "1"): 16,
        ("n", "1", "o"): 17,
        ("n", "p"): 18,
        ("n", "p", "q"): 19,
    }
