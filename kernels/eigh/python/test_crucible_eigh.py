"""Tests of the Python module on a GPU: python3 test_crucible_eigh.py (run by ./dev gpu --only python).

Needs torch with CUDA and CRUCIBLE_EIGH_LIBRARY; exit status 0 passed, 1 failed, 77 nothing to test on.
Inputs come from a printed seed.
"""
import os
import subprocess
import sys
import traceback

try:
    import torch
except ImportError:
    print("skipped: torch is not importable")
    sys.exit(77)
if not torch.cuda.is_available():
    print("skipped: torch sees no CUDA device")
    sys.exit(77)

import crucible_eigh

EPS = 2.0 ** -23
SEED = int(os.environ.get("SEED") or int.from_bytes(os.urandom(3), "little"))


def symmetric(*shape):
    a = torch.randn(*shape, shape[-1], device="cuda")
    return (a + a.mT) / 2


def assert_decomposes(a, values, vectors):
    """The gates of the benchmark, in float64."""
    n = a.shape[-1]
    x, l, q = a.double(), values.double(), vectors.double()
    norm = lambda m: m.abs().sum(-2).amax(-1)
    eye = torch.eye(n, device=a.device, dtype=torch.float64)
    assert bool((norm(x @ q - q * l[..., None, :]) <= 200 * n * EPS * norm(x)).all()), "A Q = Q L"
    assert bool((norm(q.mT @ q - eye) <= 100 * n * EPS).all()), "Q^T Q = I"
    assert bool((l[..., 1:] >= l[..., :-1]).all()), "L ascends"


def value_bound(n):
    """Error of an eigenvalue over the largest: FP32 up to 192, from there one FP16 rounding."""
    return 64 * EPS * max(1, n) ** 0.5 if n <= 192 else 2.0 ** -11


def test_matches_torch_in_float64():
    for n in (1, 2, 5, 31, 32, 33, 100, 192, 193, 300, 400, 600):
        a = symmetric(3, n)
        values, vectors = crucible_eigh.eigh(a)
        expected = torch.linalg.eigvalsh(a.double())
        assert values.shape == expected.shape and vectors.shape == a.shape, n
        error = (values.double() - expected).abs().amax() / expected.abs().amax().clamp(min=1e-30)
        assert float(error) <= value_bound(n), (n, float(error))
        assert_decomposes(a, values, vectors)
        alone = crucible_eigh.eigvalsh(a)
        assert float((alone - values).abs().amax()) <= 2 * value_bound(n) * float(values.abs().amax()), n


def test_reads_the_named_triangle_only():
    a = symmetric(4, 65)
    expected = crucible_eigh.eigh(a)
    nan = torch.full_like(a, float("nan"))
    lower = torch.tril(a) + torch.triu(nan, 1)
    upper = torch.triu(a) + torch.tril(nan, -1)
    for half, uplo in ((lower, "L"), (upper, "U")):
        half = torch.where(half.isnan(), nan, half)
        values, vectors = crucible_eigh.eigh(half, UPLO=uplo)
        assert torch.equal(values, expected[0]) and torch.equal(vectors, expected[1]), uplo


def test_takes_any_leading_shape_and_strides():
    a = symmetric(2, 3, 4, 20)
    values, vectors = crucible_eigh.eigh(a)
    assert values.shape == (2, 3, 4, 20) and vectors.shape == (2, 3, 4, 20, 20)
    assert_decomposes(a, values, vectors)
    flat = crucible_eigh.eigh(a.reshape(24, 20, 20))
    assert torch.equal(values.reshape(24, 20), flat[0])
    strided = symmetric(8, 20)[::2]
    assert_decomposes(strided, *crucible_eigh.eigh(strided))
    one = symmetric(20)
    assert_decomposes(one, *crucible_eigh.eigh(one))
    for empty in ((0, 5, 5), (3, 0, 0)):
        values, vectors = crucible_eigh.eigh(torch.empty(empty, device="cuda"))
        assert values.shape == empty[:-1] and vectors.shape == empty


def test_tells_nan_matrices_apart():
    a = symmetric(3, 50)
    a[1, 7, 7] = float("nan")
    values, vectors, info = crucible_eigh.eigh_info(a)
    assert info.tolist() == [0, 1, 0]
    assert bool(values[1].isnan().all() and vectors[1].isnan().all())
    assert bool(values[[0, 2]].isfinite().all() and vectors[[0, 2]].isfinite().all())


def test_info_of_matrices_without_entries_is_zero():
    torch.full((64,), 7, dtype=torch.int32, device="cuda")  # freed: what an allocation may hold
    assert crucible_eigh.eigh_info(torch.empty(3, 0, 0, device="cuda")).info.tolist() == [0, 0, 0]


