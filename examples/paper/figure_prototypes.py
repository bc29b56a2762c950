"""The figure of prototypes: communities of volunteers who behave alike."""

from entry import AUTHORS_PRIOR, VOTES, listed, write_entry
from sklearn.metrics import adjusted_rand_score

import crowdgraph as cg

LEARNED_PRIOR = {"votes": VOTES, "learn_prior": True}
# Two more priors that were tried on the first crowd: the default, and the pair (4, 1).
OTHER_PRIORS = {"the default prior": {"votes": VOTES}, "the prior (4, 1)": {"votes": VOTES, "confusion_prior": (4, 1)}}
# Further crowds, in which communities of all volunteers are counted.
FURTHER_SEEDS = range(1, 5)


def detect(crowd, prior, *, min_responses):
    """Detect communities of volunteers who behave alike; return them with two indices.

    The indices are adjusted Rand indices with the kinds of which the crowd was made: of all volunteers in the network,
    and of those among them with ten answers or more.
    """
    graph, truth = crowd
    fit = cg.IBCC(**prior).fit(graph)
    network = cg.networks.pi_similarity(graph, fit=fit, min_responses=min_responses)
    communities = cg.BayesianNMF().detect(network, seed=0, progress=True)
    codes = graph.volunteers.codes(communities.ids)
    is_busy = graph.volunteers.n_responses[codes] >= 10
    kind, found = truth.group[codes], communities.assignment
    return communities, adjusted_rand_score(kind, found), adjusted_rand_score(kind[is_busy], found[is_busy])


def main():
    """Print what is found, and write it with the prototypes for the page."""
    crowd = cg.simulate.galaxy_zoo_supernovae()
    busy, busy_ari, _ = detect(crowd, AUTHORS_PRIOR, min_responses=10)
    everyone, ari, ari_of_busy = detect(crowd, AUTHORS_PRIOR, min_responses=1)
    learned, learned_ari, learned_of_busy = detect(crowd, LEARNED_PRIOR, min_responses=1)
    others = {name: detect(crowd, prior, min_responses=1)[0] for name, prior in OTHER_PRIORS.items()}
    further = [cg.simulate.galaxy_zoo_supernovae(seed=seed) for seed in FURTHER_SEEDS]
    numbers = {
        name: [len(detect(crowd, prior, min_responses=1)[0]) for crowd in further]
        for name, prior in {"the authors' prior": AUTHORS_PRIOR, "prior learned from the crowd": LEARNED_PRIOR}.items()
    }
    n_volunteers = f"{len(everyone.ids):,}"
    write_entry(
        "figure_prototypes",
        "Figure: prototypes of the communities of behaviour",
        paper="Five communities, of several hundred members each: reasonable, extremists, those who say -1 to nearly "
        "everything, those who nearly never do, and non-committal ones.",
        rows=[
            (f"communities of all {n_volunteers} volunteers, the authors' prior", "5", f"{len(everyone)}"),
            ("their sizes", "several hundred each", listed(everyone.sizes)),
            ("their adjusted Rand index with the planted kinds", "", f"{ari:.2f} ({ari_of_busy:.2f} of the busy)"),
            (f"communities of all {n_volunteers}, prior learned from the crowd", "5", f"{len(learned)}"),
            ("their sizes", "several hundred each", listed(learned.sizes)),
            ("their adjusted Rand index", "", f"{learned_ari:.2f} ({learned_of_busy:.2f} of the busy)"),
            *((f"communities of all {n_volunteers}, {name}", "5", f"{len(found)}") for name, found in others.items()),
            *(
                (f"communities of all in {len(further)} further crowds, {name}", "robustly 5", listed(values))
                for name, values in numbers.items()
            ),
            (f"communities of the {len(busy.ids):,} with ten answers or more (busy)", "", f"{len(busy)}"),
            ("their sizes", "", listed(busy.sizes)),
            ("their adjusted Rand index", "", f"{busy_ari:.2f}"),
        ],
        pictures={
            "The most central volunteer of each community, among those with ten answers or more": cg.plot.prototypes(
                busy
            )[0],
            "The same among all volunteers, with the prior learned from the crowd": cg.plot.prototypes(learned)[0],
        },
        remark="The crowd was made of five kinds. Among those with ten answers or more all five are found. The paper "
        "does not leave anybody out: then the kinds blur, since most volunteers gave so few answers that the prior, "
        "not their behaviour, says where they belong. With the authors' prior, those with fewest answers become a "
        "community of their own. Four priors were tried on the first crowd, and the one that is learned from the "
        "crowd is shown because it gave five, of several hundred each; the further crowds were looked at afterwards. "
        "So the number depends on the prior, which the paper does not say of its five.",
    )


if __name__ == "__main__":
    main()
