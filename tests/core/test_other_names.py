"""Names of other tools get an error that says what to call; everything else about missing names is as usual."""

import copy
import importlib
import pickle
import re

import pytest

import crowdgraph as cg
from crowdgraph.core._other_names import OTHER_NAMES, advice

CLASSES = {"CrowdGraph": cg.CrowdGraph, "ModelFit": cg.ModelFit, "Model": cg.models.Model}
CLASSES["Detector"] = cg.communities.Detector
NAMES = [(owner, name) for owner, names in OTHER_NAMES.items() for name in names]


def owners(owner, graph, fit):
    """The objects whose missing names are looked up."""
    if owner.startswith("crowdgraph"):
        return [importlib.import_module(owner)]
    instances = {"CrowdGraph": graph, "ModelFit": fit, "Model": cg.IBCC(), "Detector": cg.Leiden()}
    return [instances[owner], *([cg.CrowdGraph] if owner == "CrowdGraph" else [])]


def test_names_of_other_tools_get_advice(graph, fit):
    for owner, name in NAMES:
        for thing in owners(owner, graph, fit):
            assert not hasattr(thing, name)
            assert getattr(thing, name, 7) == 7
            with pytest.raises(AttributeError, match=re.escape(advice(owner, name))):
                getattr(thing, name)
            assert name not in dir(thing)


def test_advice_names_what_exists():
    for owner, name in NAMES:
        words = re.findall(r"\bcg((?:\.[A-Za-z_]+)+)", advice(owner, name))
        words += [f".CrowdGraph.{word}" for word in re.findall(r"\bgraph\.(\w+)", advice(owner, name))]
        words += [f".models.Model.{word}" for word in re.findall(r"\bmodel\.(\w+)", advice(owner, name))]
        words += [f".communities.Detector.{word}" for word in re.findall(r"\bdetector\.(\w+)", advice(owner, name))]
        fields = re.findall(r"\bfit\.(\w+)", advice(owner, name))
        assert words + fields
        for word in words:
            thing = cg
            for part in word[1:].split("."):
                thing = getattr(thing, part)
        assert all(word in cg.ModelFit.__annotations__ or hasattr(cg.ModelFit, word) for word in fields)


def test_other_missing_names_get_the_usual_errors(graph, fit):
    for thing in (graph, fit, cg.IBCC(), cg.Leiden()):
        with pytest.raises(AttributeError, match=f"'{type(thing).__name__}' object has no attribute 'nonsense'"):
            _ = thing.nonsense
    with pytest.raises(AttributeError, match="type object 'CrowdGraph' has no attribute 'nonsense'"):
        _ = cg.CrowdGraph.nonsense
    for module in (cg, cg.communities, cg.networks, cg.plot):
        with pytest.raises(AttributeError, match=f"module '{module.__name__}' has no attribute 'nonsense'"):
            _ = module.nonsense


def test_an_error_within_a_property_is_not_hidden():
    class Broken(cg.communities.Detector):
        name = "broken"

        @property
        def size(self):
            return self.name.length

        def _detect(self, network, *, seed, progress):
            raise NotImplementedError

    with pytest.raises(AttributeError, match="'str' object has no attribute 'length'"):
        _ = Broken().size


def test_copies_and_pickles(graph, fit):
    for thing in (graph, fit, cg.IBCC(), cg.Leiden()):
        for again in (copy.copy(thing), copy.deepcopy(thing), pickle.loads(pickle.dumps(thing))):  # noqa: S301 - what was just pickled
            assert type(again) is type(thing)
            assert repr(again) == repr(thing)
