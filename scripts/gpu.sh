#!/usr/bin/env bash
# gpu.sh: builds, checks and benches kernels/eigh on a machine with a GPU; one table at the end
# (run by ./dev gpu). `./dev gpu --help` lists the steps and options. Needs CUDA 13 with cuSOLVER and
# CMake; a step whose tool is missing is skipped and says so. Each step's output is in
# build/gpu/STEP.log. Exit status: 0 all chosen steps passed or were skipped, 1 one failed or ran
# into its time limit, 2 wrong usage.
set -euo pipefail

all_steps=(build install api check cheats wide memcheck initcheck racecheck stages peers torch python grid)
declare -A about=(
  [build]="configure and build kernels/eigh alone, for this GPU"
  [install]="install it and run a C program that finds it by find_package"
  [api]="the C API's promises: bits repeat, graphs, NaN neighbours, triangles, mixed sizes"
  [check]="the 39 correctness cases, outputs and workspace poisoned"
  [cheats]="the harness judges the cheating CUDA kernels, where the rest of the project builds too"
  [wide]="every wide family at 20 orders, --draws draws each"
  [memcheck]="compute-sanitizer memcheck on batches of 2 at a few orders"
  [initcheck]="the same under initcheck"
  [racecheck]="the same under racecheck, in a build whose partial barriers are whole ones"
  [stages]="divide and conquer and back-transform alone against FP64"
  [peers]="the 13 ranked cases, every output checked, beside every cuSOLVER route in the same run"
  [torch]="the 13 ranked cases through Python, beside torch.linalg.eigh in the same run"
  [python]="the Python module against torch.linalg.eigh in float64, torch.compile included"
  [grid]="n in 2 ... 2048 times batch in 1 ... 4096 beside the best cuSOLVER route"
)
# Seconds a step may take (--limit overrides all but build).
declare -A limit=([build]=900 [install]=120 [api]=180 [check]=120 [cheats]=900 [wide]=600 [memcheck]=180 [initcheck]=180
  [racecheck]=900 [stages]=180 [peers]=240 [torch]=240 [python]=120 [grid]=300)

usage() {
  cat <<TXT
./dev gpu [--only STEP,...] [--skip STEP,...] [--seed N] [--draws N] [--max N] [--json FILE]
          [--limit SECONDS] [--orders N,...] [--dry-run]
  --seed N      inputs of check, wide, peers, stages and grid (default: drawn and printed)
  --draws N     wide: draws of each family (default 10)
  --max N       grid: largest order (default 2048)
  --orders N,.. the sanitizers' orders (default 3,13,32,100,176,300,400,513,1025)
  --json FILE   every result of check, wide, peers and grid as a line of JSON, appended
  --dry-run     print what each step would run; needs no GPU
CRUCIBLE_PYTHON names the interpreter that has torch (default python3). Steps, in this order:
TXT
  local step
  for step in "${all_steps[@]}"; do printf '  %-10s %s\n' "$step" "${about[$step]}"; done
}
die() { echo "gpu: $*; see ./dev gpu --help" >&2; exit 2; }

only=() skip=() draws=10 largest=2048 json="" seed="" dry=0 orders=3,13,32,100,176,300,400,513,1025
while [ $# -gt 0 ]; do
  option=${1#--}
  case "$option" in
    help|h|-h) usage; exit 0 ;;
    dry-run) dry=1; shift; continue ;;
    only|skip|seed|draws|max|json|limit|orders) ;;
    *) die "'$1' is not an option" ;;
  esac
  [ $# -ge 2 ] || die "'$1' wants a value"
  case "$option" in
    only) IFS=, read -ra only <<<"$2" ;;
    skip) IFS=, read -ra skip <<<"$2" ;;
    json) json=$(realpath -m "$2") ;;  # meant from where the user is
    orders) [[ $2 =~ ^[0-9]+(,[0-9]+)*$ ]] || die "'$1 $2': not orders"; orders=$2 ;;
    *)
      [[ $2 =~ ^[0-9]+$ ]] || die "'$1 $2': not a number"
      case "$option" in
        seed) seed=$2 ;;
        draws) draws=$2 ;;
        max) largest=$2 ;;
        limit) for step in "${all_steps[@]}"; do [ "$step" = build ] || limit[$step]=$2; done ;;
      esac ;;
  esac
  shift 2
