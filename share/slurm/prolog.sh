#!/bin/sh
# Slurm prolog: locks the SM clock of the job's GPUs before the job starts.
#
# slurm.conf: Prolog=/etc/slurm/crucible/prolog.sh  PrologFlags=Alloc  (clocks.sh and epilog.sh beside it)
# Always ends with 0: a prolog that fails makes Slurm drain the node, and an unlocked clock is no
# reason for that. What went wrong is in the system's log.
here=$(dirname "$0")
. "$here/clocks.sh"
lock_clocks
exit 0
