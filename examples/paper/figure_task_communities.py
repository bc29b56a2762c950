"""The figure of common task communities: a triangle of the mean confusion of each."""

import numpy as np
from entry import write_entry
from sklearn.metrics import adjusted_rand_score

import crowdgraph as cg

crowd = cg.simulate.galaxy_zoo_supernovae_full()
no, yes = crowd.graph.classes
fit = cg.IBCC(confusion_prior=(4, 1), votes={-1: no, 1: yes, 3: yes}).fit(crowd.graph)
network = cg.networks.task_cooccurrence(crowd.graph, min_responses=10)
groups = cg.BayesianNMF().detect(network, seed=0, progress=True)
planted = crowd.truth.community[crowd.graph.volunteers.codes(groups.ids)]
means = groups.mean_confusion(fit.confusion.latest())
spread = [np.abs(means[:, j] - means[:, j].mean(axis=0)).sum(axis=1).mean() / 2 for j in (0, 1)]
write_entry(
    "figure_task_communities",
    "Figure: common task communities",
    paper="Communities of volunteers who worked on the same objects; means differ more for supernovae, of which there "
    "are fewer.",
    rows=[
        ("volunteers with ten answers or more", "2131", f"{len(network):,}"),
        (
            "communities",
            "32",
            f"{len(groups)} (ARI with those planted {adjusted_rand_score(planted, groups.assignment):.3f})",
        ),
        ("modularity", "0.75", f"{groups.modularity:.3f}"),
        ("mean distance from the middle, not supernova", "less", f"{spread[0]:.3f}"),
        ("mean distance from the middle, supernova", "more", f"{spread[1]:.3f}"),
    ],
    pictures={"Mean confusion of each community": cg.plot.community_ternary(groups, fit, zoom=True)[0]},
    remark="Behaviour and tasks were drawn independently here, so means differ between communities by chance alone, "
    "and less for supernovae, of which volunteers see so few that the prior dominates; in the real crowd the tasks may "
    "be why they differ more. That 32 communities are found where 32 were planted shows that the method can find them, "
    "not that the real crowd has them.",
)
