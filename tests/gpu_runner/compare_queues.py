#!/usr/bin/env python3
"""compare_queues.py: the same load on gpu_run and on what people use instead.

    tests/gpu_runner/compare_queues.py [--build build] [--jobs 100] [--callers 8] [--seed 1]
    tests/gpu_runner/compare_queues.py --full       1,000 jobs from 64 callers (minutes)

Runs gpu_run (on the CPU, and on a fake GPU with its clock pinned again after every job), flock(1)
and task-spooler (Debian package task-spooler) one after the other, each with its own queue in a
folder of its own, and prints one table, with what it was measured on, for
docs/results/gpu_runner.md:

  overlap      pairs of different jobs that were at work at once; a process that a job left behind
               is part of its job
  unrecorded   jobs that began and of which the tool keeps no trace afterwards
  stuck        callers that did not end within 30 s, and a last call that waited longer than 10 s
  left         processes of jobs still running when the last call has ended
  out of turn  jobs that began before one which had queued earlier (16 callers, 100 ms apart)
  gap under fire  from the last sign of a job to the first of the next, median, under the SIGKILLs
  gap          the same without kills, jobs of 2 ms
  overhead     `TOOL true` on a free queue beyond `true`, medians of alternating calls

The first four and the gap under fire are of the load with random SIGKILLs of callers and of jobs,
every eighth job leaving a process behind that works on for 150 ms; a gap in which that process is
at work counts as none. A tool that is not installed is left out and said so. Needs the targets
gpu_run, fake_nvml and gpu_run_bench. pueue has no package in Debian 12.
"""
import argparse
import os
import platform
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

STUCK_S = 30


