"""Batched symmetric eigendecomposition on torch CUDA tensors, through the C API of crucible_eigh.

    L, Q = crucible_eigh.eigh(A)             # conventions of torch.linalg.eigh
    L = crucible_eigh.eigvalsh(A, UPLO="U")

Needs torch 2.4 or later. The library is the file that CRUCIBLE_EIGH_LIBRARY names; without that
variable it is the one next to this file, or what the system's loader finds.

Nothing synchronises, so no matrix raises: one with NaN or Inf is answered with NaN, and eigh_info
tells which that are (info 1) and where the iteration did not converge (info 2).

Accuracy: L is good to FP32 rounding up to n = 192. From n = 193 on the reduction keeps the matrix in
FP16, and L is off by up to about 2^-12 of the largest eigenvalue, more than torch.linalg.eigh.
Gradients as torch.linalg.eigh gives them: finite only where the eigenvalues differ, as accurate as L
and Q are against the gaps, and defined for functions that do not depend on the signs of Q.
"""
import collections
import ctypes
import os
import pathlib

import torch

if not hasattr(torch.library, "custom_op"):
    raise ImportError(f"import crucible_eigh: torch {torch.__version__} has no custom_op; install 2.4 or later")

_VALUES_ONLY, _UPPER = 1, 2
_NAME = "libcrucible_eigh.so"


def _load():
    named = os.environ.get("CRUCIBLE_EIGH_LIBRARY")  # then no other one will do
    tried = []
    for path in [named] if named else [str(pathlib.Path(__file__).parent / _NAME), _NAME]:
        try:
            lib = ctypes.CDLL(path)
        except OSError as error:
            tried.append(str(error))
            continue
        lib.crucible_eigh_workspace.argtypes = [ctypes.c_int64, ctypes.c_int64, ctypes.c_int,
                                                ctypes.POINTER(ctypes.c_size_t)]
        lib.crucible_eigh.argtypes = ([ctypes.c_int64] * 2 + [ctypes.c_void_p] * 5 +
                                      [ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p])
        lib.crucible_eigh_status_string.restype = ctypes.c_char_p
        return lib
    raise ImportError(f"load {_NAME}: {'; '.join(tried)}; build kernels/eigh and set CRUCIBLE_EIGH_LIBRARY")


_lib = _load()


def _check(status, what):
    if status != 0:
        text = _lib.crucible_eigh_status_string(status).decode()
        raise RuntimeError(f"{what}: {text} (cudaError {_lib.crucible_eigh_last_cuda_error()})")


def _solve(a, flags):
    n, lead = a.shape[-1], a.shape[:-2]
    a = a.contiguous()
    if a.data_ptr() % 16:
        a = a.clone()
    batch = lead.numel()
    values = torch.empty(lead + (n,), dtype=torch.float32, device=a.device)
    vectors = torch.empty(lead + (n, n) if not flags & _VALUES_ONLY else (0,), dtype=torch.float32, device=a.device)
    info = (torch.empty if n else torch.zeros)(lead, dtype=torch.int32, device=a.device)
    size = ctypes.c_size_t()
    with torch.cuda.device(a.device):  # the size is one for the current device too
        _check(_lib.crucible_eigh_workspace(n, batch, flags, ctypes.byref(size)), "size the eigh workspace")
        workspace = torch.empty(size.value, dtype=torch.uint8, device=a.device)
        stream = torch.cuda.current_stream(a.device).cuda_stream
        _check(_lib.crucible_eigh(n, batch, a.data_ptr(), values.data_ptr(), vectors.data_ptr(),
                                  info.data_ptr(), workspace.data_ptr(), size.value, flags, stream),
               f"eigh of {batch} matrices of order {n}")
    return values, vectors, info


# A custom operator, so that torch.compile traces the call as one opaque node.
@torch.library.custom_op("crucible_eigh::solve", mutates_args=(), device_types="cuda")
def _solve_op(a: torch.Tensor, flags: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return _solve(a, flags)


@_solve_op.register_fake
def _(a, flags):
    n, lead = a.shape[-1], a.shape[:-2]
    return (a.new_empty(lead + (n,)),
            a.new_empty(lead + (n, n) if not flags & _VALUES_ONLY else (0,)),
            a.new_empty(lead, dtype=torch.int32))


def _keep_for_backward(ctx, inputs, output):
    ctx.save_for_backward(*output[:2])


def _backward(ctx, grad_values, grad_vectors, _):
    values, vectors = ctx.saved_tensors
    if values.numel() and not vectors.numel():
        raise RuntimeError("gradient of crucible_eigh::solve: eigenvalues alone keep no vectors; call eigvalsh or eigh")
    gaps = values[..., None, :] - values[..., :, None]
    diagonal = torch.eye(values.shape[-1], dtype=torch.bool, device=values.device)
    turn = vectors.mT @ grad_vectors
    turn = (turn - turn.mT) / 2  # vectors only turn; the rest would leave the symmetric matrices
    inner = (turn / gaps.masked_fill(diagonal, 1)).masked_fill(diagonal, 0)
    return vectors @ (torch.diag_embed(grad_values) + inner) @ vectors.mT, None


_solve_op.register_autograd(_backward, setup_context=_keep_for_backward)


def _flags(a, uplo):
    if uplo not in ("L", "U"):
        raise ValueError(f"UPLO must be 'L' or 'U', not {uplo!r}")
    if a.dim() < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"eigh needs square matrices, not {tuple(a.shape)}")
    if a.dtype != torch.float32 or not a.is_cuda:
        raise TypeError(f"eigh needs a float32 CUDA tensor, not {a.dtype} on {a.device}")
    return _UPPER if uplo == "U" else 0


EighResult = collections.namedtuple("EighResult", ("eigenvalues", "eigenvectors"))
EighInfo = collections.namedtuple("EighInfo", ("eigenvalues", "eigenvectors", "info"))


def eigh_info(A, UPLO="L"):
    """(L, Q, info): info[b] is 0, 1 for a NaN/Inf matrix, 2 where the iteration did not converge."""
    return EighInfo(*torch.ops.crucible_eigh.solve(A, _flags(A, UPLO)))


def eigh(A, UPLO="L"):
    """(L, Q) as torch.linalg.eigh gives them, also as .eigenvalues and .eigenvectors."""
    return EighResult(*torch.ops.crucible_eigh.solve(A, _flags(A, UPLO))[:2])


def eigvalsh(A, UPLO="L"):
    """L as torch.linalg.eigvalsh gives it. Where a gradient is wanted, the vectors are made too."""
    gradient = torch.is_grad_enabled() and A.requires_grad
    return torch.ops.crucible_eigh.solve(A, _flags(A, UPLO) | (0 if gradient else _VALUES_ONLY))[0]
