// eigh_cpu.cc: the C interface: argument checks, choice of the size class, threads over the batch.
//
// The caller's thread works too, so one thread starts none. Threads live for one call: a library
// that is opened and closed again by a harness must leave none behind.
#include "eigh_cpu.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "size_class.h"

namespace eigh_cpu {
namespace {

constexpr size_t kAlignment = 64;

const SizeClass* class_of(int64_t n) {
  for (const SizeClass* c : {&kSmall, &kMedium, &kLarge}) {
    if (n <= c->n_max) return c;
  }
  return nullptr;
}

int threads_used(int64_t batch, int threads) {
  return static_cast<int>(std::min<int64_t>(batch, threads));
}

size_t bytes_per_thread(const SizeClass& size_class, int64_t n) {
  const size_t bytes = size_class.workspace_bytes(static_cast<int>(n));
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace
}  // namespace eigh_cpu

using namespace eigh_cpu;

extern "C" int eigh_cpu_abi(void) { return 1; }

extern "C" const char* eigh_cpu_configuration(void) {
  static const std::string text = std::string("{\"compiler\":\"" __VERSION__ "\",\"small\":") +
                                  kSmall.configuration + ",\"medium\":" + kMedium.configuration +
                                  ",\"large\":" + kLarge.configuration + "}";
  return text.c_str();
}

extern "C" size_t eigh_cpu_workspace_bytes(int64_t batch, int64_t n, int threads) {
  if (batch <= 0 || n <= 0 || threads < 1 || class_of(n) == nullptr) return 0;
  return threads_used(batch, threads) * bytes_per_thread(*class_of(n), n) + kAlignment;
}

extern "C" int eigh_cpu_solve(int64_t batch, int64_t n, const float* a, float* eigenvalues,
                              float* eigenvectors, int32_t* info, void* workspace,
                              size_t workspace_bytes, int threads) {
  if (batch < 0 || n < 0 || threads < 1 || (n > 0 && class_of(n) == nullptr)) return 1;
  if (batch == 0) return 0;
  if (info == nullptr) return 2;
  if (n == 0) {
    std::fill(info, info + batch, 0);
    return 0;
  }
  if (a == nullptr || eigenvalues == nullptr || eigenvectors == nullptr || workspace == nullptr) {
    return 2;
  }
  if (workspace_bytes < eigh_cpu_workspace_bytes(batch, n, threads)) return 3;

  const SizeClass& size_class = *class_of(n);
  const int count = threads_used(batch, threads);
  const size_t bytes = bytes_per_thread(size_class, n);
  char* base = static_cast<char*>(workspace);
  base += (kAlignment - reinterpret_cast<uintptr_t>(base) % kAlignment) % kAlignment;
  std::atomic<int64_t> next{0};
  const int64_t chunk = size_class.batch_chunk > 0 ? size_class.batch_chunk : 0;
  auto solve = [&](int64_t first, int64_t last, int worker) {
    size_class.solve(static_cast<int>(n), first, last, a, eigenvalues, eigenvectors, info,
                     base + worker * bytes);
  };
  auto work = [&](int worker) {
    if (chunk == 0) {
      solve(batch * worker / count, batch * (worker + 1) / count, worker);
      return;
    }
    for (int64_t first; (first = next.fetch_add(chunk)) < batch;) {
      solve(first, std::min(first + chunk, batch), worker);
    }
  };
  std::vector<std::thread> others;
  others.reserve(count);
  int started = 1;
  try {
    for (; started < count; ++started) others.emplace_back(work, started);
  } catch (const std::system_error&) {
    // No more threads to be had: the caller does what they would have done.
  }
  work(0);
  for (int worker = started; worker < count; ++worker) work(worker);
  for (std::thread& other : others) other.join();
  return 0;
}
