"""What all results share: checks of ids, and tables."""

import numpy as np
import pytest

from crowdgraph.core.result import CodedColumn, Tabular, check_ids
from crowdgraph.errors import AlignmentError, ParameterError


def test_missing_ids_are_counted_and_named(graph):
    table = graph.volunteers.table
    check_ids(["anna", "bert"], table, lacking="There lack {}", hint="Stop.")
    with pytest.raises(ParameterError, match=r"^There lack 2 \(1, 2\)\. Stop\.$"):
        check_ids(np.array([1, 2]), table, lacking="There lack {}", hint="Stop.", error=ParameterError)
    with pytest.raises(AlignmentError, match=r"^Of {x} there lack 1 \(3\)\. Stop\.$"):
        check_ids([3], table, lacking="Of {x} there lack {}", hint="Stop.")


@pytest.mark.parametrize(("kind", "columns"), [("pandas", "columns"), ("polars", "columns"), ("arrow", "column_names")])
def test_what_says_its_columns_becomes_a_table(kind, columns):
    class Pairs(Tabular):
        def _columns(self):
            return {
                "volunteer": CodedColumn(np.array([1, 0]), np.array(["anna", "bert"], dtype=object)),
                "n": np.arange(2),
            }

    assert list(getattr(Pairs().to_frame(kind=kind), columns)) == ["volunteer", "n"]
    assert Pairs().to_frame(kind="text").splitlines()[1] == "bert       0"
