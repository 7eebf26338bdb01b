"""The public eigh cases on one GPU: correctness of all 39, then the 13 ranked ones by their timing rule.

    CRUCIBLE_EIGH_LIBRARY=... PYTHONPATH=kernels/eigh/python python3 ranked.py [correct] [ranked] [torch] [json FILE]

Inputs are new random draws from a printed seed. Outputs and workspace are poisoned with NaN before
every solve. Gates are evaluated in float64 on the float32 input, as scaled residuals (their limits
are 200 for A Q - Q L, 100 for Q^T Q - I, 400 for Q L Q^T - A). Timing: k different inputs a round,
L2 cleared by writing 256 MB, one event before and after the k calls, every output checked again
after every round; the score is the geometric mean of the mean times. With `torch`, torch.linalg.eigh
is timed beside each ranked case on its first input, cold L2, the median of three calls (one where a
call takes over a second), on at most 64 matrices of the batch, scaled to the whole batch where that
is fewer (marked so): its time a matrix is constant from there on.
Exit status 1 where a gate fails.
"""
import ctypes
import json
import math
import os
import sys

import torch

from crucible_eigh import _check, _lib

EPS = 2.0 ** -23
DEV = "cuda"
RANKED = [(20, 32, 1, "dense"), (40, 176, 1, "dense"), (40, 352, 1, "dense"), (640, 512, 2, "dense"),
          (60, 1024, 2, "dense"), (8, 2048, 1, "dense"), (640, 512, 2, "mixed"), (60, 1024, 2, "mixed"),
          (640, 512, 0, "rankdef"), (640, 512, 0, "clustered"), (60, 1024, 0, "nearrank"),
          (640, 512, 0, "lapack_dense_even"), (60, 1024, 0, "lapack_dense_geometric")]
CORRECT = ([(20, 32, 1, "dense"), (40, 176, 1, "dense"), (40, 352, 1, "dense"), (16, 512, 2, "dense"),
            (4, 1024, 2, "dense"), (2, 2048, 1, "dense"), (16, 512, 4, "spectrum"), (16, 512, 2, "psd")] +
           [(16, 512, 0, c) for c in ("rankdef", "nearrank", "repeated", "clustered", "band", "rowscale")] +
           [(4, 1024, 4, "spectrum"), (4, 1024, 0, "rankdef"), (4, 1024, 0, "clustered"),
            (2, 2048, 2, "mixed"), (16, 512, 2, "mixed"), (4, 1024, 2, "mixed"), (1, 4096, 1, "diagonal")] +
           [(16, 512, 0, "lapack_" + c) for c in
            ("zero", "identity", "diag_even", "diag_geometric", "diag_clustered", "diag_geometric_high",
             "diag_geometric_low", "dense_even", "dense_geometric")] +
           [(4, 1024, 0, "lapack_" + c) for c in
            ("dense_clustered", "dense_even_high", "dense_even_low", "random", "random_high", "random_low",
             "band_even", "band_even_high", "band_even_low")])
MIXED = [("dense", 6), ("spectrum", 1), ("psd", 2), ("rankdef", 1), ("nearrank", 1), ("repeated", 1),
         ("clustered", 1), ("band", 1), ("rowscale", 1)]


def sym(g):
    return (g + g.mT) / 2


def logspace(a, b, m):
    return torch.logspace(a, b, m, device=DEV, dtype=torch.float64)


def lin(a, b, m):
    return torch.linspace(a, b, m, device=DEV, dtype=torch.float64)


def from_spectrum(values, batch, gen):
    n = values.shape[-1]
    out = torch.empty(batch, n, n, device=DEV)
    for at in range(0, batch, 64):
        k = min(64, batch - at)
        q, r = torch.linalg.qr(torch.randn(k, n, n, device=DEV, generator=gen))
        q = q * torch.sign(torch.diagonal(r, dim1=-2, dim2=-1))[:, None, :]
        v = values.float() if values.dim() == 1 else values[at:at + k, None, :].float()
        out[at:at + k] = sym((q * v) @ q.mT)
    return out


