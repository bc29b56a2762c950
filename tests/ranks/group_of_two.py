"""What two real processes do together for the tests: several fits, errors that all must see, and the loss of one."""

import os
import pickle
import signal
import sys
from pathlib import Path

import numpy as np
import torch

import crowdgraph as cg
from crowdgraph.distributed import _checkpoints, _ranks
from crowdgraph.errors import CrowdGraphError
from crowdgraph.kernels.ranks import SharedSweep

# Models by the crowd that they are fitted to.
FITS = {
    "two classes": [cg.IBCC(), cg.DawidSkene(), cg.IBCC(confusion_prior="gold"), cg.DynIBCC()],
    "other labels": [cg.IBCC(votes={"likely": "yes", "perhaps": None, "no": "no"})],
    "soft gold": [cg.IBCC()],
}
DETECTOR = cg.BayesianNMF(restarts=2, strength=100)
LOST_AFTER = 8


def error_of(act):
    try:
        act()
    except CrowdGraphError as error:
        return type(error).__name__, error.message.wording("cli")
    return None


def main(folder):
    answers = {}
    with _ranks.joined(timeout=240) as ranks:
        own = np.random.default_rng(ranks.rank).random(1000)
        answers["sums"] = ranks.gather(ranks.total_array(own).tobytes()), ranks.largest(float(ranks.rank))
        answers["total"] = ranks.total(torch.tensor([ranks.rank + 1])).item()
        for crowd, models in FITS.items():
            for number, model in enumerate(models):
                out = folder / f"{crowd} {number}"
                fit = cg.distributed.fit(model, folder / f"{crowd}.store", out=out)
                answers[crowd, number] = len(fit.items)
        answers["streamed"] = cg.distributed.fit(cg.IBCC(), folder / "two classes.store", memory="8GB").item_probs
        store = folder / ("two classes.store", "soft gold.store")[ranks.rank]
        answers["other stores"] = error_of(lambda: cg.distributed.fit(cg.IBCC(), store))
        store = folder / ("two classes.store", "nowhere.store")[ranks.rank]
        answers["no store"] = error_of(lambda: cg.distributed.fit(cg.IBCC(), store))
        version, _checkpoints.__version__ = _checkpoints.__version__, f"1.{ranks.rank}"
        answers["versions"] = error_of(lambda: cg.distributed.fit(cg.IBCC(), folder / "two classes.store"))
        _checkpoints.__version__ = version
        answers["items"] = error_of(lambda: cg.distributed.fit(cg.IBCC(), folder / "one item.store"))
        network = pickle.loads((folder / "network").read_bytes()) if ranks.rank == 0 else None  # noqa: S301 - our own process wrote it
        answers["communities"] = cg.distributed.detect(DETECTOR, network, seed=1).participation
        answers["no network"] = error_of(lambda: cg.distributed.detect(DETECTOR, None))
        (folder / f"answers {ranks.rank}").write_bytes(pickle.dumps(answers))
        n_sweeps, sweep = 0, SharedSweep.__call__

        def mortal_sweep(*args):
            nonlocal n_sweeps
            n_sweeps += 1
            if ranks.rank == 1 and n_sweeps == LOST_AFTER:
                os.kill(os.getpid(), signal.SIGKILL)
            return sweep(*args)

        SharedSweep.__call__ = mortal_sweep
        options = {"checkpoint": folder / "fit.checkpoint", "every": 1}
        lost = error_of(lambda: cg.distributed.fit(cg.IBCC(), folder / "two classes.store", **options))
        (folder / "lost").write_bytes(pickle.dumps((lost, ranks.reports(), ranks.reports())))
        sys.exit(1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
