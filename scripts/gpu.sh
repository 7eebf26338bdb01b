#!/usr/bin/env bash
# gpu.sh: on a machine with a GPU (CUDA 13 with cuSOLVER, CMake): builds kernels/eigh alone, installs it
# and links a program against it, runs the device test, lets the harness judge the cheating CUDA kernels
# (where the rest of the project builds as well), checks the correctness cases and times the ranked ones
# beside cuSOLVER; prints one table (run by ./dev gpu). Arguments go to eigh_cuda_bench: "grid", "wide",
# "json FILE", ... "cheats" alone: the cheating kernels and nothing else. Example: ./dev gpu grid json eigh.jsonl
set -euo pipefail
arguments=("$@")
for k in "${!arguments[@]}"; do  # a file name is meant from where the user is
  if [[ ${arguments[$k]} == json && -n ${arguments[$((k + 1))]:-} ]]; then
    arguments[$((k + 1))]=$(realpath -m "${arguments[$((k + 1))]}")
  fi
done
cd "$(dirname "$(readlink -f "$0")")/.."
capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d .) || true
[[ -n $capability ]] || { echo "gpu: no GPU is seen (nvidia-smi gives none); run it on a machine with one" >&2; exit 1; }
# The harness needs more than CUDA (OpenBLAS, Boost, ...): without it the kernels are timed all the same.
cheats() {
  local log=build/gpu-cheats.log
  mkdir -p build
  if ! cmake --preset release -DCRUCIBLE_CUDA=ON "-DCMAKE_CUDA_ARCHITECTURES=${capability}a-real" >"$log" 2>&1; then
    echo "gpu: the cheating kernels were NOT run: the project does not configure here (see $log; ./dev install)" >&2
    return "${1:-0}"
  fi
  cmake --build build -j "$(nproc)" --target eigh_cuda_exploit_suite_test >&2
  ctest --test-dir build -R '^eigh_cuda_exploit_suite_test$' --output-on-failure --no-tests=error >&2
}
if [[ ${arguments[*]} == cheats ]]; then cheats 1; exit; fi
{
  cmake -S kernels/eigh -B build/eigh -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CUDA_ARCHITECTURES=${capability}a-real"
  cmake --build build/eigh -j "$(nproc)"
  cmake --install build/eigh --prefix build/eigh-install
  cmake -S kernels/eigh/tests_device/consumer -B build/eigh-consumer "-DCMAKE_PREFIX_PATH=$PWD/build/eigh-install"
  cmake --build build/eigh-consumer
} >&2
build/eigh-consumer/eigh_consumer
build/eigh/tests_device/eigh_cuda_api_test
cheats
exec build/eigh/bench/eigh_cuda_bench correct ranked peers "${arguments[@]}"
