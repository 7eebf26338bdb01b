// solvers.h: this library and the routes of cuSOLVER behind one interface, for side-by-side runs.
//
// A solver owns its workspace for one shape. `solve` reads `a` and writes lambda and q
// (column-major for cuSOLVER, which overwrites its input: `prepare` copies it first, outside the
// timing).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device.h"

namespace crucible::eigh::bench {

class Solver {
 public:
  virtual ~Solver() = default;
  virtual const char* name() const = 0;
  virtual void prepare(const float* a) { (void)a; }
  virtual void solve(const float* a, float* lambda, float* q, cudaStream_t stream) = 0;
  // The part of the batch that solve() works on; a loop is timed on a part and scaled up.
  virtual double fraction() const { return 1; }
};

// This library. `bytes` receives the workspace size.
class Crucible final : public Solver {
 public:
  Crucible(int64_t batch, int n, int flags = 0);
  const char* name() const override { return "crucible"; }
  void solve(const float* a, float* lambda, float* q, cudaStream_t stream) override;
  size_t workspace_bytes() const { return workspace_.size(); }
  void poison() { workspace_.poison(); }
  std::vector<int32_t> info() const { return info_.read(); }

 private:
  int64_t batch_;
  int n_, flags_;
  Device<char> workspace_;
  Device<int32_t> info_;
};

// cusolverDnXsyevBatched, cusolverDnSsyevjBatched, a loop of cusolverDnXsyevd over at most
// `loop_max` matrices.
std::vector<std::unique_ptr<Solver>> cusolver_routes(int64_t batch, int n, int64_t loop_max);

}  // namespace crucible::eigh::bench
