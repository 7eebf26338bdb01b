#!/bin/sh
# Slurm epilog: ends what the job left running and locks the SM clock of its GPUs again.
#
# slurm.conf: Epilog=/etc/slurm/crucible/epilog.sh
# proctrack/linuxproc follows parents only, so a process that called setsid and lost its parent
# survives its job; it is known by SLURM_JOB_ID in its environment. Not needed with
# proctrack/cgroup, and harmless there. The clock is locked again without asking whether it still
# is: profilers drop the lock, and there is no way to read it back. Always ends with 0, because
# Slurm drains a node whose epilog fails.
here=$(dirname "$0")
. "$here/clocks.sh"

# Processes of the job, by the environment they were started with. One grep for all of them: on a
# busy node a fork for each would take seconds between two jobs.
left_behind() {
  for environment in $(grep -lzxs "SLURM_JOB_ID=$SLURM_JOB_ID" /proc/[0-9]*/environ); do
    pid=${environment#/proc/}
    pid=${pid%/environ}
    [ "$pid" = $$ ] && continue
    # The epilog has the variable too, and so have its own children, which end by themselves.
    [ "$(awk '/^PPid:/ { print $2 }' "/proc/$pid/status" 2>/dev/null)" = $$ ] && continue
    # Slurm's own: the daemon of the step is still tidying up.
    case $(readlink "/proc/$pid/exe" 2>/dev/null) in */slurmstepd | */slurmd | "") continue ;; esac
    echo "$pid"
  done
}

if [ -n "$SLURM_JOB_ID" ]; then
  for try in 1 2 3 4 5; do  # again: a process may have forked while it was being looked for
    pids=$(left_behind)
    [ -z "$pids" ] && break
    # shellcheck disable=SC2086  # one word a pid
    kill -9 $pids 2>/dev/null
    note "job $SLURM_JOB_ID left processes running; ended: $(echo $pids)"
    sleep 0.05
  done
fi
lock_clocks
exit 0
