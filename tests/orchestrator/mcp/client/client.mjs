// client.mjs: the protocol's official client against `crucible mcp`: says "ok" when all of it holds.
//
//   node client.mjs CRUCIBLE ARGUMENT…
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [command, ...args] = process.argv.slice(2);
const transport = new StdioClientTransport({
  command,
  args,
  env: { ...process.env, TOY_API_KEY: "sk-very-secret" },
});
const client = new Client({ name: "crucible-test", version: "1.0.0" });
await client.connect(transport);

const text = (result) => result.content.map((part) => part.text).join("");
const call = (name, parameters, options) =>
  client.callTool({ name, arguments: parameters }, undefined, options);

assert.equal(client.getServerVersion().name, "crucible");
assert.match(client.getInstructions(), /log_experiment/);
await client.ping();

const { tools } = await client.listTools();
const names = tools.map((tool) => tool.name);
for (const name of ["read_file", "edit_file", "run_command", "compare", "log_experiment", "report"])
  assert.ok(names.includes(name), `${name} is missing from ${names}`);
assert.deepEqual(tools.find((tool) => tool.name === "read_file").inputSchema.required, ["path"]);

let result = await call("read_file", { path: "kernel/k.cc" });
assert.match(text(result), /int speed = 1;/);
assert.ok(!result.isError);

result = await call("read_file", { path: "../../../../etc/passwd" });
assert.ok(result.isError);
result = await call("read_file", { file: "kernel/k.cc" });
assert.ok(result.isError);
assert.match(text(result), /no argument "file"/);
await assert.rejects(call("no_such_tool", {}), /no tool no_such_tool/);

result = await call("run_command", { command: "env" });
assert.ok(!text(result).includes("sk-very-secret"));

// A long call tells of itself, and ends when it is cancelled.
const abort = new AbortController();
const started = Date.now();
await assert.rejects(
  call("run_command", { command: "sleep 100" }, {
    signal: abort.signal,
    onprogress: () => abort.abort("enough"),
  }),
);
assert.ok(Date.now() - started < 60_000);
result = await call("run_command", { command: "echo again" });
assert.match(text(result), /again/);

await call("edit_file", { path: "kernel/k.cc", old_text: "speed = 1", new_text: "speed = 2" });
result = await call("compare", { rule: "claim" });
assert.match(text(result), /verdict: accepted/);
result = await call("log_experiment", { mechanism: "speed", hypothesis: "faster" });
assert.match(text(result), /logged as \[e1\]: win/);
result = await call("commit", { message: "Raise the speed" });
assert.match(text(result), /committed/);
result = await call("report", { outcome: "candidate", report: "# Faster" });
assert.match(text(result), /the mission ends: candidate/);

await client.close();
console.log("ok");