def lapack(name, batch, n, gen):
    ulp, scale = 2 * EPS, 1.0
    if name.endswith("_high"):
        name, scale = name[:-5], math.sqrt(3.4028235e38)
    elif name.endswith("_low"):
        name, scale = name[:-4], math.sqrt(1.1754944e-38)
    spectra = {"even": lin(1, ulp, n), "geometric": logspace(0, math.log10(ulp), n),
               "clustered": torch.cat([lin(1, 1, 1), torch.full((n - 1,), ulp, device=DEV, dtype=torch.float64)])}
    if name == "zero":
        return torch.zeros(batch, n, n, device=DEV)
    if name == "identity":
        return torch.eye(n, device=DEV).repeat(batch, 1, 1)
    if name == "random":
        return sym(torch.rand(batch, n, n, device=DEV, generator=gen) * 2 - 1) * scale
    kind, spectrum = name.split("_")
    signs = torch.randint(0, 2, (batch, n), device=DEV, generator=gen) * 2 - 1
    values = spectra[spectrum] * signs
    if kind == "diag":
        return torch.diag_embed(values * scale).float()
    a = from_spectrum(values, batch, gen)
    if kind == "band":
        width = torch.randint(1, n, (batch,), device=DEV, generator=gen)
        i = torch.arange(n, device=DEV)
        a = a * ((i[:, None] - i).abs()[None] <= width[:, None, None])
    return a * scale


