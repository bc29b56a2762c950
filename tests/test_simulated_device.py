"""The simulated device computes as the CPU does, and catches what would fail on a real device."""

import numpy as np
import pytest
import torch
from simulated_device import SimulatedTensor, has_kernel, simulated_device
from torch import Tensor

KINDS = ["cuda", "mps"]


def values(kind, *shape):
    return torch.arange(1.0, 1 + np.prod(shape)).reshape(shape).to(kind)


# Calls that work on every device, as functions of a device; most do several things at once.
SOUND = {
    "factory": lambda kind: torch.zeros(3, device=kind) + torch.ones(3, device=torch.device(kind)),
    "arithmetic": lambda kind: (values(kind, 3, 2) @ values(kind, 2, 3)).softmax(1).log() / 3,
    "number without dimensions": lambda kind: values(kind, 3) * torch.tensor(2.0),
    "slices": lambda kind: values(kind, 3, 2)[1:, 0],
    "index from the CPU": lambda kind: values(kind, 3, 2)[torch.tensor([2, 0])],
    "index from NumPy": lambda kind: values(kind, 3, 2)[np.array([2, 0])],
    "index on the device": lambda kind: values(kind, 3)[values(kind, 2).long()],
    "mask": lambda kind: values(kind, 3)[values(kind, 3) > 1],
    "special functions": lambda kind: torch.digamma(values(kind, 3)) + torch.lgamma(values(kind, 3)),
    "sum by index": lambda kind: values(kind, 3).new_zeros(2).index_add(0, values(kind, 3).long() % 2, values(kind, 3)),
    "like another": lambda kind: torch.zeros_like(values(kind, 3)) + values(kind, 3).new_ones(3),
    "to the device of another": lambda kind: torch.ones(3).to(values(kind, 3)) + values(kind, 3),
    "copies": lambda kind: values(kind, 3).clone().copy_(torch.full((3,), 7.0)),
    "several results": lambda kind: torch.stack(values(kind, 4).tensor_split(2)),
    "conditions": lambda kind: torch.where(values(kind, 3) > 1, values(kind, 3), 0.0),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SOUND)
def test_it_computes_what_the_cpu_computes(kind, name):
    expected = SOUND[name]("cpu")
    with simulated_device(kind):
        result = SOUND[name](kind)
        assert isinstance(result, SimulatedTensor)
        assert result.device.type == kind
        assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
        copied = result.cpu()
    assert type(copied) is Tensor
    assert torch.equal(copied, expected)


def in_place(kind):
    tensor = values(kind, 3)
    tensor[0] = torch.ones(2)[:1]
    return tensor