done
for step in "${only[@]}" "${skip[@]}"; do
  [[ -n ${about[$step]:-} ]] || die "'$step' is not a step"
done
chosen() {  # chosen STEP
  local word
  for word in "${skip[@]}"; do [ "$word" != "$1" ] || return 1; done
  [ ${#only[@]} -gt 0 ] || return 0
  for word in "${only[@]}"; do [ "$word" != "$1" ] || return 0; done
  return 1
}

cd "$(dirname "$(readlink -f "$0")")/.."
[ -n "$seed" ] || seed=$((RANDOM * 32768 + RANDOM))
ask_gpu() { nvidia-smi "--query-gpu=$1" --format=csv,noheader 2>/dev/null | head -n 1 || true; }
capability=$(ask_gpu compute_cap | tr -d .)
if [ -z "$capability" ] && [ "$dry" -eq 0 ]; then
  echo "gpu: no GPU is seen (nvidia-smi gives none); run it on a machine with one, or with --dry-run" >&2
  exit 1
fi
python=${CRUCIBLE_PYTHON:-python3}
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null || true)
bench=build/eigh/bench/eigh_cuda_bench
words=(seed "$seed")
[ -z "$json" ] || words+=(json "$json")
export CRUCIBLE_EIGH_LIBRARY=$PWD/build/eigh/libcrucible_eigh.so PYTHONPATH=$PWD/kernels/eigh/python

compile() {  # compile FOLDER [cmake arguments]: FOLDER/bench and the tests in it
  local folder=$1; shift
  cmake -S kernels/eigh -B "$folder" -DCMAKE_BUILD_TYPE=Release \
    "-DCMAKE_CUDA_ARCHITECTURES=${capability:-90}a-real" "$@" &&
    cmake --build "$folder" -j "$(nproc)"
}
library_tests() {
  build/eigh/tests_device/eigh_cuda_finish_test && build/eigh/tests_device/eigh_cuda_api_test
}
consumer() {
  cmake --install build/eigh --prefix build/eigh-install &&
    cmake -S kernels/eigh/tests_device/consumer -B build/eigh-consumer \
      "-DCMAKE_PREFIX_PATH=$PWD/build/eigh-install" &&
    cmake --build build/eigh-consumer && build/eigh-consumer/eigh_consumer
}
sanitize() {  # sanitize TOOL BENCH: every order, so that one finding does not hide the next
  local n batch bad="" clean=""
  for n in ${orders//,/ }; do
    batch=2
    # Blocks that wait for each other are slow under racecheck: minutes a matrix (docs/eigh.md, "Races").
    if [ "$1" = racecheck ] && [ "$n" -gt 512 ]; then batch=1; fi
    echo "== $1: clean at n${clean:- none}, now $n"
    if "$sanitizer" --tool "$1" --error-exitcode 9 "$2" once "$batch" "$n" dense repeat 0 seed "$seed"; then
      clean+=" $n"
    else
      bad+=" $n"
    fi
  done
  echo "== $1: clean at n${clean:- none}${bad:+, FINDINGS at n$bad}"
  [ -z "$bad" ]
}
# The harness needs more than CUDA (OpenBLAS, Boost, ...): without it the kernels are timed all the same.
cheats() {
  if ! cmake --preset release -DCRUCIBLE_CUDA=ON "-DCMAKE_CUDA_ARCHITECTURES=${capability:-90}a-real"; then
    echo "== the project does not configure here, so the cheating kernels were NOT run (./dev install)"
    return 77
  fi
  cmake --build build -j "$(nproc)" --target eigh_cuda_exploit_suite_test || return 1
  ctest --test-dir build -R '^eigh_cuda_exploit_suite_test$' --output-on-failure --no-tests=error
}
racecheck() {
  compile build/eigh-racecheck -DCRUCIBLE_EIGH_WHOLE_BARRIERS=ON &&
    sanitize racecheck build/eigh-racecheck/bench/eigh_cuda_bench
}
has_torch() { "$python" -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; }

rows=() failed=0 job=""
trap '[ -z "$job" ] || kill -TERM -- "-$job" 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM
note() { rows+=("$(printf '%-10s %-8s %6s  %s' "$@")"); }
# run_step STEP PATTERN FUNCTION|COMMAND...: PATTERN picks the lines of the log for the table.
run_step() {
  local step=$1 pattern=$2 began=$SECONDS status=0 verdict=ok line lines=3 log=build/gpu/$1.log
  shift 2
  [[ $pattern != '^== '* ]] || lines=1
  chosen "$step" || return 0
  if [ "$dry" -eq 1 ]; then
    note "$step" dry "" "at most ${limit[$step]} s: $*"
    return 0
  fi
  echo "== $step: ${about[$step]}" >&2
  # Each in a process group of its own, so that the limit reaches whatever the step started.
  set -m
  ("$@") >"$log" 2>&1 &
  job=$!
  set +m
  while kill -0 "$job" 2>/dev/null; do
    if [ $((SECONDS - began)) -ge "${limit[$step]}" ]; then
      kill -TERM -- "-$job" 2>/dev/null || true
      sleep 2
      kill -KILL -- "-$job" 2>/dev/null || true
      verdict=LIMIT
      break
    fi
    sleep 0.2
  done
  wait "$job" || status=$?
  job=""
  case $status in
    0) ;;
    77) verdict=skipped ;;
    *) [ "$verdict" = LIMIT ] || verdict=FAIL ;;
  esac
  [ "$verdict" = ok ] || [ "$verdict" = skipped ] || { failed=1; tail -n 5 "$log" >&2; }
  line=$(grep -E "$pattern" "$log" | tail -n "$lines" | paste -sd '|' | cut -c 1-240) || true
  note "$step" "$verdict" "$((SECONDS - began)) s" "${line:-see $log}"
  # Nothing below can run without a build.
  if [ "$step" = build ] && [ "$verdict" != ok ]; then
    table
    exit 1
  fi
}
skip_step() { ! chosen "$1" || note "$1" skipped "" "$2"; }
table() {
  printf '\n%-10s %-8s %6s  %s\n' step result time summary
  printf '%s\n' "${rows[@]}"
  echo "seed $seed; logs in build/gpu/; $(git rev-parse --short HEAD 2>/dev/null || echo no commit)," \
    "$(ask_gpu name,driver_version,clocks.sm)"
}