def make(case, batch, n, cond, gen):
    c = max(cond, 1)
    if case.startswith("lapack_"):
        return lapack(case[7:], batch, n, gen)
    if case == "mixed":
        names = [x for x, w in MIXED for _ in range(w)]
        pick = torch.randint(0, len(names), (batch,), device=DEV, generator=gen).tolist()
        kinds = [names[p] for p in pick]
        kinds[0] = "dense"
        if all(k == "dense" for k in kinds):
            kinds[-1] = "psd"
        a = torch.empty(batch, n, n, device=DEV)
        for name in sorted(set(kinds)):
            at = [i for i, k in enumerate(kinds) if k == name]
            a[at] = make(name, len(at), n, cond, gen)
        return a
    g = lambda: torch.randn(batch, n, n, device=DEV, generator=gen)
    flip = torch.where(torch.arange(n, device=DEV) % 2 == 0, -1.0, 1.0)
    if case in ("dense", "rowscale"):
        e = cond if case == "dense" else max(cond, 4)
        s = logspace(0, -e, n).float() if e else torch.ones(n, device=DEV)
        return sym(s[:, None] * sym(g()) * s)
    if case == "spectrum":
        return from_spectrum(flip * logspace(-c, 0, n), batch, gen)
    if case == "psd":
        x = g() * logspace(0, -c, n).float()
        return sym(x @ x.mT / n)
    if case in ("rankdef", "nearrank"):
        r = 3 * n // 4
        low = torch.zeros(n - r, device=DEV, dtype=torch.float64) if case == "rankdef" else 1e-6 * logspace(-2, 0, n - r)
        return from_spectrum(torch.cat([low, logspace(-c, 0, r)]), batch, gen)
    if case == "repeated":
        m = max(1, min(16, n // 8))
        return from_spectrum(lin(-1, 1, m)[torch.arange(n, device=DEV) * m // n], batch, gen)
    if case == "clustered":
        v = torch.sign(lin(-1, 1, n)) + 1e-5 * lin(-1, 1, n)
        k = 2 * n // 3 - n // 3
        v[n // 3:2 * n // 3] = 1 + 1e-6 * lin(-1, 1, k)
        return from_spectrum(v.sort()[0], batch, gen)
    if case == "diagonal":
        return torch.diag_embed((flip * logspace(-c, 0, n)).float()).repeat(batch, 1, 1)
    if case == "band":
        width = max(2, min(32, n // 32))
        i = torch.arange(n, device=DEV)
        return sym(g()) * ((i[:, None] - i).abs() <= width) + torch.diag(lin(-1, 1, n).float())
    raise ValueError(case)


def gates(a, values, vectors):
    """Worst scaled residuals (eigen, orthogonality, reconstruction) and whether finite and ascending."""
    n = a.shape[-1]
    worst, ok = [0.0, 0.0, 0.0], True
    step = max(1, (1 << 26) // (n * n))
    for at in range(0, a.shape[0], step):
        x, l, q = a[at:at + step].double(), values[at:at + step].double(), vectors[at:at + step].double()
        ok = ok and bool(torch.isfinite(l).all() and torch.isfinite(q).all())
        ok = ok and (n == 1 or bool((l[:, 1:] >= l[:, :-1] - 100 * n * EPS * l.abs().amax(1, keepdim=True).clamp(min=1)).all()))
        norm = lambda m: m.abs().sum(-2).amax(-1)
        scale = norm(x)
        eye = torch.eye(n, device=DEV, dtype=torch.float64)
        ql = q * l[:, None, :]
        for k, (r, s) in enumerate(((norm(x @ q - ql), scale), (norm(q.mT @ q - eye), torch.ones_like(scale)),
                                    (norm(ql @ q.mT - x), scale))):
            r = torch.where(s > 0, r / (n * EPS * s.clamp(min=1e-300)), torch.where(r > 0, float("inf"), 0.0))
            worst[k] = max(worst[k], float(r.max())) if bool(torch.isfinite(r).all()) else float("inf")
    return worst, ok and worst[0] <= 200 and worst[1] <= 100 and worst[2] <= 400


class Solver:
    def __init__(self, batch, n, count):
        self.batch, self.n = batch, n
        size = ctypes.c_size_t()
        _check(_lib.crucible_eigh_workspace(n, batch, 0, ctypes.byref(size)), "workspace")
        self.work = torch.empty(max(size.value, 256), dtype=torch.uint8, device=DEV)
        self.values = torch.empty(count, batch, n, device=DEV)
        self.vectors = torch.empty(count, batch, n, n, device=DEV)
        self.info = torch.empty(batch, dtype=torch.int32, device=DEV)

    def poison(self):
        self.work.fill_(255)
        self.values.fill_(float("nan"))
        self.vectors.fill_(float("nan"))

    def __call__(self, a, slot):
        _check(_lib.crucible_eigh(self.n, self.batch, a.data_ptr(), self.values[slot].data_ptr(),
                                  self.vectors[slot].data_ptr(), self.info.data_ptr(), self.work.data_ptr(),
                                  self.work.numel(), 0, torch.cuda.current_stream().cuda_stream), "eigh")


def generator(seed):
    return torch.Generator(DEV).manual_seed(seed)


def correct(seed, out):
    print("case (batch, n, cond): worst scaled residuals eigen/200 orthogonality/100 reconstruction/400")
    failed = 0
    for index, (batch, n, cond, case) in enumerate(CORRECT):
        a = make(case, batch, n, cond, generator(seed + index)).contiguous()
        solver = Solver(batch, n, 1)
        solver.poison()
        copy = a.clone()
        solver(a, 0)
        torch.cuda.synchronize()
        worst, ok = gates(a, solver.values[0], solver.vectors[0])
        ok = ok and torch.equal(a, copy) and int(solver.info.abs().max()) == 0
        failed += not ok
        out.append({"set": "correct", "case": case, "batch": batch, "n": n, "cond": cond, "residuals": worst, "ok": ok})
        print(f"{'ok  ' if ok else 'FAIL'} {case} ({batch}, {n}, {cond}): {worst[0]:.2f} {worst[1]:.2f} {worst[2]:.2f}", flush=True)
    print(f"{len(CORRECT) - failed} of {len(CORRECT)} correct, seed {seed}")
    return failed


def time_torch(a, clear):
    """ms of torch.linalg.eigh on `a`, and how many matrices were timed."""
    timed = a[:min(len(a), 64)]
    torch.linalg.eigh(timed[:1])  # warm up
    times = []
    while len(times) < 3 and sum(times) < 1000:
        clear.fill_(len(times))
        torch.cuda.synchronize()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        torch.linalg.eigh(timed)
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return sorted(times)[len(times) // 2] * len(a) / len(timed), len(timed)


def ranked(seed, out, with_torch):
    """Number of cases whose gates fail."""
    clear = torch.empty(64 << 20, device=DEV)
    log_sum, log_torch, failed = 0.0, 0.0, 0
    for batch, n, cond, case in RANKED:
        count = max(1, min(50, (256 << 20) // (batch * n * n * 4)))
        inputs = [make(case, batch, n, cond, generator(seed + 42 * (i + 1))).contiguous() for i in range(count)]
        solver = Solver(batch, n, count)
        solver.poison()
        for i in range(count):
            solver(inputs[i], i)
        torch.cuda.synchronize()
        results = [gates(inputs[i], solver.values[i], solver.vectors[i]) for i in range(count)]
        times, spent = [], 0.0
        while len(times) < 3 or (len(times) < 60 and spent < 2000):
            solver.vectors.fill_(float("nan"))
            clear.fill_(len(times))
            torch.cuda.synchronize()
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            for i in range(count):
                solver(inputs[i], i)
            end.record()
            torch.cuda.synchronize()
            times.append(begin.elapsed_time(end) / count)
            spent += times[-1] * count
            mean = sum(times) / len(times)
            error = math.sqrt(sum((t - mean) ** 2 for t in times) / len(times) / max(1, len(times) - 1))
            results += [gates(inputs[i], solver.values[i], solver.vectors[i]) for i in range(count if n <= 32 else 1)]
            if len(times) >= 3 and spent > 100 and error < 0.001 * mean:
                break
        worst = [max(r[0][k] for r in results) for k in range(3)]
        ok = all(r[1] for r in results)
        log_sum += math.log(mean)
        failed += not ok
        row = {"set": "ranked", "case": case, "batch": batch, "n": n, "cond": cond, "ms": mean,
               "error_ms": error, "rounds": len(times), "residuals": worst, "ok": ok}
        beside = ""
        if with_torch:
            row["torch_ms"], row["torch_matrices"] = time_torch(inputs[0], clear)
            log_torch += math.log(row["torch_ms"])
            scaled = f", {row['torch_matrices']} scaled" if row["torch_matrices"] < batch else ""
            beside = f"  torch {row['torch_ms']:.3f} ms ({row['torch_ms'] / mean:.1f}x{scaled})"
        out.append(row)
        print(f"{'ok  ' if ok else 'FAIL'} {case} ({batch}, {n}, {cond}): {mean:.4f} ms +- {error:.4f} ({len(times)} rounds)  "
              f"residuals {worst[0]:.1f} {worst[1]:.2f} {worst[2]:.1f}{beside}", flush=True)
        del inputs, solver
        torch.cuda.empty_cache()
    against = f", torch.linalg.eigh {math.exp(log_torch / len(RANKED)):.2f} ms" if with_torch else ""
    print(f"geometric mean of {len(RANKED)} cases: {math.exp(log_sum / len(RANKED)):.4f} ms{against}, seed {seed}")
    return failed


def main():
    seed = int.from_bytes(os.urandom(3), "little")
    out, failed = [], 0
    if "correct" in sys.argv:
        failed += correct(seed, out)
    if "ranked" in sys.argv:
        failed += ranked(seed, out, "torch" in sys.argv)
    if "json" in sys.argv:
        report = {"seed": seed, "gpu": torch.cuda.get_device_name(0), "cuda": torch.version.cuda, "cases": out}
        with open(sys.argv[sys.argv.index("json") + 1], "w") as file:
            json.dump(report, file, indent=1)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
