"""CSV files."""

import gzip
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import text

import crowdgraph as cg
from crowdgraph.errors import InputError, TimeError

HEADER = "volunteer,item,label,time\n"


def test_a_csv_file_is_read_with_its_gold(write):
    path = write(HEADER + "007,x,10,2026-03-01T10:00:00\n7,x,9,2026-03-01T09:00:00\n")
    graph = cg.read_csv(path, gold=write("item,label\nx,9\n", "gold.csv"))
    assert list(graph.volunteers) == ["7", "007"]
    assert graph.labels == ("9", "10")
    assert dict(graph.gold) == {"x": "9"}
    assert graph.responses.clock == cg.Clock("datetime")


def test_compressed_files_and_other_delimiters_are_read(write):
    content = HEADER + "a,x,yes,1\nb,x,no,2\n"
    plain = cg.read_csv(write(content))
    assert cg.read_csv(write(gzip.compress(content.encode()), "responses.csv.gz")).equals(plain)
    assert cg.read_csv(write(content.replace(",", ";")), delimiter=";").equals(plain)
    assert cg.read_csv(write("\ufeff" + content.replace("\n", "\r\n"))).equals(plain)


def test_other_encodings_are_read(write):
    path = write("volunteer,item,label\nZoë,x,oui\n".encode("latin-1"))
    assert list(cg.read_csv(path, encoding="latin-1").volunteers) == ["Zoë"]


def test_quoted_fields_and_odd_names_are_read(write):
    graph = cg.read_csv(write('volunteer,item,label\n"a, b","line\nbreak",NA\nnull,"say ""x""",yes\n'))
    assert list(graph.volunteers) == ["a, b", "null"]
    assert list(graph.items) == ["line\nbreak", 'say "x"']
    assert graph.labels == ("NA", "yes")


# Behind an apostrophe a formula is text that we wrote.
foreign = text.filter(lambda value: value and not re.match("'+[=+@\uff1d\uff0b\uff0d\uff20-]", value))


@given(rows=st.lists(st.tuples(foreign, foreign, foreign), min_size=1))
def test_any_text_survives(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("csv") / "responses.csv"
    quoted = ["volunteer,item,label", *(",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows)]
    path.write_text("\n".join(quoted) + "\n", encoding="utf-8", newline="")
    graph = cg.read_csv(path)
    assert [(r.volunteer, r.item, r.label) for r in graph.responses] == rows


def test_a_late_bad_time_is_named(write):
    """Files are read in blocks of a megabyte; the times in the first of them look like numbers."""
    rows = "".join(f"a,{row:01000},yes,{row}\n" for row in range(2_500))
    with pytest.raises(TimeError, match="'soon' in row 2500"):
        cg.read_csv(write(HEADER + rows + "a,last,yes,soon\n"))


def test_the_line_of_a_short_row_counts_empty_lines(write):
    path = write("volunteer,item,label\n\nanna,x,yes\n\n\nbert,x\n")
    with pytest.raises(InputError, match="Expected 3 columns, got 2 in line 6; correct that line"):
        cg.read_csv(path)


def test_rows_that_python_cannot_split_are_refused_all_the_same(write):
    """Python takes no fields beyond a limit, so that the line of a short row cannot be said."""
    path = write(f'volunteer,item,label\n"{"x" * 140_000}",x,yes\nbert,x\n')
    with pytest.raises(InputError, match=r"cannot be read as a CSV file in utf-8.*Expected 3 columns, got 2"):
        cg.read_csv(path)
