#!/usr/bin/env python3
"""eigh_results.py FILE... > TABLES: results of eigh_cuda_bench (its `json FILE`) as Markdown tables.

Reads lines of JSON (a later line replaces an earlier one of the same set, family, batch, n) and
prints the ranked cases, the grid and the wide check of docs/results/eigh_h200.md. With --json OUT it
also writes the compact form of all of them, the body of docs/results/eigh_h200.json; what --head
names (a JSON object in a file: machine, driver, commit, commands) goes before it.
"""
import argparse
import json
import math


def read(paths):
    rows = {}
    for path in paths:
        for line in open(path, encoding="utf-8"):
            row = json.loads(line)
            rows[row["set"], row.get("family"), row["batch"], row["n"], row.get("cond")] = row
    return [[row for row in rows.values() if row["set"] == name]
            for name in ("correct", "ranked", "grid", "wide")]


def residuals(row):
    return [row["eigen"], row["orthogonal"], row["reconstruction"]]


def figure(x):
    return f"{x:.4g}" if x >= 1 else f"{x:.3g}"


def print_ranked(rows):
    print("| case (batch x n) | ms | best cuSOLVER | ratio | A Q - Q L | Q^T Q - I | Q L Q^T - A |")
    print("|---|---|---|---|---|---|---|")
    logs = [0.0, 0.0]
    for row in rows:
        name, best = min(row["cusolver_ms"].items(), key=lambda item: item[1])
        logs[0] += math.log(row["ms"]) / len(rows)
        logs[1] += math.log(best) / len(rows)
        print(f"| {row['family'].replace('_', ' ')} {row['batch']} x {row['n']} | {figure(row['ms'])} "
              f"| {figure(best)} ({name.split(' (')[0]}) | {best / row['ms']:.1f} | "
              + " | ".join(f"{x:.3g}" for x in residuals(row)) + " |")
    mine, best = map(math.exp, logs)
    print(f"| **geometric mean** | **{mine:.3f}** | {best:.1f} | {best / mine:.1f} | | | |")


def print_grid(rows):
    batches = (1, 16, 256, 4096)
    print("| n | batch " + " | ".join(map(str, batches)) + " |\n|---|" + "---|" * len(batches))
    for n in (2, 4, 8, 16, 24, 31, 32, 33, 64, 128, 176, 256, 352, 512, 1024, 2048):
        cells = []
        for batch in batches:
            row = next((r for r in rows if (r["n"], r["batch"]) == (n, batch)), None)
            ratio = f" ({row['ratio']:.1f}x)" if row and row.get("ratio") else ""
            cells.append(f"{row['ms']:.3g}{ratio}" if row else "")
        print(f"| {n} | " + " | ".join(cells) + " |")


def print_wide(rows):
    print("| n | A Q - Q L | family | Q^T Q - I | family | Q L Q^T - A |\n|---|---|---|---|---|---|")
    for n in sorted({row["n"] for row in rows}):
        mine = [row for row in rows if row["n"] == n]
        eigen, orthogonal, back = (max(mine, key=lambda row: row[key])
                                   for key in ("eigen", "orthogonal", "reconstruction"))
        name = lambda row: row["family"].replace("_", " ")
        print(f"| {n} | {eigen['eigen']:.3g} | {name(eigen)} | {orthogonal['orthogonal']:.2g} | "
              f"{name(orthogonal)} | {back['reconstruction']:.3g} |")


def write_json(path, head, correct, ranked, grid, wide):
    def case(row, *keys):
        return ({"case": row["family"]} if "family" in row else {}) | {k: row[k] for k in keys if k in row} | (
            {"residuals": residuals(row), "ok": row["ok"]} if "eigen" in row else {})

    families = {}
    for row in wide:
        families.setdefault(str(row["n"]), {})[row["family"]] = residuals(row)
    parts = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    for name, rows in (("correct", [case(r, "batch", "n", "cond") for r in correct]),
                       ("ranked", [case(r, "batch", "n", "cond", "ms", "error_ms", "rounds", "cusolver_ms")
                                   for r in ranked]),
                       ("grid", [case(r, "n", "batch", "ms", "cusolver_ms", "ratio") for r in grid])):
        parts.append(f' "{name}": [\n' + ",\n".join("  " + json.dumps(row) for row in rows) + "\n ]")
    orders = [f'  "{n}": {{\n' + ",\n".join(f"   {json.dumps(f)}: {json.dumps(v)}" for f, v in of.items()) + "\n  }"
              for n, of in families.items()]
    parts.append(' "wide": {\n' + ",\n".join(orders) + "\n }")
    with open(path, "w", encoding="utf-8") as out:
        out.write("{\n" + ",\n".join(parts) + "\n}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--json")
    parser.add_argument("--head")
    options = parser.parse_args()
    correct, ranked, grid, wide = read(options.files)
    for title, show, rows in (("Ranked cases", print_ranked, ranked), ("Grid", print_grid, grid),
                              ("Wide check", print_wide, wide)):
        if rows:
            print(f"## {title}")
            show(rows)
            print()
    if options.json:
        head = json.load(open(options.head, encoding="utf-8")) if options.head else {}
        write_json(options.json, head, correct, ranked, grid, wide)


main()