[ "$dry" -eq 1 ] || mkdir -p build/gpu
run_step build 'Built target crucible_eigh$|rror' compile build/eigh
run_step install 'eigh' consumer
run_step api 'failures$|FAILED' library_tests
run_step check '^correct:|FAIL' "$bench" correct "${words[@]}"
run_step cheats 'tests passed|Failed|NOT run|rror:' cheats
run_step wide '^wide:|FAIL' "$bench" wide draws "$draws" "${words[@]}"
for tool in memcheck initcheck racecheck; do
  if [ -z "$sanitizer" ] && [ "$dry" -eq 0 ]; then
    skip_step "$tool" "no compute-sanitizer on this machine"
  elif [ "$tool" = racecheck ]; then
    run_step racecheck '^== racecheck|rror:' racecheck
  else
    run_step "$tool" "^== $tool" sanitize "$tool" "$bench"
  fi
done
# Orders on both sides of every padded order, from the least that these stages are given;
# FP64 references beyond these take minutes of CPU.
run_step stages '^time n  (512|1024)|failures$|FAIL' build/eigh/tests_device/eigh_cuda_stage_test \
  "$seed" 385 511 512 513 1024 1025
run_step peers '^ranked:|FAIL' "$bench" ranked peers "${words[@]}"
if [ "$dry" -eq 1 ] || has_torch; then
  run_step torch 'geometric mean|FAIL' "$python" kernels/eigh/bench/ranked.py ranked torch
  run_step python 'passed|FAILED' "$python" kernels/eigh/python/test_crucible_eigh.py
else
  for step in torch python; do
    skip_step "$step" "torch with CUDA is not importable by $python (set CRUCIBLE_PYTHON)"
  done
fi
run_step grid '^grid: ' "$bench" grid max "$largest" "${words[@]}"
table
exit "$failed"
