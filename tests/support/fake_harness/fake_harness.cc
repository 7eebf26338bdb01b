// A harness without a kernel: speaks docs/target_protocol.md and makes its times up, so that a test
// of the judge takes milliseconds and repeats. Deliberately free of the project's own code.
//
//   fake_harness PLAN
//
// PLAN is a text file of "key value" lines: time_us (100), noise (0.002: deviation of one slot, in
// log), drift (0: added to the log time per slot, starting
// over after 40), sha (the plan's text), target
// (fake), sm_mhz (the SM clock that slots report; none),
// mode: ok | crash_hello | crash_check | crash_slot | hang_slot | malformed_slot |
// unverified | wrong_check | refuse_prepare | throttled | old_protocol | no_target. With "only
// NAME" the mode acts on that case alone; "time_us.NAME" is the time of that case.
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <random>
#include <sstream>
#include <string>

namespace {

std::map<std::string, std::string> plan;
std::string plan_text;

double Number(const std::string& key, double fallback) {
  const auto found = plan.find(key);
  return found == plan.end() ? fallback : std::stod(found->second);
}

// The raw value of "key": in a flat request; enough for what the judge sends.
std::string Field(const std::string& line, const std::string& key) {
  const auto at = line.find("\"" + key + "\":");
  if (at == std::string::npos) return "";
  auto begin = at + key.size() + 3;
  if (line[begin] == '"') return line.substr(begin + 1, line.find('"', begin + 1) - begin - 1);
  return line.substr(begin, line.find_first_of(",}", begin) - begin);
}

void Reply(const std::string& text) {
  const std::string line = text + "\n";
  const int fd = std::atoi(std::getenv("CRUCIBLE_REPLY_FD"));
  if (write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size())) std::exit(9);
}

std::string ReadLine() {
  static const int fd = std::atoi(std::getenv("CRUCIBLE_REQUEST_FD"));
  std::string line;
  char c = 0;
  while (read(fd, &c, 1) == 1) {
    if (c == '\n') return line;
    line.push_back(c);
  }
  std::exit(0);
}

}  // namespace

int main(int, char** argv) {
  std::ifstream file(argv[1]);
  for (std::string line; std::getline(file, line);) {
    plan_text += line + ";";
    std::istringstream words(line);
    std::string key, value;
    if (words >> key >> value) plan[key] = value;
  }
  const std::string sha = plan.count("sha") ? plan["sha"] : plan_text;
  std::string case_name;
  const auto acts = [&](const std::string& mode) {
    return plan["mode"] == mode && (!plan.count("only") || plan["only"] == case_name);
  };
  std::mt19937_64 random;
  int slots = 0;
  for (;;) {
    const std::string line = ReadLine();
    const std::string op = Field(line, "op");
    if (line.find("\"case\":") != std::string::npos) case_name = Field(line, "name");
    if (op == "hello") {
      if (acts("crash_hello")) std::abort();
      Reply("{\"ok\":true,\"protocol\":" + std::string(acts("old_protocol") ? "7" : "1") +
            ",\"target\":\"" +
            (acts("no_target")      ? "other"
             : plan.count("target") ? plan["target"]
                                    : "fake") +
            "\",\"conditions\":{\"compiler\":\"none\"},\"configuration\":{\"width\":8}," +
            "\"library_sha256\":\"" + sha + "\"}");
    } else if (op == "check") {
      if (acts("crash_check")) {
        std::fprintf(stderr, "about to read past the end\n");
        std::abort();
      }
      Reply(acts("wrong_check")
                ? R"({"ok":true,"pass":false,"margins":{"eigen":812},"limits":{"eigen":200},)"
                  R"("worst":{"eigen":2},"reason":"eigen residual 812, limit 200"})"
                : R"({"ok":true,"pass":true,"margins":{"eigen":0.8},"limits":{"eigen":200},)"
                  R"("worst":{"eigen":1},"reason":""})");
    } else if (op == "prepare") {
      if (acts("refuse_prepare")) {
        Reply(R"({"ok":false,"error":"input 3: orthogonality 512, limit 100"})");
        continue;
      }
      random.seed(std::strtoull(Field(line, "seed").c_str(), nullptr, 10) ^
                  std::hash<std::string>()(plan_text));
      Reply(R"({"ok":true,"inputs":7,"bytes":1000})");
    } else if (op == "slot") {
      ++slots;
      if (acts("crash_slot")) std::abort();
      if (acts("hang_slot"))
        for (;;) pause();
      if (acts("malformed_slot")) {
        Reply("calls 31, median 3120.5");
        continue;
      }
      const double time_us = Number("time_us." + case_name, Number("time_us", 100));
      std::normal_distribution<double> noise(0, Number("noise", 0.002));
      const double median = time_us * std::exp(noise(random) + Number("drift", 0) * (slots % 40));
      char text[400];
      std::snprintf(text, sizeof text,
                    "{\"ok\":true,\"calls\":31,\"median_us\":%.9g,\"mean_us\":%.9g,\"min_us\":%.9g,"
                    "\"wall_us\":%.9g,\"verified\":%s,\"throttled\":%s,\"clock\":\"unlocked\",%s"
                    "\"reason\":\"%s\"}",
                    median, median, median, 31 * median, acts("unverified") ? "false" : "true",
                    acts("throttled") ? "true" : "false",
                    plan.count("sm_mhz") ? ("\"sm_mhz\":" + plan["sm_mhz"] + ",").c_str() : "",
                    acts("unverified") ? "output 5 holds NaN" : "");
      Reply(text);
    } else {
      Reply("{\"ok\":true}");
      return 0;
    }
  }
}
