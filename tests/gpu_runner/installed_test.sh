#!/bin/sh
# gpu_run alone, as somebody has it who installed nothing else: in a folder of its own, with an empty
# home, from two worktrees of one repository and from outside any.
#   installed_test.sh CMAKE BUILD_FOLDER
set -eu
cmake=$1 build=$2
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
fail() { echo "FAILED: $1" >&2; exit 1; }
"$cmake" --install "$build" --component gpu_run --prefix "$here/prefix" >"$here/log" || fail "install"
[ "$(ls "$here/prefix/bin")" = gpu_run ] || fail "bin holds $(ls "$here/prefix/bin")"
mkdir "$here/home" "$here/elsewhere"
unset CRUCIBLE_HOME CRUCIBLE_GPU_TOKEN CRUCIBLE_JOB_NONCE CRUCIBLE_GPU_BACKEND CRUCIBLE_BROKER \
  CRUCIBLE_MISSION_DIR XDG_STATE_HOME XDG_CONFIG_HOME CRUCIBLE_TOOLCHAIN
export HOME="$here/home" PATH="$here/prefix/bin:/usr/bin:/bin" CRUCIBLE_LOCK_DIR="$here/locks" \
  GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
cd "$here"
git init -q one
git -C one -c user.name=n -c user.email=e commit -q --allow-empty -m first
git -C one worktree add -q ../two

gpu_run --help | grep -q 'gpu_run status' || fail "--help"
# One worktree holds the device; the other is told who, and waits.
mkfifo go
(cd one && gpu_run --device cpu -- sh -c 'echo first >>../order; cat ../go') &
until [ -e order ]; do sleep 0.02; done
(cd two && gpu_run status) | grep -q "busy.*in $here/one" || fail "status does not say who"
code=0
(cd two && gpu_run --device cpu --queue-limit 200ms -- true) 2>said || code=$?
[ $code = 75 ] || fail "queue limit: $code"
grep -q "held by pid .* in $here/one" said || fail "the waiter was told: $(cat said)"
(cd two && gpu_run --device cpu -- sh -c 'echo second >>../order') 2>/dev/null &
until (cd two && gpu_run status) | grep -q waiting; do sleep 0.02; done
: >go
wait
[ "$(tr '\n' ' ' <order)" = "first second " ] || fail "order: $(cat order)"
# One history for both worktrees, which the repository does not see.
[ "$(cd two && gpu_run history | wc -l)" = 3 ] || fail "history: $(cd one && gpu_run history)"
[ -z "$(git -C one status --porcelain)$(git -C two status --porcelain)" ] || fail "git sees it"
# Outside a repository: the history is the user's.
cd elsewhere
gpu_run --device cpu --log -- echo kept >/dev/null
job=$(gpu_run history | awk '{ print $2 }')
[ "$(gpu_run logs "$job")" = kept ] || fail "logs"
[ -e "$HOME/.local/state/crucible/log.sqlite" ] || fail "no history in the home"
