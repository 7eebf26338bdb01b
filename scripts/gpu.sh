#!/usr/bin/env bash
# gpu.sh: on a machine with a GPU (CUDA 13, CMake, python3 with torch): builds kernels/eigh alone, then
# checks the correctness cases and times the ranked ones; prints one table (run by ./dev gpu).
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
nvidia-smi -L >/dev/null 2>&1 || { echo "gpu: no GPU is seen (nvidia-smi -L gives none); run it on a machine with one" >&2; exit 1; }
cmake -S kernels/eigh -B build/eigh -DCMAKE_BUILD_TYPE=Release >&2
cmake --build build/eigh -j "$(nproc)" >&2
library=$(find build/eigh -name libcrucible_eigh.so | head -n 1)
CRUCIBLE_EIGH_LIBRARY=$PWD/$library PYTHONPATH=kernels/eigh/python \
  exec python3 kernels/eigh/bench/ranked.py correct ranked
