"""Checks the reduction alone against float64 and times it.

    python3 stage_check.py libstages.so

Prints, per shape and kind of matrix, the scaled residual norm1(A Q1 - Q1 T) / (n eps norm1(A)) and
norm1(Q1^T Q1 - I) / (n eps), Q1 formed in float64 from the stored v with tau = 2 / v^T v, and the
median time of scale + reduce.
"""
import ctypes
import sys

import torch

EPS = 2.0 ** -23


def sym(g):
    return (g + g.mT) / 2


def kinds(n):
    q = torch.linalg.qr(torch.randn(n, n, device="cuda", dtype=torch.float64))[0]

    def spectrum(values):
        return sym((q * values.double()) @ q.T).float()

    lin = torch.linspace(-1, 1, n, device="cuda", dtype=torch.float64)
    out = {"dense": sym(torch.randn(n, n, device="cuda")),
           "even": spectrum(lin),
           "clustered": spectrum(torch.sign(lin) + 1e-5 * lin),
           "decay": spectrum(torch.logspace(-6, 0, n, device="cuda")),
           "rankdef": spectrum(torch.where(torch.arange(n, device="cuda") < n // 4, 0.0, lin)),
           "tiny": 1e-25 * sym(torch.randn(n, n, device="cuda")),
           "huge": 1e18 * sym(torch.randn(n, n, device="cuda")),
           "near_id": torch.eye(n, device="cuda") + 1e-4 * sym(torch.randn(n, n, device="cuda")),
           "diag": torch.diag(torch.randn(n, device="cuda")),
           "zero": torch.zeros(n, n, device="cuda")}
    scale = torch.logspace(0, -4, n, device="cuda")
    out["rowscale"] = scale[:, None] * sym(torch.randn(n, n, device="cuda")) * scale
    return out


def run(lib, a, upper):
    batch, n = a.shape[:2]
    ld = (n + 63) // 64 * 64
    nan = float("nan")
    new = lambda *s, t=torch.float32: torch.full(s, nan if t != torch.int32 else 7, device="cuda", dtype=t)
    d, e, tau = new(batch, ld), new(batch, ld), new(batch, ld)
    v = new(batch, n, ld, t=torch.float16)
    ex, st = new(batch, t=torch.int32), new(batch, t=torch.int32)
    work = torch.full((max(lib.stage_reduce_bytes(batch, n), 4) // 4 + 64,), nan, device="cuda")
    p = lambda t: ctypes.c_void_p(t.data_ptr())

    def call():
        rc = lib.stage_reduce(ctypes.c_longlong(batch), n, p(a), int(upper), p(ex), p(st), p(d), p(e),
                              p(tau), p(v), p(work), ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        assert rc == 0, rc
    call()
    torch.cuda.synchronize()
    return call, d, e, tau, v, ex, st


def check(a, d, e, v, ex, b):
    n = a.shape[1]
    vd = v[b, :, :n].double()                      # row j is v_j
    tau = 2 / (vd * vd).sum(1)
    tau[(vd * vd).sum(1) == 0] = 0
    m = vd.T.clone()                               # householder_product wants v_j(j) = 1 on its diagonal
    q = torch.eye(n, device="cuda", dtype=torch.float64)
    for j in range(n - 2, -1, -1):
        if tau[j] != 0:
            q[:, :] -= tau[j] * torch.outer(vd[j], vd[j] @ q)
    t = torch.diag(d[b, :n].double()) + torch.diag(e[b, :n - 1].double(), 1) + torch.diag(e[b, :n - 1].double(), -1)
    t = t * 2.0 ** int(ex[b])
    ad = a[b].double()
    norm = ad.abs().sum(0).max()
    r = (ad @ q - q @ t).abs().sum(0).max()
    o = (q.T @ q - torch.eye(n, device="cuda", dtype=torch.float64)).abs().sum(0).max()
    r = float(r / (n * EPS * norm)) if norm > 0 else float(r)
    return r, float(o / (n * EPS))


def main():
    lib = ctypes.CDLL(sys.argv[1])
    lib.stage_reduce_bytes.restype = ctypes.c_size_t
    lib.stage_reduce_bytes.argtypes = [ctypes.c_longlong, ctypes.c_int]
    torch.manual_seed(int.from_bytes(open("/dev/urandom", "rb").read(4), "little"))
    for n in [int(x) for x in sys.argv[2].split(",")]:
        ks = kinds(n)
        a = torch.stack(list(ks.values())).contiguous()
        bad = a.clone()
        bad[1] = float("nan")
        for upper in (False, True):
            mine = (torch.triu(a) if upper else torch.tril(a)).contiguous()
            other = torch.tril(torch.full_like(a, float("nan")), -1)
            mine = torch.where(torch.isnan(other if upper else other.mT), other if upper else other.mT, mine).contiguous()
            _, d, e, tau, v, ex, st = run(lib, mine, upper)
            line = []
            for b, name in enumerate(ks):
                r, o = check(a, d, e, v, ex, b)
                line.append(f"{name} {r:.3g}/{o:.1e}")
            print(f"n {n} {'U' if upper else 'L'}: " + "  ".join(line) + f"  status {int(st.abs().max())}", flush=True)
        _, d2, e2, _, v2, _, st2 = run(lib, bad.contiguous(), False)
        _, d1, e1, _, v1, _, _ = run(lib, a, False)
        same = all(torch.equal(x[k], y[k]) for x, y in ((d1, d2), (e1, e2), (v1, v2)) for k in range(len(a)) if k != 1) if False else \
            all(torch.equal(x[k][..., :n - 1], y[k][..., :n - 1]) for x, y in ((d1, d2), (e1, e2)) for k in range(len(a)) if k != 1)
        print(f"n {n}: NaN matrix status {st2.tolist()} neighbours same {same}", flush=True)
    for n, batch in ((176, 40), (352, 40), (512, 640), (1024, 60)):
        a = sym(torch.randn(batch, n, n, device="cuda"))
        call, *_ = run(lib, a, False)
        times = []
        for _ in range(7):
            s, t = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            s.record(); call(); t.record(); t.synchronize()
            times.append(s.elapsed_time(t))
        print(f"time scale+reduce n {n} x {batch}: {sorted(times)[3]:.3f} ms", flush=True)


main()