# What would fail on a real device, why, and on which of the two.
UNSOUND = {
    "numpy": (lambda kind: values(kind, 3).numpy(), TypeError, "device type tensor to numpy", KINDS),
    "asarray": (lambda kind: np.asarray(values(kind, 3)), TypeError, "device type tensor to numpy", KINDS),
    "numpy of a result": (lambda kind: values(kind, 3).sum(0).numpy(), TypeError, "to numpy", KINDS),
    "dlpack": (lambda kind: np.from_dlpack(values(kind, 3)), TypeError, "to numpy", KINDS),
    "data pointer": (lambda kind: values(kind, 3).data_ptr(), TypeError, "to numpy", KINDS),
    "mixed sum": (lambda kind: values(kind, 3) + torch.ones(3), RuntimeError, "same device", KINDS),
    "mixed sum, turned": (lambda kind: torch.ones(3) + values(kind, 3), RuntimeError, "same device", KINDS),
    "mixed product": (lambda kind: values(kind, 3, 2) @ torch.ones(2), RuntimeError, "same device", KINDS),
    "mixed list": (lambda kind: torch.cat([values(kind, 3), torch.ones(3)]), RuntimeError, "same device", KINDS),
    "index of the CPU": (lambda kind: torch.ones(3)[values(kind, 1).long()], RuntimeError, "same device", KINDS),
    "mixed assignment": (in_place, RuntimeError, "same device", KINDS),
    "double factory": (lambda kind: torch.ones(2, dtype=torch.float64, device=kind), TypeError, "float64", ["mps"]),
    "double copy": (lambda kind: torch.ones(2).double().to(kind), TypeError, "float64", ["mps"]),
    "double result": (lambda kind: values(kind, 3).double(), TypeError, "float64", ["mps"]),
    "double sum": (lambda kind: values(kind, 3).sum(dtype=torch.float64), TypeError, "float64", ["mps"]),
    "CSR": (lambda kind: values(kind, 3, 3).to_sparse_csr(), NotImplementedError, "_to_sparse_csr", ["mps"]),
    "CSR copy": (lambda kind: torch.eye(2).to_sparse_csr().to(kind), NotImplementedError, "SparseCsrMPS", ["mps"]),
    "no kernel": (lambda kind: torch.linalg.eigh(values(kind, 2, 2)), NotImplementedError, "eigh", ["mps"]),
}


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", UNSOUND)
def test_it_catches_what_fails_on_devices(kind, name):
    call, error, message, kinds = UNSOUND[name]
    call("cpu")
    with simulated_device(kind):
        if kind in kinds:
            with pytest.raises(error, match=message):
                call(kind)
        else:
            call(kind)


def test_views_share_memory_and_copies_do_not():
    with simulated_device("cuda"):
        tensor = torch.zeros(2, 2, device="cuda")
        tensor[0].add_(1)
        on_cpu = tensor.cpu()
        source = torch.zeros(2)
        moved = source.to("cuda")
        tensor.mul_(5)
        moved += 1
        assert tensor.tolist() == [[5, 5], [0, 0]]
        assert tensor.to("cuda") is tensor
    assert on_cpu.tolist() == [[1, 1], [0, 0]]
    assert source.tolist() == [0, 0]


def test_it_counts_what_happened():
    with simulated_device("cuda") as device:
        total = torch.ones(3).to("cuda").add(1).sum()
        assert (device.n_copies, device.n_synchronisations) == (1, 0)
        assert float(total) == 6
        assert total.item() == 6
        assert total.cpu() == 6
    assert device.operations == {"add.Tensor": 1, "sum": 1}
    assert repr(device) == "Simulation(cuda: 2 operations of 2 kinds, 2 copies, 2 synchronisations)"


def test_gradients_and_modules_stay_on_the_device():
    torch.manual_seed(0)
    module = torch.nn.Linear(2, 1)
    loss = module(torch.ones(3, 2)).square().mean()
    (expected,) = torch.autograd.grad(loss, module.weight)
    with simulated_device("mps"):
        module.to("mps")
        optimiser = torch.optim.SGD(module.parameters(), lr=0.1)
        module(torch.ones(3, 2, device="mps")).square().mean().backward()
        gradient = module.weight.grad
        assert gradient.device.type == "mps"
        before = module.weight.detach().cpu()
        optimiser.step()
        assert torch.equal(gradient.cpu(), expected)
        assert torch.allclose(module.weight.detach().cpu(), before - 0.1 * expected)


def test_the_device_is_gone_afterwards():
    with simulated_device("mps"):
        torch.ones(1, device="mps")
    with pytest.raises(NotImplementedError):
        torch.ones(1, device="mps")


@pytest.mark.parametrize(
    ("operator", "key", "expected"),
    [
        ("digamma", "MPS", True),
        ("add.Tensor", "CUDA", True),
        ("add_.Tensor", "MPS", True),
        ("reshape", "MPS", True),
        ("_linalg_eigh", "CUDA", True),
        ("_linalg_eigh", "MPS", False),
        ("addmm", "SparseCsrCUDA", True),
        ("digamma", "SparseCsrCUDA", False),
    ],
)
def test_kernels_are_those_of_pytorchs_table(operator, key, expected):
    assert has_kernel(operator, key) is expected
