#!/bin/bash
# What docs/results/gpu_runner.md shows of a real GPU, with nvcc, nvidia-smi and git: two worktrees
# and a nested call, a job and a runner SIGKILLed while they hold memory, a process outside the
# queue, a toolchain profile, the clocks that were recorded, a memory checker in its domain, and
# what a call costs. Policy observe: no clock is ever set.
#   tests/gpu_runner/real_gpu.sh [FOLDER_OF_GPU_RUN [GPU_RUN_BENCH]]
set -u
source=$(cd "$(dirname "$0")" && pwd)
bin=$(cd "${1:-build/bin}" && pwd)
bench=$(readlink -f "${2:-$bin/../tests/gpu_run_bench}")
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
cd "$here" || exit 1
mkdir home
unset CRUCIBLE_HOME CRUCIBLE_BROKER CRUCIBLE_GPU_TOKEN CRUCIBLE_GPU_BACKEND
export HOME=$here/home CRUCIBLE_LOCK_DIR=$here/locks PATH=$bin:/usr/local/cuda/bin:$PATH
root=$(readlink -f "$(dirname "$(dirname "$(command -v nvcc)")")")
used() { nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits | head -1; }
until_held() { for _ in $(seq 150); do [ "$(used)" -gt 8000 ] && break; sleep 0.2; done; echo "in use: $(used) MiB"; }
nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.max.sm --format=csv,noheader
nvcc --version | tail -2 | head -1
nvcc -O2 -o hold "$source/hold_memory.cu" || exit 1
git init -q one
git -C one -c user.name=n -c user.email=e commit -q --allow-empty -m first
git -C one worktree add -q ../two

echo "== two worktrees and a nested call"
(cd one && gpu_run --limit 60s -- ../hold 8 4 one) &
sleep 2
(cd two && gpu_run -- sh -c 'echo outer $CRUCIBLE_JOB_ID
  gpu_run -- sh -c "echo nested \$CRUCIBLE_JOB_ID; ../hold 1 2 nested"') &
sleep 0.5
(cd one && gpu_run status)
wait

echo "== a job's process is SIGKILLed while it holds memory"
(cd one && gpu_run -- sh -c 'echo $$ >../pid; exec ../hold 9 60'; echo "exit code $?") &
until_held
kill -9 "$(cat pid)"
wait
(cd two && gpu_run -- nvidia-smi --query-gpu=memory.used --format=csv,noheader)

echo "== a runner is SIGKILLed while its job holds memory; no job follows, only a look at the status"
(cd one && exec gpu_run -- ../hold 9 60) &
runner=$!
until_held
kill -9 $runner
wait
(cd two && gpu_run status)
for _ in $(seq 50); do [ "$(used)" -lt 8000 ] && break; sleep 0.1; done
echo "in use: $(used) MiB"

echo "== somebody computes outside the queue; then nobody does"
./hold 1 4 outside &
sleep 1
echo "in use by CUDA: $(ls /proc/driver/nvidia-uvm/gpus 2>&1 | wc -l) entries"
(cd one && gpu_run -- touch ../ran; echo "exit code $?"; ls ../ran 2>&1)
wait
echo "in use by CUDA: $(ls /proc/driver/nvidia-uvm/gpus 2>&1 | wc -l) entries"
(cd one && gpu_run -- touch ../ran; echo "exit code $?"; ls ../ran)

echo "== toolchain profiles"
mkdir -p home/.config/crucible
printf '[cuda]\ncuda_root = "%s"\nhost_compiler = "g++"\ndriver_min = "450.0"\n[old]\ndriver_min = "9999.0"\n' \
  "$root" >home/.config/crucible/toolchains.toml
(cd one && gpu_run --toolchain cuda -- sh -c 'command -v nvcc; echo $CUDA_HOME $CXX; ../hold 2 3')
(cd one && gpu_run --toolchain old -- true; echo "exit code $?")

echo "== compute-sanitizer, confined as in a target's full check: clean, then a write out of bounds"
if command -v compute-sanitizer >/dev/null && [ -x "$bin/crucible_confine" ]; then
  printf '%s\n' '__global__ void f(int* p) { p[threadIdx.x + (1 << 20)] = 1; }' \
    'int main() { int* p; cudaMalloc(&p, 4); f<<<1, 32>>>(p); return cudaDeviceSynchronize(); }' >bad.cu
  nvcc -O2 -o bad bad.cu
  for program in "../hold 1 1" ../bad; do
    (cd one && gpu_run -- "$bin/crucible_confine" compute-sanitizer --tool memcheck --error-exitcode 9 \
      $program | grep -E 'SUMMARY|Invalid' | head -2; echo "$program: exit code ${PIPESTATUS[0]}")
  done
else
  echo "not run: there is no compute-sanitizer or no crucible_confine here"
fi

echo "== history"
(cd two && gpu_run history && gpu_run history --json -n 1)
echo "== what a call costs"
mkdir bench
CRUCIBLE_HOME=$here/bench "$bench" "$bin/gpu_run" 0 60
CRUCIBLE_HOME=$here/bench "$bench" "$bin/gpu_run" cpu 60
uptime
