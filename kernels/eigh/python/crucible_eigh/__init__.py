"""Batched symmetric eigendecomposition on torch CUDA tensors, through the C API of crucible_eigh.

    L, Q = crucible_eigh.eigh(A)             # conventions of torch.linalg.eigh
    L = crucible_eigh.eigvalsh(A, UPLO="U")

The library is found by CRUCIBLE_EIGH_LIBRARY, next to this file, or by the system's loader.
Nothing synchronises: per-matrix failures show as NaN, or ask eigh_info for the info tensor.
"""
import ctypes
import os
import pathlib

import torch

_VALUES_ONLY, _UPPER = 1, 2
_NAME = "libcrucible_eigh.so"


def _load():
    candidates = [os.environ.get("CRUCIBLE_EIGH_LIBRARY"), str(pathlib.Path(__file__).parent / _NAME), _NAME]
    tried = []
    for path in filter(None, candidates):
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
    info = torch.empty(lead, dtype=torch.int32, device=a.device)
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


def _flags(a, uplo):
    if uplo not in ("L", "U"):
        raise ValueError(f"UPLO must be 'L' or 'U', not {uplo!r}")
    if a.dim() < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"eigh needs square matrices, not {tuple(a.shape)}")
    if a.dtype != torch.float32 or not a.is_cuda:
        raise TypeError(f"eigh needs a float32 CUDA tensor, not {a.dtype} on {a.device}")
    return _UPPER if uplo == "U" else 0


def eigh_info(a, UPLO="L"):
    """(L, Q, info): info[b] is 0, 1 for a NaN/Inf matrix, 2 where the iteration did not converge."""
    return torch.ops.crucible_eigh.solve(a, _flags(a, UPLO))


def eigh(a, UPLO="L"):
    """(L, Q) as torch.linalg.eigh gives them, without gradients."""
    values, vectors, _ = eigh_info(a, UPLO)
    return values, vectors


def eigvalsh(a, UPLO="L"):
    """L as torch.linalg.eigvalsh gives it, without gradients."""
    return torch.ops.crucible_eigh.solve(a, _flags(a, UPLO) | _VALUES_ONLY)[0]
