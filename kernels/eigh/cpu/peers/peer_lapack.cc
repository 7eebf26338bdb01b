// peer_lapack.cc: LAPACK's ssyevd through OpenBLAS, one OpenBLAS thread for each matrix.
#include "peer_batch.h"

extern "C" {
void ssyevd_(const char* jobz, const char* uplo, const int* n, float* a, const int* lda, float* w,
             float* work, const int* lwork, int* iwork, const int* liwork, int* info);
void openblas_set_num_threads(int threads);
}

namespace {

struct Sizes {
  int work, integers;
};

Sizes sizes(int n) {
  float work = 0.0f;
  int integers = 0, info = 0;
  const int query = -1;
  ssyevd_("V", "L", &n, nullptr, &n, nullptr, &work, &query, &integers, &query, &info);
  return {static_cast<int>(work), integers};
}

const char* peer_configuration() {
  return "{\"peer\":\"LAPACK ssyevd (OpenBLAS)\",\"inner_threads\":1}";
}

void peer_start() { openblas_set_num_threads(1); }

size_t peer_bytes(int n) {
  const Sizes s = sizes(n);
  return sizeof(float) * (static_cast<size_t>(n) * n + s.work) + sizeof(int) * s.integers;
}

int peer_solve(int n, const float* a, float* values, float* vectors, void* scratch) {
  const Sizes s = sizes(n);
  float* full = static_cast<float*>(scratch);
  float* work = full + static_cast<size_t>(n) * n;
  int* integers = reinterpret_cast<int*>(work + s.work);
  peer_mirror(n, a, full);
  int info = 0;
  ssyevd_("V", "L", &n, full, &n, values, work, &s.work, integers, &s.integers, &info);
  if (info == 0) peer_transpose(n, full, vectors);
  return info;
}

}  // namespace
