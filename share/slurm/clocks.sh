# Read by prolog.sh and epilog.sh: locks the SM clock of a job's GPUs.
#
# settings.sh beside this file may set SM_CLOCK_MHZ (no clock is touched while it is empty) and
# NVIDIA_SMI (the program, default nvidia-smi).
SM_CLOCK_MHZ= NVIDIA_SMI=nvidia-smi
# shellcheck disable=SC1091
[ -r "$here/settings.sh" ] && . "$here/settings.sh"

note() { logger -t crucible-slurm -- "$*" 2>/dev/null || true; }

# SLURM_JOB_GPUS: the job's GPUs as the machine counts them, "0,2"; empty for a job without one.
lock_clocks() {
  [ -n "$SM_CLOCK_MHZ" ] && [ -n "$SLURM_JOB_GPUS" ] || return 0
  "$NVIDIA_SMI" -i "$SLURM_JOB_GPUS" --lock-gpu-clocks="$SM_CLOCK_MHZ,$SM_CLOCK_MHZ" >/dev/null 2>&1 ||
    note "could not lock the SM clock of GPU $SLURM_JOB_GPUS at $SM_CLOCK_MHZ MHz"
}
