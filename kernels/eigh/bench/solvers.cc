// solvers.cc: calls of crucible_eigh and cuSOLVER.
#include "solvers.h"

#include <cusolverDn.h>

#include "crucible/eigh.h"

namespace crucible::eigh::bench {
namespace {

void check_solver(cusolverStatus_t status, const char* what) {
  if (status == CUSOLVER_STATUS_SUCCESS) return;
  std::fprintf(stderr, "%s: cuSOLVER status %d\n", what, static_cast<int>(status));
  std::exit(2);
}

class Cusolver : public Solver {
 public:
  Cusolver(int64_t batch, int n) : batch_(batch), n_(n), copy_(batch * n * n), info_(batch) {
    check_solver(cusolverDnCreate(&handle_), "create a handle");
    check_solver(cusolverDnCreateParams(&parameters_), "create parameters");
  }
  ~Cusolver() override {
    cusolverDnDestroyParams(parameters_);
    cusolverDnDestroy(handle_);
  }
  void prepare(const float* a) override {
    check(cudaMemcpy(copy_.get(), a, copy_.size() * sizeof(float), cudaMemcpyDeviceToDevice),
          "copy an input");
  }

 protected:
  static constexpr cusolverEigMode_t kVectors = CUSOLVER_EIG_MODE_VECTOR;
  static constexpr cublasFillMode_t kLower = CUBLAS_FILL_MODE_LOWER;
  int64_t batch_;
  int n_;
  Device<float> copy_;
  Device<int> info_;
  Device<char> workspace_;
  std::vector<char> host_workspace_;
  cusolverDnHandle_t handle_ = nullptr;
  cusolverDnParams_t parameters_ = nullptr;
};

class SyevBatched final : public Cusolver {
 public:
  SyevBatched(int64_t batch, int n) : Cusolver(batch, n) {
    size_t device = 0, host = 0;
    check_solver(cusolverDnXsyevBatched_bufferSize(handle_, parameters_, kVectors, kLower, n,
                                                   CUDA_R_32F, copy_.get(), n, CUDA_R_32F,
                                                   copy_.get(), CUDA_R_32F, &device, &host, batch),
                 "XsyevBatched_bufferSize");
    workspace_ = Device<char>(device);
    host_workspace_.resize(host);
  }
  const char* name() const override { return "XsyevBatched"; }
  void solve(const float*, float* lambda, float*, cudaStream_t stream) override {
    check_solver(cusolverDnSetStream(handle_, stream), "set the stream");
    check_solver(cusolverDnXsyevBatched(handle_, parameters_, kVectors, kLower, n_, CUDA_R_32F,
                                        copy_.get(), n_, CUDA_R_32F, lambda, CUDA_R_32F,
                                        workspace_.get(), workspace_.size(), host_workspace_.data(),
                                        host_workspace_.size(), info_.get(), batch_),
                 "XsyevBatched");
  }
};

class SyevjBatched final : public Cusolver {
 public:
  SyevjBatched(int64_t batch, int n) : Cusolver(batch, n) {
    check_solver(cusolverDnCreateSyevjInfo(&jacobi_), "create syevj parameters");
    int floats = 0;
    check_solver(
        cusolverDnSsyevjBatched_bufferSize(handle_, kVectors, kLower, n, copy_.get(), n,
                                           copy_.get(), &floats, jacobi_, static_cast<int>(batch)),
        "SsyevjBatched_bufferSize");
    workspace_ = Device<char>(static_cast<size_t>(floats) * sizeof(float));
    floats_ = floats;
  }
  ~SyevjBatched() override { cusolverDnDestroySyevjInfo(jacobi_); }
  const char* name() const override { return "SsyevjBatched"; }
  void solve(const float*, float* lambda, float*, cudaStream_t stream) override {
    check_solver(cusolverDnSetStream(handle_, stream), "set the stream");
    check_solver(cusolverDnSsyevjBatched(handle_, kVectors, kLower, n_, copy_.get(), n_, lambda,
                                         reinterpret_cast<float*>(workspace_.get()), floats_,
                                         info_.get(), jacobi_, static_cast<int>(batch_)),
                 "SsyevjBatched");
  }

 private:
  syevjInfo_t jacobi_ = nullptr;
  int floats_ = 0;
};

class SyevdLoop final : public Cusolver {
 public:
  SyevdLoop(int64_t batch, int n, int64_t loop_max)
      : Cusolver(batch, n), count_(std::min(batch, loop_max)) {
    size_t device = 0, host = 0;
    check_solver(cusolverDnXsyevd_bufferSize(handle_, parameters_, kVectors, kLower, n, CUDA_R_32F,
                                             copy_.get(), n, CUDA_R_32F, copy_.get(), CUDA_R_32F,
                                             &device, &host),
                 "Xsyevd_bufferSize");
    workspace_ = Device<char>(device);
    host_workspace_.resize(host);
  }
  const char* name() const override { return "loop of Xsyevd"; }
  double fraction() const override { return static_cast<double>(count_) / batch_; }
  void solve(const float*, float* lambda, float*, cudaStream_t stream) override {
    check_solver(cusolverDnSetStream(handle_, stream), "set the stream");
    const int64_t square = static_cast<int64_t>(n_) * n_;
    for (int64_t b = 0; b < count_; ++b) {
      check_solver(
          cusolverDnXsyevd(handle_, parameters_, kVectors, kLower, n_, CUDA_R_32F,
                           copy_.get() + b * square, n_, CUDA_R_32F, lambda + b * n_, CUDA_R_32F,
                           workspace_.get(), workspace_.size(), host_workspace_.data(),
                           host_workspace_.size(), info_.get() + b),
          "Xsyevd");
    }
  }

 private:
  int64_t count_;
};

size_t workspace_of(int64_t batch, int n, int flags) {
  size_t bytes = 0;
  if (crucible_eigh_workspace(n, batch, flags, &bytes) != CRUCIBLE_EIGH_OK) {
    std::fprintf(stderr, "ask for the workspace of %ld x %d: invalid argument\n",
                 static_cast<long>(batch), n);
    std::exit(2);
  }
  return bytes;
}

}  // namespace

Crucible::Crucible(int64_t batch, int n, int flags)
    : batch_(batch),
      n_(n),
      flags_(flags),
      workspace_(workspace_of(batch, n, flags)),
      info_(batch) {}

void Crucible::solve(const float* a, float* lambda, float* q, cudaStream_t stream) {
  const auto status = crucible_eigh(n_, batch_, a, lambda, q, info_.get(), workspace_.get(),
                                    workspace_.size(), flags_, stream);
  if (status == CRUCIBLE_EIGH_OK) return;
  std::fprintf(stderr, "solve %ld x %d: %s (CUDA error %d)\n", static_cast<long>(batch_), n_,
               crucible_eigh_status_string(status), crucible_eigh_last_cuda_error());
  std::exit(2);
}

std::vector<std::unique_ptr<Solver>> cusolver_routes(int64_t batch, int n, int64_t loop_max) {
  std::vector<std::unique_ptr<Solver>> routes;
  routes.push_back(std::make_unique<SyevBatched>(batch, n));
  routes.push_back(std::make_unique<SyevjBatched>(batch, n));
  routes.push_back(std::make_unique<SyevdLoop>(batch, n, loop_max));
  return routes;
}

}  // namespace crucible::eigh::bench
