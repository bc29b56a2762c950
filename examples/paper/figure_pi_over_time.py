"""The figure of communities of behaviour after 3,000, 12,000 and 26,558 observations."""

from functools import partial

from entry import AUTHORS, leave

import crowdgraph as cg

COUNTS = [3_000, 12_000, 26_558]
crowd = cg.simulate.galaxy_zoo_supernovae(arriving=True)
alike = partial(cg.networks.pi_similarity, min_responses=10)
tracks = {
    name: cg.dynamics.over_time(
        crowd.graph,
        counts=COUNTS,
        network=alike,
        model=cg.DynIBCC(**AUTHORS),
        hindsight=hindsight,
        seed=0,
        progress=True,
    )
    for name, hindsight in {"as known then": False, "as believed now": True}.items()
}
rows = []
for name, track in tracks.items():
    for count, n_found, sizes, paper in zip(COUNTS, track.n_communities, track.sizes, ("3", "4", "5"), strict=True):
        shown = ", ".join(str(size) for size in sizes if size)
        rows.append((f"communities after {count:,}, {name}", paper, f"{n_found} (of {shown})"))
known = tracks["as known then"]
print(known.lifelines)
leave(
    "figure_pi_over_time",
    "Figure: communities of behaviour as observations come in",
    paper="Three communities at first; optimists appear by 12,000 observations and reasonable volunteers last, while "
    "earlier communities persist with similar means.",
    rows=rows,
    pictures={
        "As could be known then": cg.plot.community_means_over_time(known)[0],
        "As we now believe about then": cg.plot.community_means_over_time(tracks["as believed now"])[0],
        "Who went where (as could be known then)": cg.plot.flow(known),
    },
    remark="In this simulated crowd the optimists arrive after about 3,000 responses and the reasonable volunteers "
    "after about 12,000, as the paper tells it. Volunteers with ten answers or more take part, of whom few are reasonable or "
    "extremists; what cannot be told apart from so few answers is told as one community.",
)