class Tool:
    """How one tool is told to run a command, and what it remembers."""

    def __init__(self, name, folder, arguments):
        self.name, self.folder = name, folder
        self.build = os.path.abspath(arguments.build)
        self.environment = dict(os.environ, COMPARE_QUEUES=folder,
                                TS_SOCKET=folder + "/ts", TS_MAXFINISHED="100000",
                                TMPDIR=folder, CRUCIBLE_LOCK_DIR=folder + "/locks",
                                CRUCIBLE_HOME=folder + "/home")
        for name_ in ("CRUCIBLE_GPU_TOKEN", "CRUCIBLE_GPU_BACKEND", "CRUCIBLE_TOOLCHAIN"):
            self.environment.pop(name_, None)
        if name == "gpu_run fake GPU":
            self.environment["CRUCIBLE_NVML_LIBRARY"] = self.build + "/lib/libfake_nvml.so"
        # task-spooler's server is started by its first call; eight at once would start several.
        subprocess.run(self.words(["true"]), env=self.environment, stdout=subprocess.DEVNULL)

    def words(self, command):
        if self.name == "gpu_run":
            return [self.build + "/bin/gpu_run", "--device", "cpu", "--quiet", "--", *command]
        if self.name == "gpu_run fake GPU":
            return [self.build + "/bin/gpu_run", "--device", "0", "--clocks", "pin", "--quiet",
                    "--", *command]
        if self.name == "flock":
            return ["flock", self.folder + "/lock", *command]
        if self.name == "tsp":
            return ["tsp", "-f", *command]  # with -n it would keep no record
        return command

    def start(self, command):
        return subprocess.Popen(self.words(command), env=self.environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def memory(self):
        """All the tool tells about past jobs, as one text."""
        if self.name.startswith("gpu_run"):
            words = [self.build + "/bin/gpu_run", "history", "-n", "100000", "--json"]
        elif self.name == "tsp":
            words = ["tsp"]
        else:
            return ""
        return subprocess.run(words, env=self.environment, capture_output=True, text=True).stdout

    def end(self):
        if self.name == "tsp":
            subprocess.run(["tsp", "-K"], env=self.environment, capture_output=True)


class Jobs:
    """The jobs' stamps: one line "ID NANOSECONDS PID" every few milliseconds of work."""

    def __init__(self, tool):
        self.file, self.bench = tool.folder + "/stamps", tool.build + "/tests/gpu_run_bench"

    def command(self, identity, ms, orphan=False):
        words = [self.bench, "--job", self.file, identity, str(ms)]
        return words + ["--orphan"] if orphan else words

    def lines(self):
        try:
            with open(self.file) as stamps:
                return [line.split() for line in stamps if line.count(" ") == 2]
        except FileNotFoundError:
            return []

    def spans(self):
        """{job: [first, last]} of each process at work, in order of the first sign."""
        spans = {}
        for identity, when, _ in self.lines():
            spans.setdefault(identity, [int(when), int(when)])[1] = int(when)
        return sorted(spans.items(), key=lambda item: item[1])


def kill_job(jobs):
    """SIGKILLs the process that worked last, when it still is one of ours."""
    lines = jobs.lines()[-1:]
    for _, _, pid in lines:
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as words:
                if b"--job" in words.read():
                    os.kill(int(pid), signal.SIGKILL)
                    return 1
        except OSError:
            pass
    return 0


def median(numbers):
    return statistics.median(numbers) if numbers else float("nan")


def left_running(tool):
    mark = ("COMPARE_QUEUES=" + tool.folder).encode()
    found = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as environment, \
                    open(f"/proc/{pid}/cmdline", "rb") as words:
                found += mark in environment.read().split(b"\0") and b"--job" in words.read()
        except OSError:
            pass
    return found


def wait_all(callers):
    until, stuck = time.monotonic() + STUCK_S, 0
    for caller in callers:
        try:
            caller.wait(max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            stuck += 1
            caller.kill()
            caller.wait()
    return stuck


def under_fire(tool, arguments):
    jobs, chance = Jobs(tool), random.Random(arguments.seed)
    callers, started, killed_callers, killed_jobs, stuck = [], 0, 0, 0, 0
    next_kill, progress = time.monotonic() + 0.2, time.monotonic()
    while started < arguments.jobs or callers:
        ended = [caller for caller in callers if caller.poll() is not None]
        callers = [caller for caller in callers if caller.poll() is None]
        if ended:
            progress = time.monotonic()
        while started < arguments.jobs and len(callers) < arguments.callers:
            callers.append(tool.start(jobs.command(f"job{started}_", 10, chance.random() < 1 / 8)))
            started += 1
        if time.monotonic() >= next_kill and callers:
            next_kill = time.monotonic() + chance.uniform(0.05, 0.25)
            if chance.random() < 0.5:
                killed_jobs += kill_job(jobs)
            else:
                chance.choice(callers).kill()
                killed_callers += 1
        if time.monotonic() - progress > STUCK_S:
            stuck += len(callers)
            for caller in callers:
                caller.kill()
        time.sleep(0.005)
    last = tool.start(jobs.command("last_", 1))
    try:
        last.wait(10)
    except subprocess.TimeoutExpired:
        stuck += 1
        last.kill()
    left = left_running(tool)
    time.sleep(0.4)  # what is left works on for 150 ms: let it write its stamps
    spans, memory = jobs.spans(), tool.memory()
    overlaps = 0
    for index, (identity, (_, end)) in enumerate(spans):
        for other, (begin, _) in spans[index + 1:]:
            overlaps += begin < end and identity.split("_")[0] != other.split("_")[0]
    begun = {identity.split("_")[0] + "_" for identity, _ in spans}
    unrecorded = sum(identity not in memory for identity in begun)
    gaps = [(after[0] - before[1]) / 1e6 for (_, before), (_, after) in zip(spans, spans[1:])]
    return {"gap": median([between for between in gaps if between > 0]),
            "killed": f"{killed_callers}+{killed_jobs}", "began": len(begun), "overlap": overlaps,
            "unrecorded": unrecorded, "stuck": stuck, "left": left}


def in_turn(tool, _):
    jobs, callers = Jobs(tool), []
    go = tool.folder + "/go"
    holder = tool.start(["sh", "-c", f"while [ ! -e {go} ]; do sleep 0.02; done"])
    time.sleep(0.5)
    for number in range(16):
        callers.append(tool.start(jobs.command(f"turn{number:02}", 2)))
        time.sleep(0.1)
    open(go, "w").close()
    wait_all([holder, *callers])
    order = [identity for identity, _ in jobs.spans()]
    return sum(any(later < earlier for later in order[index + 1:])
               for index, earlier in enumerate(order)), len(order)


def gap(tool, arguments):
    jobs, callers, callers_at_once = Jobs(tool), [], arguments.callers
    for number in range(arguments.gap_jobs):
        callers.append(tool.start(jobs.command(f"gap{number}", 2)))
        while len([c for c in callers if c.poll() is None]) >= callers_at_once:
            time.sleep(0.002)
    wait_all(callers)
    spans = [span for _, span in jobs.spans()]
    gaps = [(after[0] - before[1]) / 1e6 for before, after in zip(spans, spans[1:])]
    return median(gaps)


def overhead(tool, arguments):
    def timed(words):
        start = time.monotonic()
        subprocess.run(words, env=tool.environment, stdout=subprocess.DEVNULL)
        return (time.monotonic() - start) * 1e3
    pairs = [(timed(["true"]), timed(tool.words(["true"]))) for _ in range(arguments.pairs)]
    return statistics.median(b for _, b in pairs) - statistics.median(a for a, _ in pairs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--callers", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--gap-jobs", type=int, default=60)
    parser.add_argument("--pairs", type=int, default=25, help="calls that the overhead is from")
    parser.add_argument("--only", help="one tool: gpu_run, 'gpu_run fake GPU', flock or tsp")
    parser.add_argument("--full", action="store_true", help="1,000 jobs from 64 callers")
    arguments = parser.parse_args()
    if arguments.full:
        arguments.jobs, arguments.callers, arguments.gap_jobs, arguments.pairs = 1000, 64, 1000, 100
    print(f"`{' '.join(['tests/gpu_runner/compare_queues.py', *sys.argv[1:]])}`: seed "
          f"{arguments.seed}, {arguments.jobs} jobs of 10 ms from {arguments.callers} callers; "
          f"{os.cpu_count()} cores, Linux {platform.release()}, load average "
          f"{os.getloadavg()[0]:.1f} at the start\n")
    print("| tool | SIGKILLed callers+jobs | began | overlap | unrecorded | stuck | left "
          "| out of turn | gap under fire ms | gap ms | overhead ms |\n"
          "|---|---|---|---|---|---|---|---|---|---|---|")
    for name in ("gpu_run", "gpu_run fake GPU", "flock", "tsp"):
        if arguments.only not in (None, name):
            continue
        if not name.startswith("gpu_run") and shutil.which(name) is None:
            print(f"| {name} | not installed |")
            continue
        parts = {}
        for part in (under_fire, in_turn, gap, overhead):
            folder = tempfile.mkdtemp(prefix="compare_queues_")
            tool = Tool(name, folder, arguments)
            parts[part] = part(tool, arguments)
            tool.end()
            shutil.rmtree(folder, ignore_errors=True)
        fire, (wrong, turns) = parts[under_fire], parts[in_turn]
        print(f"| {name} | {fire['killed']} | {fire['began']} | {fire['overlap']} | "
              f"{fire['unrecorded']} | {fire['stuck']} | {fire['left']} | {wrong} of {turns} | "
              f"{fire['gap']:.1f} | {parts[gap]:.1f} | {parts[overhead]:.1f} |", flush=True)
    print("\npueue: not in Debian 12")


if __name__ == "__main__":
    main()
