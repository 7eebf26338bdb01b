"""harness.py LIBRARY: the transpose example's harness: docs/target_protocol.md in 100 lines.

Requests come on CRUCIBLE_REQUEST_FD, replies go to CRUCIBLE_REPLY_FD, one JSON object a line. Needs
Python 3 alone. Inputs are drawn from the seed of the request, outputs are poisoned before each call
and compared in full after it.
"""
import array
import ctypes
import hashlib
import json
import os
import platform
import random
import statistics
import sys
import time

FLUSH_BYTES = 16 << 20  # swept before each call: inputs and outputs are out of the nearer caches


class Kernel:
    def __init__(self, path):
        self.path = path
        self.call = ctypes.CDLL(path).transpose
        self.call.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
        self.flush = ctypes.create_string_buffer(FLUSH_BYTES)
        self.inputs = []
        self.n = 0

    def make_input(self, n, seed):
        draw = random.Random(seed)
        return array.array("f", list(draw.randbytes(n * n)))  # whole numbers 0 … 255

    def solve(self, source, n):
        """One poisoned, checked call: (microseconds, what is wrong or '')."""
        out = array.array("f", [float("nan")]) * (n * n)
        before = hashlib.sha256(source).digest()
        start = time.perf_counter_ns()
        status = self.call(source.buffer_info()[0], out.buffer_info()[0], n)
        elapsed_us = (time.perf_counter_ns() - start) / 1e3
        if status != 0:
            return elapsed_us, f"the kernel returned {status}"
        if hashlib.sha256(source).digest() != before:
            return elapsed_us, "the kernel changed its input"
        for i in range(n):
            if out[i::n] != source[i * n:(i + 1) * n]:
                return elapsed_us, f"row {i} of the input is not column {i} of the output"
        return elapsed_us, ""

    def check(self, case, seed):
        n = case["n"]
        _, wrong = self.solve(self.make_input(n, seed), n)
        return {"ok": True, "pass": not wrong, "margins": {}, "limits": {}, "reason": wrong}

    def prepare(self, case, seed):
        self.n = case["n"]
        self.inputs = [self.make_input(self.n, seed + k) for k in range(2)]
        for source in self.inputs:
            _, wrong = self.solve(source, self.n)
            if wrong:
                return {"ok": False, "error": wrong}
        return {"ok": True, "inputs": len(self.inputs), "bytes": 4 * self.n * self.n}

    def slot(self, request):
        if not self.inputs:
            return {"ok": False, "error": "slot before prepare"}
        times, start = [], time.perf_counter_ns()
        while len(times) < request["max_calls"]:
            spent_ms = (time.perf_counter_ns() - start) / 1e6
            if len(times) >= request["min_calls"] and spent_ms >= request["budget_ms"]:
                break
            ctypes.memset(self.flush, len(times) & 255, FLUSH_BYTES)
            elapsed_us, wrong = self.solve(self.inputs[len(times) % len(self.inputs)], self.n)
            if wrong:
                return {"ok": True, "calls": len(times), "median_us": 0, "mean_us": 0, "min_us": 0,
                        "wall_us": 0, "verified": False, "throttled": False, "clock": "unlocked",
                        "reason": wrong}
            times.append(elapsed_us)
        return {"ok": True, "calls": len(times), "median_us": statistics.median(times),
                "mean_us": statistics.fmean(times), "min_us": min(times),
                "wall_us": (time.perf_counter_ns() - start) / 1e3, "verified": True,
                "throttled": False, "clock": "unlocked", "reason": ""}

    def hello(self):
        with open(self.path, "rb") as library:
            digest = hashlib.sha256(library.read()).hexdigest()
        return {"ok": True, "protocol": 1, "target": "transpose", "configuration": {},
                "conditions": {"device": platform.processor() or platform.machine(),
                               "clock": "unlocked", "harness": "transpose 1"},
                "library_sha256": digest}

    def answer(self, request):
        op = request.get("op")
        if op == "hello":
            return self.hello()
        if op == "check":
            return self.check(request["case"], request["seed"])
        if op == "prepare":
            return self.prepare(request["case"], request["seed"])
        if op == "slot":
            return self.slot(request)
        if op == "bye":
            return {"ok": True}
        return {"ok": False, "error": f"unknown op {op!r}"}


def main():
    kernel = Kernel(sys.argv[1])
    requests = os.fdopen(int(os.environ["CRUCIBLE_REQUEST_FD"]), "r")
    replies = os.fdopen(int(os.environ["CRUCIBLE_REPLY_FD"]), "w")
    for line in requests:
        try:
            request = json.loads(line)
            reply = kernel.answer(request)
        except (ValueError, KeyError, TypeError) as error:
            request, reply = {}, {"ok": False, "error": f"bad request: {error!r}"}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()
        if request.get("op") == "bye":
            break


if __name__ == "__main__":
    main()
