"""The files for Slurm and Kubernetes: what they start is what torchrun and our command understand."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from crowdgraph.cli.distributed import app

CLUSTER = Path(__file__).parent.parent.parent / "docs" / "cluster"
SLURM, KUBERNETES = CLUSTER / "slurm.sbatch", CLUSTER / "kubernetes.yaml"
JOB = {
    "SLURM_JOB_ID": "123456",
    "SLURM_NNODES": "4",
    "SLURM_CPUS_PER_TASK": "16",
    "SLURM_JOB_NODELIST": "node[1-4]",
    "JOB_COMPLETION_INDEX": "2",
}


def run_in(folder, command):
    """Run a shell where `srun` and `torchrun` write down their words, and `scontrol` names machines."""
    for name, script in {
        "srun": 'printf "%s\\n" "$@" "$NUMBA_NUM_THREADS" > words',
        "torchrun": 'printf "%s\\n" "$@" > words',
        "scontrol": "printf 'node1\\nnode2\\n'",
    }.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    (folder / ".venv" / "bin").mkdir(parents=True)
    (folder / ".venv" / "bin" / "activate").touch()
    path = f"{folder}:{os.environ['PATH']}"
    subprocess.run(command, cwd=folder, env={**os.environ, **JOB, "PATH": path, "SLURM_SUBMIT_DIR": folder}, check=True)
    return (folder / "words").read_text().splitlines()


def slurm(folder):
    *words, n_threads = run_in(folder, ["bash", SLURM])
    # A step would otherwise have a single processor.
    assert words[:3] == ["--cpus-per-task=16", "--kill-on-bad-exit=1", "torchrun"]
    assert n_threads == "4"
    return words[3:]


def kubernetes(folder):
    lines = KUBERNETES.read_text().splitlines()
    begin = next(number for number, line in enumerate(lines) if line.strip() == "- >-")
    end = next(number for number, line in enumerate(lines) if line.strip() == "env:")
    return run_in(folder, ["/bin/sh", "-c", " ".join(line.strip() for line in lines[begin + 1 : end])])


@pytest.mark.parametrize(
    ("words_of", "expected"),
    [
        (slurm, {"rdzv_backend": "c10d", "rdzv_endpoint": "node1:23456", "rdzv_id": "123456"}),
        (kubernetes, {"node_rank": 2, "master_addr": "crowdgraph-fit-0.crowdgraph-fit", "master_port": 29500}),
    ],
)
def test_torchrun_and_the_command_understand_their_words(words_of, expected, tmp_path):
    from torch.distributed.run import config_from_args, parse_args

    options = parse_args(words_of(tmp_path))
    assert {name: getattr(options, name) for name in expected} == expected
    config, _, words = config_from_args(options)
    assert (config.min_nodes, config.max_nodes, config.nproc_per_node) == (4, 4, 4)
    assert words[:4] == ["-u", "-m", "crowdgraph.distributed", "fit"]
    # An unknown option fails before the help is shown.
    shown = CliRunner().invoke(app, [*words[3:], "--help"])
    assert shown.exit_code == 0, shown.output
    assert "--resume" in words


def test_kubernetes_names_agree():
    """The service finds the pods of the job, and the first of them by the name at which all meet."""
    yaml = pytest.importorskip("yaml")
    service, job = yaml.safe_load_all(KUBERNETES.read_text())
    spec, pod = job["spec"], job["spec"]["template"]["spec"]
    assert spec["completionMode"] == "Indexed"
    assert spec["completions"] == spec["parallelism"] == 4
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["selector"] == {"job-name": job["metadata"]["name"]}
    assert pod["subdomain"] == service["metadata"]["name"]
    (container,) = pod["containers"]
    address = f"--master-addr={job['metadata']['name']}-0.{pod['subdomain']}"
    assert address in shlex.split(container["args"][0])
    mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert [volume["name"] for volume in pod["volumes"]] == list(mounted)
    assert set(re.findall(r"=?(/\w+)/\w", container["args"][0])) == set(mounted.values())


def test_a_job_whose_time_is_nearly_up_is_queued_again():
    text = SLURM.read_text()
    assert "#SBATCH --signal=B:USR1@" in text
    assert re.search(r"trap 'scontrol requeue .*' USR1", text)
    assert text.rstrip().endswith('--resume &\nwait "$!"')
