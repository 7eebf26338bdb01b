"""Adaptor to the public eigh problem: custom_kernel(A) -> (Q, L).

Calls the C API directly (no operator dispatch) and keeps one workspace per shape: a call is one
library call on the current stream. The allocator owns the outputs, which are new every time.
"""
import ctypes

import torch

from crucible_eigh import _check, _lib

_workspaces = {}


def _workspace(n, batch, device):
    key = (n, batch, device)
    if key not in _workspaces:
        size = ctypes.c_size_t()
        _check(_lib.crucible_eigh_workspace(n, batch, 0, ctypes.byref(size)), "size the eigh workspace")
        _workspaces.clear()  # one shape at a time: the large ones take gigabytes
        _workspaces[key] = torch.empty(max(size.value, 256), dtype=torch.uint8, device=device)
    return _workspaces[key]


def custom_kernel(data):
    a = data.contiguous()
    batch, n = a.shape[0], a.shape[-1]
    vectors = torch.empty_like(a)
    values = torch.empty((batch, n), dtype=torch.float32, device=a.device)
    workspace = _workspace(n, batch, a.device)
    _check(_lib.crucible_eigh(n, batch, a.data_ptr(), values.data_ptr(), vectors.data_ptr(), None,
                              workspace.data_ptr(), workspace.numel(), 0,
                              torch.cuda.current_stream(a.device).cuda_stream), "eigh")
    return vectors, values
