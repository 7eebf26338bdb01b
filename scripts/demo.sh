#!/usr/bin/env bash
# demo.sh: a real campaign in miniature (run by ./dev demo, which builds first).
#
# Clones this repository's HEAD to build/demo/crucible, so that your own branches stay where they are,
# launches missions/campaigns/demo.toml there, and prints what came of it. With `--agents scripted` the
# agents are language models with crucible's tools, played by a server on loopback. `--words` only
# says whether the words are right, before anything is built.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
root=$PWD
place=$root/build/demo
crucible=$root/build/bin/crucible

only_words=0
if [ "${1:-}" = --words ]; then only_words=1; shift; fi
campaign=missions/campaigns/demo.toml
while [ $# -gt 0 ]; do
  case "$1 ${2:-}" in
    "--agents scripted") campaign=missions/campaigns/demo_scripted.toml; shift 2 ;;
    "--agents proposer") shift 2 ;;
    "--agents "*) echo "demo --agents '${2:-}': there are no such agents; use proposer or scripted" >&2; exit 2 ;;
    *) echo "demo '$1': there is no such option; see ./dev help" >&2; exit 2 ;;
  esac
done
[ "$only_words" -eq 0 ] || exit 0

unset CRUCIBLE_HOME CRUCIBLE_GPU_TOKEN 2>/dev/null || true
rm -rf "$place"
mkdir -p "$place"
if git -C "$root" rev-parse -q --verify HEAD >/dev/null 2>&1; then
  git clone -q --no-hardlinks "$root" "$place/crucible"
  git -C "$place/crucible" checkout -q -B main
else
  # A source archive without history: its own first commit.
  mkdir "$place/crucible"
  tar -C "$root" --exclude=./build --exclude=./build-* -cf - . | tar -C "$place/crucible" -xf -
  git -C "$place/crucible" init -q -b main
  git -C "$place/crucible" add -A
  git -C "$place/crucible" -c user.name=demo -c user.email=demo@localhost commit -q -m "Start"
fi
cd "$place/crucible"
# Nobody works in this clone: with no branch checked out, merges move main and touch no file.
git checkout -q --detach

"$crucible" init
if [ "$campaign" = missions/campaigns/demo_scripted.toml ]; then
  "$root/build/bin/scripted_server" scripts/scripted_demo.json --port-file "$place/port" \
    >"$place/scripted_server.log" 2>&1 &
  server=$!
  trap 'kill $server 2>/dev/null || true' EXIT
  for _ in $(seq 100); do [ -s "$place/port" ] && break; sleep 0.1; done
  ANTHROPIC_BASE_URL=http://127.0.0.1:$(cat "$place/port")
  ANTHROPIC_API_KEY=sk-scripted-demo   # the server takes no other: nothing is reached without it
  export ANTHROPIC_BASE_URL ANTHROPIC_API_KEY
fi
"$crucible" campaign launch "$campaign"

echo
echo "== what was kept =="
"$crucible" log query --kind win --target eigh_cpu
echo
echo "== what was not kept, and why =="
not_kept=(--kind loss --kind null --kind inconclusive --kind refused --kind crashed --target eigh_cpu)
"$crucible" log query "${not_kept[@]}"
"$crucible" log query "${not_kept[@]}" --json | python3 -c '
import json, sys
for entry in json.load(sys.stdin):
    print("e%s: %s" % (entry["id"], entry["reason"]))'
echo
if [ "$campaign" = missions/campaigns/demo_scripted.toml ]; then
  echo "== missions: outcome and spend =="
  "$crucible" mission list
  echo
  echo "a whole transcript: $place/crucible/.crucible/missions/m1/transcript.jsonl"
  echo
fi
echo "== per case =="
"$crucible" log records --target eigh_cpu
echo
"$crucible" dashboard --target eigh_cpu --out "$place/dashboard.html"
echo
echo "merges on the demo's main: git -C build/demo/crucible log --first-parent --oneline main"
git log -12 --first-parent --oneline main
echo
echo "dashboard: $place/dashboard.html"
echo "go on there: cd build/demo/crucible, then $crucible brief n176, log show e1, mission list, campaign status"
