#!/bin/sh
# Nsight Compute without a GPU: takes ncu's words, runs the command, and answers --import with pages of
# a real report. $FAKE_NCU says what goes wrong: permission, no_kernels, broken.
pages=$FAKE_NCU_PAGES
report= log= import= page= view=
echo "$@" >>"$FAKE_NCU_CALLS"
while [ $# -gt 0 ]; do
  case $1 in
    --import) import=$2; shift 2 ;;
    --page) page=$2; shift 2 ;;
    --print-source) view=$2; shift 2 ;;
    --export) report=$2; shift 2 ;;
    --log-file) log=$2; shift 2 ;;
    --csv|--force-overwrite) shift ;;
    --*) shift 2 ;;
    *) break ;;
  esac
done
if [ -n "$import" ]; then
  [ "$FAKE_NCU" = broken ] && { echo "==ERROR== not a report" >&2; exit 1; }
  if [ "$page" = details ]; then cat "$pages/details.csv"; exit; fi
  [ "$view" = "cuda,sass" ] && cat "$pages/source.csv"
  exit 0
fi
echo "==PROF== Connected to process $$" >"$log"
case $FAKE_NCU in
  permission)
    echo "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the target device 0." >>"$log"
    exit 1 ;;
  no_kernels)
    "$@"; code=$?
    echo "==WARNING== No kernels were profiled." >>"$log"
    exit $code ;;
esac
echo dropped >>"$FAKE_NVML_CALLS"
"$@"
code=$?
echo report >"$report"
echo "==PROF== Report: $report" >>"$log"
exit $code
