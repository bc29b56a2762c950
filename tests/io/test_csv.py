"""CSV files."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import text

import crowdgraph as cg
from crowdgraph.errors import ColumnError, InputError, MissingValueError, ParameterError, TimeError

HEADER = "volunteer,item,label,time\n"


@pytest.fixture
def write(tmp_path):
    def write(content, name="responses.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_a_csv_file_with_gold(write):
    path = write(HEADER + "007,x,10,2026-03-01T10:00:00\n7,x,9,2026-03-01T09:00:00\n")
    graph = cg.read_csv(path, gold=write("item,label\nx,9\n", "gold.csv"))
    assert list(graph.volunteers) == ["7", "007"]
    assert graph.labels == ("9", "10")
    assert dict(graph.gold) == {"x": "9"}
    assert graph.responses.clock == cg.Clock("datetime")


def test_compressed_files_and_other_delimiters(write):
    content = HEADER + "a,x,yes,1\nb,x,no,2\n"
    plain = cg.read_csv(write(content))
    assert cg.read_csv(write(gzip.compress(content.encode()), "responses.csv.gz")).equals(plain)
    assert cg.read_csv(write(content.replace(",", ";")), delimiter=";").equals(plain)
    assert cg.read_csv(write("\ufeff" + content.replace("\n", "\r\n"))).equals(plain)


def test_other_encodings(write):
    path = write("volunteer,item,label\nZoë,x,oui\n".encode("latin-1"))
    assert list(cg.read_csv(path, encoding="latin-1").volunteers) == ["Zoë"]
    with pytest.raises(InputError, match="klingon"):
        cg.read_csv(path, encoding="klingon")


def test_quoted_fields_and_odd_names(write):
    graph = cg.read_csv(write('volunteer,item,label\n"a, b","line\nbreak",NA\nnull,"say ""x""",yes\n'))
    assert list(graph.volunteers) == ["a, b", "null"]
    assert list(graph.items) == ["line\nbreak", 'say "x"']
    assert graph.labels == ("NA", "yes")


def test_empty_fields_are_null(write):
    with pytest.raises(MissingValueError, match="label in rows 1"):
        cg.read_csv(write("volunteer,item,label\na,x,yes\nb,x,\n"))


@given(rows=st.lists(st.tuples(text.filter(bool), text.filter(bool), text.filter(bool)), min_size=1))
def test_text_survives(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("csv") / "responses.csv"
    quoted = ["volunteer,item,label", *(",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows)]
    path.write_text("\n".join(quoted) + "\n", encoding="utf-8", newline="")
    graph = cg.read_csv(path)
    assert [(r.volunteer, r.item, r.label) for r in graph.responses] == rows


def test_a_late_bad_time_is_named(write):
    rows = "".join(f"a,x{row},yes,{row}\n" for row in range(200_000))
    with pytest.raises(TimeError, match="'soon' in row 200000"):
        cg.read_csv(write(HEADER + rows + "a,last,yes,soon\n"))


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"", InputError, "is empty; give a CSV file"),
        ("volunteer,item,label\n", InputError, "no rows"),
        ("user,item,label\na,x,y\n", ColumnError, "Did you mean volunteer='user'"),
        ("volunteer,item,item\na,x,y\n", ColumnError, "same name: 'item'"),
        ("volunteer,item,label\na,x\n", InputError, "Expected 3 columns, got 2"),
        (b"volunteer,item,label\n\xff\xfe,x,y\n", InputError, "encoding='latin-1'"),
        ("volunteer;item;label\na;x;y\n", ColumnError, "use delimiter=';'"),
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", InputError, "."),
        (HEADER + "a,x,y,soon\n", TimeError, "'soon' in row 0"),
    ],
)
def test_bad_files(write, content, error, message):
    with pytest.raises(error, match=message):
        cg.read_csv(write(content))


def test_files_that_are_none(write, tmp_path):
    for path in (tmp_path, tmp_path / "nothing.csv", 5, "x" * 5000):
        with pytest.raises(InputError, match="not a file"):
            cg.read_csv(path)
    cut = gzip.compress((HEADER + "a,x,yes,1\n" * 1000).encode())[:-40]
    with pytest.raises(InputError, match="cut short"):
        cg.read_csv(write(cut, "responses.csv.gz"))
    for delimiter in ("", ";;", "é"):
        with pytest.raises(ParameterError, match="single ASCII character"):
            cg.read_csv(write(HEADER), delimiter=delimiter)
