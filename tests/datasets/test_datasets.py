"""Data sets to start with; the real ones, where they are, are those of the shared folder."""

import numpy as np
import pytest
from science.real import load

import crowdgraph as cg
from crowdgraph.errors import ColumnError, InputError, ParameterError, RepeatedAnswersWarning


def answers_of(graph):
    return [(one.volunteer, one.item, one.label) for one in graph.responses]


def test_every_data_set_is_described():
    names = [dataset.name for dataset in cg.datasets.list()]
    assert len(set(names)) == len(names) == 6
    assert all(dataset.title and dataset.source for dataset in cg.datasets.list())
    assert repr(cg.datasets.list()[3]).endswith("(needs a file such as rte.standardized.tsv)")


@pytest.mark.parametrize("dataset", [one for one in cg.datasets.list() if not one.needs], ids=lambda one: one.name)
def test_what_comes_with_crowdgraph(dataset):
    graph = cg.datasets.load(dataset.name)
    assert len(graph.responses) > 300
    assert graph.equals(cg.datasets.load(dataset.name))
    with pytest.raises(ParameterError, match="comes with crowdgraph; leave out path="):
        cg.datasets.load(dataset.name, "x")


def test_the_published_table_is_the_shared_one():
    shared = load("dawid_skene_1979")
    renamed = [(who.removeprefix("w000"), item, int(label)) for who, item, label in answers_of(shared)]
    assert sorted(renamed) == sorted(answers_of(cg.datasets.load("dawid_skene_1979")))


def maximum_likelihood(graph, n_sweeps=2_000):
    """Expectation maximisation with arrays and nothing of ours, from the shares of the grades."""
    grades = np.zeros((len(graph.items), len(graph.volunteers), 4))
    for who, item, label in answers_of(graph):
        grades[int(item) - 1, int(who) - 1, label - 1] += 1
    probs = grades.sum(axis=1) / grades.sum(axis=(1, 2))[:, None]
    for _ in range(n_sweeps):
        proportions = probs.mean(axis=0)
        errors = np.einsum("ij,ikl->kjl", probs, grades) + 1e-12
        errors /= errors.sum(axis=2, keepdims=True)
        joint = np.log(proportions) + np.einsum("ikl,kjl->ij", grades, np.log(errors))
        probs = np.exp(joint - joint.max(axis=1, keepdims=True))
        probs /= probs.sum(axis=1, keepdims=True)
    return proportions, errors, probs


def test_dawid_and_skenes_estimates():
    """The proportions of classes and the errors of the first clinician are those of the paper, to two digits.

    All estimates are those of expectation maximisation written anew, to six.
    """
    graph = cg.datasets.load("dawid_skene_1979")
    with pytest.warns(RepeatedAnswersWarning):
        fit = cg.DawidSkene(smoothing=1e-12, tol=1e-10).fit(graph)
    np.testing.assert_allclose(fit.class_probs, [0.40, 0.42, 0.11, 0.07], atol=0.005)
    first = [[0.89, 0.11, 0, 0], [0.07, 0.88, 0.05, 0], [0, 0.34, 0.66, 0], [0, 0, 0.56, 0.44]]
    np.testing.assert_allclose(fit.confusion.of("1").latest().mean, first, atol=0.0051)
    proportions, errors, probs = maximum_likelihood(graph)
    np.testing.assert_allclose(fit.class_probs, proportions, atol=1e-6)
    np.testing.assert_allclose(fit.confusion.latest().mean, errors, atol=1e-6)
    np.testing.assert_allclose(fit.item_probs, probs, atol=1e-6)


# The layouts of public sets, with rows of our own

SNOW = (
    "!amt_annotation_ids\t!amt_worker_ids\torig_id\tresponse\tgold\n"
    "A1\tW1\t25\t1\t1\n"
    "A2\tW2\t25\t0\t1\n"
    "A3\tW1\t30\t0\t0\n"
)
TRUTH_INFERENCE = {"answer.csv": "question,worker,answer\n7,a,1\n7,b,0\n9,a,0\n", "truth.csv": "question,truth\n7,1\n"}
GET_ANOTHER_LABEL = {"labels.txt": "w1\thttp://x\tG\nw2\thttp://x\tP\nw1\thttp://y\tG\n", "gold.txt": "http://x\tG\n"}


def folder_of(path, files):
    path.mkdir(exist_ok=True)
    for name, content in files.items():
        (path / name).write_text(content)
    return path


def test_public_layouts(tmp_path):
    snow = tmp_path / "rte.standardized.tsv"
    snow.write_text(SNOW)
    graph = cg.datasets.load("snow_2008", snow)
    assert answers_of(graph) == [("W1", "25", "1"), ("W2", "25", "0"), ("W1", "30", "0")]
    assert dict(graph.gold) == {"25": "1", "30": "0"}
    graph = cg.datasets.load("truth_inference", folder_of(tmp_path / "d_x", TRUTH_INFERENCE))
    assert answers_of(graph) == [("a", "7", "1"), ("b", "7", "0"), ("a", "9", "0")]
    assert dict(graph.gold) == {"7": "1"}
    graph = cg.datasets.load("get_another_label", folder_of(tmp_path / "adult", GET_ANOTHER_LABEL))
    assert answers_of(graph) == [("w1", "http://x", "G"), ("w2", "http://x", "P"), ("w1", "http://y", "G")]
    assert dict(graph.gold) == {"http://x": "G"}
    for name, folder, file in (("truth_inference", "d_x", "truth.csv"), ("get_another_label", "adult", "gold.txt")):
        (tmp_path / folder / file).unlink()
        assert not len(cg.datasets.load(name, tmp_path / folder).gold)


def test_other_files(tmp_path):
    with pytest.raises(ParameterError, match="Did you mean 'simulated'"):
        cg.datasets.load("simulate")
    with pytest.raises(ParameterError, match=r"'snow_2008' needs a file such as .* load\('snow_2008', path\)"):
        cg.datasets.load("snow_2008")
    with pytest.raises(InputError, match="does not exist or is not a file"):
        cg.datasets.load("snow_2008", tmp_path / "absent.tsv")
    for name in ("truth_inference", "get_another_label"):
        for path in (tmp_path / "absent", tmp_path, 5):
            with pytest.raises(InputError, match="is not a folder with a file"):
                cg.datasets.load(name, path)
    (tmp_path / "other.tsv").write_text("a\tb\n1\t2\n")
    with pytest.raises(ColumnError, match=r"it has no column '!amt_worker_ids', .*; it has 'a', 'b'"):
        cg.datasets.load("snow_2008", tmp_path / "other.tsv")
    wrong = folder_of(tmp_path / "wrong", {"labels.txt": "w1\tx\tG\nw2\tx\n", "answer.csv": "q,w,a\n1,2,3\n"})
    with pytest.raises(InputError, match="has 2 fields in line 2; expected 3"):
        cg.datasets.load("get_another_label", wrong)
    with pytest.raises(ColumnError, match="it has no column 'question', 'worker', 'answer'"):
        cg.datasets.load("truth_inference", wrong)
    with pytest.raises(InputError, match="is empty"):
        cg.datasets.load("get_another_label", folder_of(tmp_path / "none", {"labels.txt": ""}))
