"""A device that is not there, simulated on the CPU: what runs on it computes real numbers and breaks its rules loudly.

Tensors on the simulated device hold a tensor on the CPU and pretend to be elsewhere. Every call of PyTorch inside
``with simulated_device("mps"):`` is intercepted, checked by the rules of such devices, and then run on what the tensors
hold. The rules are those of PyTorch:

- an operation may not mix tensors of two devices, unless one has no dimensions, is an index, or is copied from or to;
- memory is not shared with NumPy: only `cpu`, `to`, `item`, `tolist` and conversion to numbers lead back;
- an operation needs a kernel for the device, as PyTorch's own table of operators lists them;
- on ``"mps"`` there are neither double precision nor CSR matrices.

What it cannot show: kernels that are listed and refuse some type or shape, rounding that differs from the CPU's,
memory, and speed.
"""

import re
from collections import Counter
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

COPIES_TO_CPU = {Tensor.cpu}
SYNCHRONISATIONS = {
    Tensor.item,
    Tensor.tolist,
    Tensor.__bool__,
    Tensor.__float__,
    Tensor.__int__,
    Tensor.__index__,
    Tensor.__repr__,
    Tensor.__format__,
    Tensor.__contains__,
}
SHARED_MEMORY = {
    Tensor.numpy,
    Tensor.__array__,
    Tensor.__dlpack__,
    Tensor.data_ptr,
    Tensor.storage,
    Tensor.untyped_storage,
}
# PyTorch copies between devices in these, the second where indices or what is assigned come from the CPU.
COPYING = {Tensor.copy_}
INDEXING = {Tensor.__getitem__, Tensor.__setitem__}
DOUBLE = (torch.float64, torch.complex128)
COMPOSITE = {"CompositeExplicitAutograd", "CompositeImplicitAutograd", "CompositeExplicitAutogradNonFunctional"}


class SimulatedTensor(Tensor):
    """A tensor that is on a simulated device, as far as anybody can see; `held` is where its numbers are."""

    @staticmethod
    def __new__(cls, held, simulation):
        return Tensor._make_wrapper_subclass(cls, held.shape, dtype=held.dtype, device=simulation.device)

    def __init__(self, held, simulation):
        self.__dict__.update(held=held, simulation=simulation)

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        (simulation, *_) = {id(t.simulation): t.simulation for t in _simulated((args, kwargs))}.values()
        return simulation.run(function, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(cls, operator, types, args=(), kwargs=None):
        raise AssertionError(f"{operator} ran on a simulated tensor without being intercepted.")


class Simulation:
    """The device, and what happened on it.

    Attributes
    ----------
    operations
        How often each operator ran on the device.
    n_synchronisations, n_copies
        How often the CPU waited for a number, and how often a tensor was copied from or to the CPU.
    """

    def __init__(self, kind):
        self.device = torch.device(kind)
        self.operations = Counter()
        self.n_synchronisations = self.n_copies = 0

    def __repr__(self):
        return (
            f"Simulation({self.device}: {self.operations.total():,} operations of {len(self.operations)} kinds, "
            f"{self.n_copies:,} copies, {self.n_synchronisations:,} synchronisations)"
        )

    def run(self, function, args, kwargs):
        """Run a function of PyTorch whose arguments may be simulated tensors, or whose result is to be one."""
        if function in INDEXING:
            args = (args[0], tree_map(self._as_number, args[1]), *args[2:])
        target = self._target(function, args, kwargs)
        simulated = _simulated((args, kwargs))
        if target is not None:
            return self._move(function, args, kwargs, target)
        if not simulated:
            return function(*args, **kwargs)
        if function == Tensor.device.__get__:
            return self.device
        if function in SHARED_MEMORY:
            raise TypeError(
                f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
                "memory first."
            )
        if function is torch._has_compatible_shallow_copy_type:
            return all(isinstance(value, SimulatedTensor) for value in args)
        self._check_devices(function, args, kwargs)
        if function in SYNCHRONISATIONS:
            self.n_synchronisations += 1
            return function(*_held(args), **_held(kwargs))
        with _Operators(self):
            result = function(*_held(args), **_held(kwargs))
        known = {id(tensor.held): tensor for tensor in simulated}
        return tree_map(lambda value: self._wrapped(value, known), result)

    def _as_number(self, index):
        """Return an index without dimensions as a number, as PyTorch reads it."""
        if not isinstance(index, SimulatedTensor) or index.ndim or index.dtype in (torch.bool, torch.uint8):
            return index
        self.n_synchronisations += 1
        return index.held.item()

    def _target(self, function, args, kwargs):
        """Return the device that a call names, or that of the tensor after which it makes another."""
        if function in COPIES_TO_CPU:
            return torch.device("cpu")
        named = kwargs.get("device")
        if function is Tensor.to:
            others = [value for value in args[1:] if isinstance(value, str | torch.device | Tensor)]
            named = (others[0].device if isinstance(others[0], Tensor) else others[0]) if others else named
        if named is None or (not _simulated((args, kwargs)) and torch.device(named).type != self.device.type):
            return None
        return torch.device(named)

    def _move(self, function, args, kwargs, target):
        """Make a tensor on the device that a call names, or copy one there."""
        here = target.type == self.device.type
        source = args[0] if function in (Tensor.to, Tensor.cpu) else None
        crosses = source is not None and isinstance(source, SimulatedTensor) != here
        self.n_copies += crosses
        on_cpu = ["cpu" if _is_device(value) else value for value in _held(args)]
        options = {name: "cpu" if name == "device" else value for name, value in _held(kwargs).items()}
        result = function(*on_cpu, **options)
        if crosses and result is _held(source):
            result = result.clone()
        known = {id(tensor.held): tensor for tensor in _simulated((args, kwargs))}
        return self._wrapped(result, known) if here else result

    def _check_devices(self, function, args, kwargs):
        """Raise where an operation mixes devices."""
        if function in COPYING:
            self.n_copies += len({isinstance(value, SimulatedTensor) for value in args[:2]}) - 1
            return
        if function in INDEXING:
            foreign = [
                value for value in tree_flatten(args[1])[0] if _is_foreign(value) or isinstance(value, np.ndarray)
            ]
            self.n_copies += len(foreign)
            args = (args[0], *args[2:])
        foreign = [value for value in tree_flatten((args, kwargs))[0] if _is_foreign(value)]
        if foreign:
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but got {self.device} and cpu in "
                f"{getattr(function, '__name__', function)}; shapes {[tuple(tensor.shape) for tensor in foreign]}."
            )

    def _wrapped(self, value, known):
        if not isinstance(value, Tensor) or isinstance(value, SimulatedTensor):
            return value
        if id(value) in known:
            return known[id(value)]
        self.check(value)
        return SimulatedTensor(value, self)

    def check(self, tensor):
        """Raise if the device cannot hold such a tensor."""
        if self.device.type != "mps":
            return
        if tensor.dtype in DOUBLE:
            raise TypeError(
                "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64. Please use "
                "float32 instead."
            )
        if tensor.layout is torch.sparse_csr:
            raise NotImplementedError("Could not run 'aten::empty.memory_format' from the 'SparseCsrMPS' backend.")


