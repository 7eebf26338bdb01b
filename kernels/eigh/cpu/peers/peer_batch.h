// peer_batch.h: what the peers share: the C interface of eigh_cpu.h over a function that solves
// one matrix with somebody else's library.
//
// A peer defines kPeerName, peer_start() (called once before any solve), peer_bytes(n) of
// scratch for one thread (aligned to 64), and peer_solve(n, a, values, vectors, scratch), which
// reads the lower triangle of row-major a, writes as eigh_cpu.h says and returns 0 or an error.
// Included by one .cc file of each peer.
#ifndef CRUCIBLE_KERNELS_EIGH_CPU_PEERS_PEER_BATCH_H_
#define CRUCIBLE_KERNELS_EIGH_CPU_PEERS_PEER_BATCH_H_

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include "../eigh_cpu.h"

namespace {

const char* peer_configuration();
void peer_start();
size_t peer_bytes(int n);
int peer_solve(int n, const float* a, float* values, float* vectors, void* scratch);

int peer_threads(int64_t batch, int threads) {
  return static_cast<int>(std::min<int64_t>(batch, threads));
}

size_t peer_padded_bytes(int64_t n) { return (peer_bytes(static_cast<int>(n)) + 63) / 64 * 64; }

int32_t peer_one(int n, const float* a, float* values, float* vectors, void* scratch) {
  const size_t size = static_cast<size_t>(n) * n;
  bool finite = true;
  for (int i = 0; i < n && finite; ++i) {
    for (int j = 0; j <= i; ++j)
      finite = finite && std::isfinite(a[static_cast<size_t>(i) * n + j]);
  }
  const int32_t info = finite ? peer_solve(n, a, values, vectors, scratch) : -1;
  if (info != 0) {
    std::fill(values, values + n, std::numeric_limits<float>::quiet_NaN());
    std::fill(vectors, vectors + size, std::numeric_limits<float>::quiet_NaN());
  }
  return info < -1 ? 1 : info;
}

// The lower triangle of row-major a as a full symmetric matrix.
[[maybe_unused]] void peer_mirror(int n, const float* a, float* full) {
  constexpr int kTile = 16;
  for (int i = 0; i < n; i += kTile) {
    for (int j = 0; j <= i; j += kTile) {
      for (int r = i; r < std::min(i + kTile, n); ++r) {
        for (int c = j; c < std::min(j + kTile, r + 1); ++c) {
          full[static_cast<size_t>(r) * n + c] = full[static_cast<size_t>(c) * n + r] =
              a[static_cast<size_t>(r) * n + c];
        }
      }
    }
  }
}

[[maybe_unused]] void peer_transpose(int n, const float* from, float* to) {
  constexpr int kTile = 16;
  for (int i = 0; i < n; i += kTile) {
    for (int j = 0; j < n; j += kTile) {
      for (int r = i; r < std::min(i + kTile, n); ++r) {
        for (int c = j; c < std::min(j + kTile, n); ++c) {
          to[static_cast<size_t>(r) * n + c] = from[static_cast<size_t>(c) * n + r];
        }
      }
    }
  }
}

}  // namespace

extern "C" int eigh_cpu_abi(void) { return 1; }

extern "C" const char* eigh_cpu_configuration(void) { return peer_configuration(); }

extern "C" size_t eigh_cpu_workspace_bytes(int64_t batch, int64_t n, int threads) {
  if (batch <= 0 || n <= 0 || n > 40000 || threads < 1) return 0;
  return peer_threads(batch, threads) * peer_padded_bytes(n) + 64;
}

extern "C" int eigh_cpu_solve(int64_t batch, int64_t n, const float* a, float* eigenvalues,
                              float* eigenvectors, int32_t* info, void* workspace,
                              size_t workspace_bytes, int threads) {
  if (batch < 0 || n < 0 || n > 40000 || threads < 1) return 1;
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
  static const bool started = (peer_start(), true);
  (void)started;

  char* base = static_cast<char*>(workspace);
  base += (64 - reinterpret_cast<uintptr_t>(base) % 64) % 64;
  const size_t size = static_cast<size_t>(n) * n;
  std::atomic<int64_t> next{0};
  auto work = [&](int worker) {
    for (int64_t i; (i = next.fetch_add(1)) < batch;) {
      info[i] = peer_one(static_cast<int>(n), a + i * size, eigenvalues + i * n,
                         eigenvectors + i * size, base + worker * peer_padded_bytes(n));
    }
  };
  std::vector<std::thread> others;
  for (int worker = 1; worker < peer_threads(batch, threads); ++worker) {
    others.emplace_back(work, worker);
  }
  work(0);
  for (std::thread& other : others) other.join();
  return 0;
}

#endif  // CRUCIBLE_KERNELS_EIGH_CPU_PEERS_PEER_BATCH_H_
