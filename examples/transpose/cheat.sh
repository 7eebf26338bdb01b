#!/bin/sh
# cheat.sh CHEATS.CC HARNESS.PY FOLDER NAME: builds one cheating kernel and starts the harness on it.
set -eu
c++ -O1 -std=c++17 -shared -fPIC "-DCHEAT_$4" -o "$3/cheat_$4.so" "$1"
exec python3 "$2" "$3/cheat_$4.so"
