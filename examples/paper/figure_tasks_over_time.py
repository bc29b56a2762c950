"""The figures of common task communities after 50,000, 200,000 and 493,048 observations."""

from collections import Counter

from entry import write_entry

import crowdgraph as cg

COUNTS, PAPER = [50_000, 200_000, 493_048], ["0.67", "0.69", "0.75"]
crowd = cg.simulate.galaxy_zoo_supernovae_full()
no, yes = crowd.graph.classes
track = cg.dynamics.over_time(
    crowd.graph,
    counts=COUNTS,
    network=cg.networks.task_cooccurrence,
    model=cg.DynIBCC(confusion_prior=(4, 1), votes={-1: no, 1: yes, 3: yes}),
    detector=cg.BayesianNMF(restarts=2),
    restarts=1,
    compare_starts=False,
    seed=0,
    progress=True,
)
rows = []
for index, (count, published) in enumerate(zip(COUNTS, PAPER, strict=True)):
    rows.append((f"modularity after {count:,}", published, f"{track.modularity[index]:.3f}"))
for index, count in enumerate(COUNTS):
    paper = "32" if index == 2 else ""
    rows.append(
        (f"communities, volunteers after {count:,}", paper, f"{track.n_communities[index]}, {len(track[index].ids):,}")
    )
events = Counter(event.event for event in track.events)
rows.append(("what happened", "a persistent core", ", ".join(f"{name} {n}" for name, n in events.items())))
write_entry(
    "figure_tasks_over_time",
    "Figures: common task communities as observations come in",
    paper="A persistent core whose means hardly move, and small scattered communities that come later.",
    rows=rows,
    pictures={
        "Means of the communities; rings came later": cg.plot.community_ternary_over_time(track, zoom=True)[0],
        "Modularity and number of communities": cg.plot.modularity(track),
    },
    remark="The 32 communities exist from the start, so all of them are found early on and modularity does not rise "
    "with time as it did in the real crowd; scattered small communities of newcomers do not appear.",
)