class _Everywhere(TorchFunctionMode):
    """Intercepts what PyTorch does with tensors on the CPU, too: some of it makes tensors on the device."""

    def __init__(self, simulation):
        super().__init__()
        self._simulation = simulation

    def __torch_function__(self, function, types, args=(), kwargs=None):
        return self._simulation.run(function, args, kwargs or {})


class _Operators(TorchDispatchMode):
    """Counts the operators that run on the device, and raises at those for which it has no kernel."""

    def __init__(self, simulation):
        super().__init__()
        self._simulation = simulation

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        result = operator(*args, **(kwargs or {}))
        tensors = [value for value in tree_flatten((args, kwargs, result))[0] if isinstance(value, Tensor)]
        kind = self._simulation.device.type
        layout = "SparseCsr" if any(tensor.layout is torch.sparse_csr for tensor in tensors) else ""
        name = operator.name().removeprefix("aten::")
        self._simulation.operations[name] += 1
        if not has_kernel(name, f"{layout}{kind.upper()}"):
            raise NotImplementedError(f"The operator 'aten::{name}' is not implemented for the device {kind}.")
        for value in tree_flatten(result)[0]:
            if isinstance(value, Tensor):
                self._simulation.check(value)
        return result


@contextmanager
def simulated_device(kind):
    """Let a device of a kind, ``"cuda"`` or ``"mps"``, exist inside the block, and return what happened on it.

    Examples
    --------
    >>> with simulated_device("mps") as device:
    ...     total = torch.ones(3, device="mps").sum()
    ...     print(total.device, total.item(), device)
    mps 3.0 Simulation(mps: 1 operations of 1 kinds, 0 copies, 1 synchronisations)
    """
    simulation = Simulation(kind)
    with _Everywhere(simulation):
        yield simulation


@cache
def operators():
    """Read PyTorch's table of operators: for each the keys of its kernels, and the operator that it delegates to."""
    import torchgen

    table = (Path(torchgen.__file__).parent / "packaged/ATen/native/native_functions.yaml").read_text()
    entries = {}
    for entry in re.split(r"^- func: ", table, flags=re.MULTILINE)[1:]:
        name = entry[: entry.index("(")]
        keys = re.findall(r"^    ([\w, ]+): \w+", entry, flags=re.MULTILINE) if "\n  dispatch:" in entry else []
        delegate = re.search(r"^  structured_delegate: (\S+)", entry, flags=re.MULTILINE)
        # Code for the CPU and CUDA is generated from such loops.
        generated = ["CPU, CUDA"] if "ufunc_inner_loop" in entry else []
        kernels = {key for line in keys + generated for key in line.split(", ")}
        entries[name] = (kernels, delegate[1] if delegate else None)
    return entries


def has_kernel(name, key):
    """Return whether PyTorch lists a kernel for an operator under a key such as ``"CUDA"`` or ``"SparseCsrCUDA"``."""
    keys, delegate = operators().get(name, (set(), None))
    if delegate is not None and key not in keys:
        return has_kernel(delegate, key)
    return not keys or bool(keys & {key, *COMPOSITE})


def _simulated(values):
    return [value for value in tree_flatten(values)[0] if isinstance(value, SimulatedTensor)]


def _held(values):
    return tree_map(lambda value: value.held if isinstance(value, SimulatedTensor) else value, values)


def _is_device(value):
    return isinstance(value, torch.device) or (isinstance(value, str) and value.split(":")[0] in ("cpu", "cuda", "mps"))


def _is_foreign(value):
    """Whether a value is a tensor on the CPU with dimensions, which no operation may mix with those of a device."""
    return isinstance(value, Tensor) and not isinstance(value, SimulatedTensor) and value.ndim > 0
