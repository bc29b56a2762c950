"""The data sets by name, and how to load one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from typing import Any

from crowdgraph import simulate
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.datasets.anaesthetists import dawid_skene_1979
from crowdgraph.datasets.public import read_get_another_label, read_snow_2008, read_truth_inference
from crowdgraph.errors import ParameterError, check_choice
from crowdgraph.messages import Hint

__all__ = ["Dataset", "list", "load"]


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A crowd that can be loaded.

    Attributes
    ----------
    name
        What `load` calls it.
    title
        What it is.
    source
        Where it comes from and, if it has to be downloaded, where from.
    needs
        What has to be downloaded; empty for what comes with crowdgraph.
    """

    name: str
    title: str
    source: str
    needs: str = ""
    read: Callable[..., CrowdGraph]

    def __repr__(self) -> str:
        return f"{self.name}: {self.title}" + (f" (needs {self.needs})" if self.needs else "")


DATASETS = (
    Dataset(
        name="dawid_skene_1979",
        title="45 patients, graded by five clinicians, of whom the first saw each three times",
        source="A. P. Dawid and A. M. Skene (1979), Applied Statistics 28, 20-28, table 1",
        read=dawid_skene_1979,
    ),
    Dataset(
        name="simulated",
        title="100 volunteers, 500 items, 5,000 responses, two classes, some gold",
        source="crowdgraph.simulate.crowd(seed=0)",
        read=lambda: simulate.crowd(seed=0).graph,
    ),
    Dataset(
        name="simulated_galaxy_zoo",
        title="963 items, 1,705 volunteers in five groups, 26,558 responses of -1, 1 and 3",
        source="crowdgraph.simulate.galaxy_zoo_supernovae(seed=0), after the paper of crowdgraph's model",
        read=lambda: simulate.galaxy_zoo_supernovae(seed=0).graph,
    ),
    Dataset(
        name="snow_2008",
        title="entailment, temporal order and other tasks, ten workers for each item, with experts' labels",
        source="R. Snow, B. O'Connor, D. Jurafsky and A. Ng (2008), EMNLP; all_collected_data.tgz of its authors",
        needs="a file such as rte.standardized.tsv",
        read=read_snow_2008,
    ),
    Dataset(
        name="truth_inference",
        title="several crowds, such as D_Product and D_PosSent, with the truth",
        source="Y. Zheng, G. Li, Y. Li, C. Shan and R. Cheng (2017), VLDB; the data sets of their project",
        needs="a folder with answer.csv and truth.csv",
        read=read_truth_inference,
    ),
    Dataset(
        name="get_another_label",
        title="several crowds, such as AdultContent2, some with gold",
        source="P. Ipeirotis, F. Provost and J. Wang (2010), HCOMP; https://github.com/ipeirotis/Get-Another-Label",
        needs="a folder with labels.txt and perhaps gold.txt",
        read=read_get_another_label,
    ),
)


def list() -> tuple[Dataset, ...]:  # noqa: A001 - called as datasets.list()
    """Return the data sets that `load` knows.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> [dataset.name for dataset in cg.datasets.list() if not dataset.needs]
    ['dawid_skene_1979', 'simulated', 'simulated_galaxy_zoo']
    """
    return DATASETS


def load(name: str, path: str | PathLike[str] | None = None) -> CrowdGraph:
    """Return the graph of a data set.

    Nothing is downloaded: of public sets, `path` is what you have downloaded.

    Parameters
    ----------
    name
        The name, one of those of `list`.
    path
        The file or folder, for data sets that do not come with crowdgraph.

    Examples
    --------
    >>> import crowdgraph as cg
    >>> graph = cg.datasets.load("dawid_skene_1979")
    >>> len(graph.volunteers), len(graph.items), len(graph.responses)
    (5, 45, 315)
    """
    by_name: dict[str, Dataset] = {dataset.name: dataset for dataset in DATASETS}
    check_choice("name", name, tuple(by_name))
    dataset = by_name[name]
    if dataset.needs and path is None:
        raise ParameterError(
            f"The data set {name!r} needs {dataset.needs}, which does not come with crowdgraph.",
            hint=Hint(f"Download it ({dataset.source}) and say where it is: load({name!r}, path)."),
        )
    if not dataset.needs and path is not None:
        raise ParameterError(f"The data set {name!r} comes with crowdgraph; leave out path={path!r}.")
    arguments: tuple[Any, ...] = () if path is None else (path,)
    return dataset.read(*arguments)
