// eigh_cuda_bench: this library and cuSOLVER side by side on one GPU, in one run.
//
//   eigh_cuda_bench [correct] [ranked] [grid] [wide] [peers] [draws N] [min N] [max N]
//                   [seed S] [json FILE] [once BATCH N FAMILY] [repeat N]
//
// correct  the 39 correctness cases;  ranked  the 13 ranked cases by their timing rule, then (with
// `peers`) every cuSOLVER route on the same input;  grid  n in 2 ... 2048 times batch in 1 ... 4096
// against the best cuSOLVER route;  wide  every wide family, N draws each (10), at the orders of
// the wide check. min and max bound the orders of grid and wide. Gates are evaluated in FP64;
// outputs and workspace are poisoned with NaN first. once solves one batch (repeat N: once to warm
// up and N times, 2; repeat 0: a single time) and checks it, for profilers and sanitizers. Each
// result is one line of JSON in FILE. Exit status 1 where a gate fails.
#include <cinttypes>
#include <cmath>
#include <cstring>
#include <random>

#include "families.h"
#include "judge.h"
#include "solvers.h"

namespace crucible::eigh::bench {
namespace {

struct Options {
  bool correct = false, ranked = false, grid = false, wide = false, peers = false;
  int draws = 10, order_min = 1, order_max = 2048, repeat = 2;
  Case once;
  uint64_t seed = 0;
  std::FILE* json = nullptr;
};

struct Buffers {
  Device<float> a, lambda, q;
  Buffers(int64_t batch, int n) : a(batch * n * n), lambda(batch * n), q(batch * n * n) {}
  void poison() {
    lambda.poison();
    q.poison();
  }
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Median time of a call in ms; between calls the solver prepares its input and `cold` clears L2.
double time_calls(Solver& solver, const Buffers& b, int rounds, Device<char>* cold) {
  std::vector<double> times;
  double spent = 0;
  Event begin, end;
  for (int k = 0; k <= rounds; ++k) {
    solver.prepare(b.a.get());
    if (cold != nullptr) check(cudaMemset(cold->get(), k, cold->size()), "clear L2");
    check(cudaDeviceSynchronize(), "wait");
    begin.record();
    solver.solve(b.a.get(), b.lambda.get(), b.q.get(), nullptr);
    end.record();
    const double ms = end.since(begin) / solver.fraction();
    spent += ms * solver.fraction();
    if (k > 0 || rounds == 0 || spent > 300) times.push_back(ms);  // the first call warms up
    if (spent > 300) break;
  }
  return median(times);
}

bool report(const char* set, const Case& c, const Verdict& v, bool ok, Options& options) {
  if (options.json != nullptr) {
    std::fprintf(options.json,
                 "{\"set\":\"%s\",\"family\":\"%s\",\"batch\":%" PRId64
                 ",\"n\":%d,\"cond\":%g,\"eigen\":%.4g,\"orthogonal\":%.4g,"
                 "\"reconstruction\":%.4g,\"ok\":%s}\n",
                 set, c.family.c_str(), c.batch, c.n, c.cond, std::min(v.eigen, 1e30),
                 std::min(v.orthogonal, 1e30), std::min(v.reconstruction, 1e30),
                 ok ? "true" : "false");
    std::fflush(options.json);
  }
  return ok;
}

// Solves once with everything poisoned and judges. The input must come back unchanged.
Verdict solve_and_judge(const Case& c, uint64_t seed, bool* ok) {
  Buffers b(c.batch, c.n);
  generate(c, seed, b.a.get());
  const std::vector<float> before = b.a.read();
  Crucible solver(c.batch, c.n);
  solver.solve(b.a.get(), b.lambda.get(), b.q.get(), nullptr);
  check(cudaDeviceSynchronize(), "solve");
  const Verdict v = judge(c.batch, c.n, b.a.get(), b.lambda.get(), b.q.get());
  const std::vector<float> after = b.a.read();
  *ok = v.passes() && std::memcmp(before.data(), after.data(), before.size() * 4) == 0;
  for (const int32_t code : solver.info()) *ok = *ok && code == 0;
  return v;
}

int run_correct(Options& options) {
  int failed = 0;
  Verdict most;
  for (size_t k = 0; k < correctness_cases().size(); ++k) {
    const Case& c = correctness_cases()[k];
    bool ok = false;
    const Verdict v = solve_and_judge(c, options.seed + k, &ok);
    most.merge(v);
    failed += !report("correct", c, v, ok, options);
    std::printf("%s %-30s %4" PRId64 " x %-5d %8.2f %8.2f %8.2f\n", ok ? "ok  " : "FAIL",
                c.family.c_str(), c.batch, c.n, v.eigen, v.orthogonal, v.reconstruction);
  }
  std::printf("correct: %zu of %zu, worst %.1f/200 %.1f/100 %.1f/400\n",
              correctness_cases().size() - failed, correctness_cases().size(), most.eigen,
              most.orthogonal, most.reconstruction);
  return failed;
}

int run_wide(Options& options) {
  int failed = 0, total = 0;
  for (const int n : {1,   2,   3,   31,  32,  33,  64,  100, 128,  129,
                      176, 177, 256, 257, 352, 511, 512, 513, 1024, 2048}) {
    if (n < options.order_min || n > options.order_max) continue;
    Verdict most;
    std::string eigen_family, orthogonal_family;
    Event begin, end;
    begin.record();
    for (const std::string& family : wide_families()) {
      const Case c{options.draws, n, 2, family};
      bool ok = false;
      const Verdict v = solve_and_judge(c, options.seed, &ok);
      if (v.eigen > most.eigen) eigen_family = family;
      if (v.orthogonal > most.orthogonal) orthogonal_family = family;
      most.merge(v);
      ++total;
      failed += !report("wide", c, v, ok, options);
      if (!ok) {
        std::printf("FAIL wide %s n %d: %.4g %.4g %.4g (matrix %" PRId64 ")\n", family.c_str(), n,
                    v.eigen, v.orthogonal, v.reconstruction, v.worst);
      }
    }
    end.record();
    std::printf("wide n %4d: worst %.1f/200 (%s) %.1f/100 (%s) %.1f/400, %.1f s\n", n, most.eigen,
                eigen_family.c_str(), most.orthogonal, orthogonal_family.c_str(),
                most.reconstruction, end.since(begin) / 1e3);
    std::fflush(stdout);
  }
  std::printf("wide: %d of %d family-order pairs fail\n", failed, total);
  return failed;
}

struct Timing {
  double ms = 0, error_ms = 0;
  int rounds = 0;
};

// The ranked timing rule. `verdict` collects every output of every round.
Timing time_ranked(const Case& c, uint64_t seed, Device<char>& cold, Verdict* verdict) {
  const int64_t bytes = c.batch * c.n * c.n * 4;
  const int count = static_cast<int>(std::clamp<int64_t>((256 << 20) / bytes, 1, 50));
  std::vector<Buffers> sets;
  for (int k = 0; k < count; ++k) {
    sets.emplace_back(c.batch, c.n);
    generate(c, seed + 42 * (k + 1), sets[k].a.get());
  }
  Crucible solver(c.batch, c.n);
  const auto solve_all = [&] {
    for (auto& set : sets) {
      solver.solve(set.a.get(), set.lambda.get(), set.q.get(), nullptr);
    }
  };
  const auto judge_all = [&] {
    for (auto& set : sets) {
      verdict->merge(judge(c.batch, c.n, set.a.get(), set.lambda.get(), set.q.get()));
    }
  };
  solve_all();
  judge_all();
  Timing timing;
  std::vector<double> times;
  double spent = 0;
  for (timing.rounds = 0; timing.rounds < 40;) {
    for (auto& set : sets) set.poison();
    check(cudaMemset(cold.get(), timing.rounds, cold.size()), "clear L2");
    check(cudaDeviceSynchronize(), "wait");
    Event begin, end;
    begin.record();
    solve_all();
    end.record();
    times.push_back(end.since(begin) / count);
    spent += times.back() * count;
    judge_all();
    ++timing.rounds;
    double mean = 0, square = 0;
    for (const double t : times) mean += t / times.size();
    for (const double t : times) square += (t - mean) * (t - mean);
    timing.ms = mean;
    timing.error_ms = std::sqrt(square / times.size() / std::max<size_t>(1, times.size() - 1));
    if (timing.rounds >= 3 && spent > 100 && timing.error_ms < 0.001 * mean) break;
    if (timing.rounds >= 3 && spent > 1000) break;
  }
  return timing;
}

int run_ranked(Options& options) {
  Device<char> cold(256 << 20);
  double log_sum = 0, log_peer = 0;
  int failed = 0;
  for (size_t k = 0; k < ranked_cases().size(); ++k) {
    const Case& c = ranked_cases()[k];
    Verdict v;
    const Timing t = time_ranked(c, options.seed, cold, &v);
    log_sum += std::log(t.ms);
    failed += !v.passes();
    std::string peers;
    double best = 0;
    if (options.peers) {
      Buffers b(c.batch, c.n);
      generate(c, options.seed + 42, b.a.get());
      for (auto& route : cusolver_routes(c.batch, c.n, 8)) {
        if (c.n >= 512 && std::strcmp(route->name(), "SsyevjBatched") == 0) continue;  // hopeless
        const double ms = time_calls(*route, b, 3, &cold);
        char text[160];
        std::snprintf(text, sizeof text, "%s\"%s%s\":%.5g", peers.empty() ? "" : ",", route->name(),
                      route->fraction() < 1 ? " (8, scaled)" : "", ms);
        peers += text;
        if (best == 0 || ms < best) best = ms;
      }
      log_peer += std::log(best);
    }
    std::printf("%s %-22s %4" PRId64
                " x %-5d %9.4f ms +- %.4f (%d)  best cuSOLVER %9.3f (%.2fx)  "
                "%.1f %.2f %.1f\n",
                v.passes() ? "ok  " : "FAIL", c.family.c_str(), c.batch, c.n, t.ms, t.error_ms,
                t.rounds, best, best / t.ms, v.eigen, v.orthogonal, v.reconstruction);
    std::fflush(stdout);
    if (options.json != nullptr) {
      std::fprintf(options.json,
                   "{\"set\":\"ranked\",\"family\":\"%s\",\"batch\":%" PRId64
                   ",\"n\":%d,\"cond\":%g,\"ms\":%.6g,\"error_ms\":%.3g,\"rounds\":%d,"
                   "\"cusolver_ms\":{%s},\"eigen\":%.4g,\"orthogonal\":%.4g,"
                   "\"reconstruction\":%.4g,\"ok\":%s}\n",
                   c.family.c_str(), c.batch, c.n, c.cond, t.ms, t.error_ms, t.rounds,
                   peers.c_str(), v.eigen, v.orthogonal, v.reconstruction,
                   v.passes() ? "true" : "false");
      std::fflush(options.json);
    }
  }
  const double cases = static_cast<double>(ranked_cases().size());
  std::printf("ranked: geometric mean %.4f ms", std::exp(log_sum / cases));
  if (options.peers) std::printf(", best cuSOLVER %.3f ms", std::exp(log_peer / cases));
  std::printf("\n");
  return failed;
}

// A route is skipped where its last time, scaled to this batch, is past this.
constexpr double kPeerTimeMaxMs = 1000;
constexpr int64_t kGridBytesMax = int64_t{4} << 30;

void run_grid(Options& options) {
  constexpr int kRoutes = 3;
  int points = 0, slower = 0;
  double worst = 1e30;
  for (const int n : {2,  3,   4,   6,   8,   12,  16,  24,  31,  32,   33,   48,  64,
                      96, 128, 129, 176, 192, 256, 352, 512, 768, 1024, 1536, 2048}) {
    if (n < options.order_min || n > options.order_max) continue;
    double last[kRoutes] = {};
    int64_t last_batch = 1;
    for (const int64_t batch : {1, 4, 16, 64, 256, 1024, 4096}) {
      if (batch * n * n * 4 > kGridBytesMax) break;
      Buffers b(batch, n);
      generate({batch, n, 1, "dense"}, options.seed, b.a.get());
      double mine, best = 0;
      {
        Crucible solver(batch, n);
        mine = time_calls(solver, b, 7, nullptr);
      }
      const char* best_name = "none";
      std::string peers;
      auto routes = cusolver_routes(batch, n, 4);
      // Routes that will be far from the best are left out, the likely best one only over the limit.
      double expected[kRoutes];
      for (int k = 0; k < kRoutes; ++k)
        expected[k] = last[k] * (batch / last_batch) * (k == 2 ? 1 : 0.5);
      const double least = *std::min_element(expected, expected + kRoutes);
      for (int k = 0; k < kRoutes; ++k) {
        const bool far = expected[k] > least && expected[k] > 20 * mine && expected[k] > 50;
        if (expected[k] > kPeerTimeMaxMs || far) {
          last[k] *= batch / last_batch;
          continue;
        }
        last[k] = time_calls(*routes[k], b, k == 2 ? 3 : 5, nullptr);
        char text[80];
        std::snprintf(text, sizeof text, "%s\"%s\":%.5g", peers.empty() ? "" : ",",
                      routes[k]->name(), last[k]);
        peers += text;
        if (best == 0 || last[k] < best) best = last[k], best_name = routes[k]->name();
      }
      last_batch = batch;
      ++points;
      const double ratio = best > 0 ? best / mine : 0;
      const bool loses = best > 0 && ratio < 1 / 1.05;
      slower += loses;
      if (best > 0) worst = std::min(worst, ratio);
      std::printf("grid n %4d batch %4" PRId64 ": %9.4f ms, cuSOLVER %9.4f (%s) %6.2fx%s\n", n,
                  batch, mine, best, best_name, ratio, loses ? "  SLOWER" : "");
      std::fflush(stdout);
      if (options.json != nullptr) {
        std::fprintf(options.json,
                     "{\"set\":\"grid\",\"n\":%d,\"batch\":%" PRId64
                     ",\"ms\":%.6g,\"cusolver_ms\":{%s},\"ratio\":%.4g}\n",
                     n, batch, mine, peers.c_str(), ratio);
        std::fflush(options.json);
      }
    }
  }
  std::printf(
      "grid: %d points, %d slower than the best cuSOLVER by more than 5 %%, least ratio "
      "%.2f\n",
      points, slower, worst);
}

int run_once(const Options& options) {
  const Case& c = options.once;
  Buffers b(c.batch, c.n);
  generate(c, options.seed, b.a.get());
  Crucible solver(c.batch, c.n);
  const double ms = time_calls(solver, b, options.repeat, nullptr);
  const Verdict v = judge(c.batch, c.n, b.a.get(), b.lambda.get(), b.q.get());
  std::printf("once %s %" PRId64 " x %d: %.4f ms, %.2f %.2f %.2f, workspace %.1f MiB\n",
              c.family.c_str(), c.batch, c.n, ms, v.eigen, v.orthogonal, v.reconstruction,
              solver.workspace_bytes() / 1048576.0);
  return v.passes() ? 0 : 1;
}

Options parse(int count, char** words) {
  Options options;
  options.seed = std::random_device{}() & 0xffffff;
  for (int k = 1; k < count; ++k) {
    const std::string word = words[k];
    const char* next = k + 1 < count ? words[k + 1] : nullptr;
    if (word == "correct")
      options.correct = true;
    else if (word == "ranked")
      options.ranked = true;
    else if (word == "grid")
      options.grid = true;
    else if (word == "wide")
      options.wide = true;
    else if (word == "peers")
      options.peers = true;
    else if (word == "once" && k + 3 < count) {
      options.once = {std::atoll(words[k + 1]), std::atoi(words[k + 2]), 1, words[k + 3]};
      k += 3;
    } else if (word == "draws" && next)
      options.draws = std::atoi(next), ++k;
    else if (word == "max" && next)
      options.order_max = std::atoi(next), ++k;
    else if (word == "min" && next)
      options.order_min = std::atoi(next), ++k;
    else if (word == "repeat" && next)
      options.repeat = std::atoi(next), ++k;
    else if (word == "seed" && next)
      options.seed = std::strtoull(next, nullptr, 10), ++k;
    else if (word == "json" && next)
      options.json = std::fopen(next, "a"), ++k;
    else {
      std::fprintf(stderr, "eigh_cuda_bench: '%s' is not an option; see the head of the source\n",
                   word.c_str());
      std::exit(2);
    }
  }
  return options;
}

}  // namespace
}  // namespace crucible::eigh::bench

int main(int count, char** words) {
  using namespace crucible::eigh::bench;
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("skipped: no CUDA device on this machine\n");
    return 77;
  }
  Options options = parse(count, words);
  std::printf("seed %" PRIu64 "\n", options.seed);
  int failed = 0;
  if (options.correct) failed += run_correct(options);
  if (options.ranked) failed += run_ranked(options);
  if (options.wide) failed += run_wide(options);
  if (options.once.n > 0) failed += run_once(options);
  if (options.grid) run_grid(options);
  return failed > 0;
}
