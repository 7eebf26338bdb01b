#include "checks/eigh/parallel.h"

#include <cblas.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace crucible::eigh {

void ParallelFor(std::int64_t count, int threads, const std::function<void(std::int64_t)>& body) {
  std::atomic<std::int64_t> next{0};
  const auto work = [&] {
    for (std::int64_t i = next++; i < count; i = next++) body(i);
  };
  std::vector<std::jthread> others;
  const std::int64_t helpers = std::min<std::int64_t>(threads, count) - 1;
  for (std::int64_t t = 0; t < helpers; ++t) others.emplace_back(work);
  work();
}

SingleThreadedBlas::SingleThreadedBlas() : before_(openblas_get_num_threads()) {
  if (before_ != 1) openblas_set_num_threads(1);
}

SingleThreadedBlas::~SingleThreadedBlas() {
  if (before_ != 1) openblas_set_num_threads(before_);
}

}  // namespace crucible::eigh