def test_takes_and_returns_the_names_of_torch():
    a = symmetric(2, 12)
    result = crucible_eigh.eigh(A=a, UPLO="L")
    assert result.eigenvalues is result[0] and result.eigenvectors is result[1]
    assert torch.equal(result.eigenvalues, crucible_eigh.eigh_info(A=a).eigenvalues)
    assert crucible_eigh.eigvalsh(A=a, UPLO="U").shape == (2, 12)


def test_takes_a_slice_that_is_not_aligned():
    a = symmetric(7, 50)
    flat = torch.empty(a.numel() + 1, device="cuda")
    shifted = flat[1:].view_as(a).copy_(a)
    assert shifted.data_ptr() % 16 and shifted.is_contiguous()
    for mine, expected in zip(crucible_eigh.eigh(shifted), crucible_eigh.eigh(a)):
        assert torch.equal(mine, expected)


def test_gradients_are_those_of_torch_in_float64():
    def loss(values, vectors):
        weights = torch.linspace(1, 2, values.shape[-1], device="cuda", dtype=values.dtype)
        return (values.sin() * weights).sum() + ((vectors ** 4) * weights[:, None]).sum()

    for uplo in ("L", "U"):
        a = (symmetric(3, 16) + 4 * torch.diag(torch.arange(16., device="cuda"))).requires_grad_()
        x = a.detach().double().requires_grad_()
        mine, = torch.autograd.grad(loss(*crucible_eigh.eigh(a, uplo)), a)
        expected, = torch.autograd.grad(loss(*torch.linalg.eigh(x, uplo)), x)
        assert float((mine - expected).abs().amax()) <= 1e-3 * float(expected.abs().amax()), uplo
    mine, = torch.autograd.grad(crucible_eigh.eigvalsh(a).sin().sum(), a)
    expected, = torch.autograd.grad(torch.linalg.eigvalsh(x).sin().sum(), x)
    assert float((mine - expected).abs().amax()) <= 1e-3 * float(expected.abs().amax())


def test_a_wrong_library_is_refused():
    environment = dict(os.environ, CRUCIBLE_EIGH_LIBRARY="/nowhere/libcrucible_eigh.so")
    run = subprocess.run([sys.executable, "-c", "import crucible_eigh"], env=environment, text=True,
                         cwd=os.path.dirname(os.path.dirname(crucible_eigh.__file__)), capture_output=True)
    assert run.returncode != 0 and "/nowhere/libcrucible_eigh.so" in run.stderr, run.stderr


def test_other_devices_are_asked_on_their_own():
    last = torch.device("cuda", torch.cuda.device_count() - 1)  # a second GPU, where there is one
    a = symmetric(2, 400).to(last)
    values, vectors = crucible_eigh.eigh(a)
    assert values.device == last and vectors.device == last
    assert_decomposes(a, values, vectors)


def test_refuses_what_it_cannot_solve():
    for bad, error in ((torch.randn(3, 4, device="cuda"), ValueError), (torch.randn(4, 4), TypeError),
                       (torch.randn(4, 4, device="cuda", dtype=torch.float64), TypeError)):
        try:
            crucible_eigh.eigh(bad)
        except error:
            continue
        raise AssertionError(f"{tuple(bad.shape)} {bad.dtype} on {bad.device} was accepted")


def test_compiles_without_a_graph_break():
    def function(x):
        values, vectors = crucible_eigh.eigh(x + x.mT)
        return (vectors * values[..., None, :]) @ vectors.mT

    a = symmetric(4, 48)
    compiled = torch.compile(function, fullgraph=True)
    assert float((compiled(a) - function(a)).abs().amax()) <= 1e-4
    larger = symmetric(6, 48)  # another batch: recompiled or dynamic, right either way
    assert float((compiled(larger) - function(larger)).abs().amax()) <= 1e-4


def test_works_on_the_current_stream():
    a = symmetric(16, 128)
    expected = crucible_eigh.eigh(a)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        copy = a.clone()
        values, vectors = crucible_eigh.eigh(copy)
    stream.synchronize()
    assert torch.equal(values, expected[0]) and torch.equal(vectors, expected[1])


def test_passes_the_operator_checks_of_torch():
    torch.library.opcheck(torch.ops.crucible_eigh.solve.default, (symmetric(2, 33).requires_grad_(), 0),
                          test_utils=("test_schema", "test_faketensor", "test_autograd_registration"))


def main():
    print(f"seed {SEED}, torch {torch.__version__}, {torch.cuda.get_device_name(0)}")
    failed = 0
    tests = [(name, test) for name, test in globals().items() if name.startswith("test_")]
    for name, test in tests:
        torch.manual_seed(SEED)
        try:
            test()
            print(f"ok     {name}", flush=True)
        except Exception:
            failed += 1
            traceback.print_exc()
            print(f"FAILED {name}", flush=True)
    print(f"{len(tests) - failed} of {len(tests)} passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
