// cheats.cc: kernels that cheat, to prove that the harness sees it. One is built at a time, by name
// (cheat.sh); a campaign runs them before it starts, `crucible doctor --exploits` shows the table.
#include <cstring>
#include <map>
#include <vector>

extern "C" int transpose(const float* in, float* out, int n) {
  const long size = static_cast<long>(n) * n;
#if defined(CHEAT_writes_nothing)
  (void)in, (void)out, (void)size;
#elif defined(CHEAT_works_in_place)
  // The right answer, at the price of the input.
  float* own = const_cast<float*>(in);
  for (long i = 0; i < n; ++i)
    for (long j = 0; j < i; ++j) {
      const float kept = own[i * n + j];
      own[i * n + j] = own[j * n + i];
      own[j * n + i] = kept;
    }
  std::memcpy(out, own, size * sizeof(float));
#elif defined(CHEAT_remembers_by_size)
  // The first answer of each size, for ever.
  static std::map<int, std::vector<float> > answers;
  std::vector<float>& answer = answers[n];
  if (answer.empty()) {
    answer.resize(size);
    for (long i = 0; i < n; ++i)
      for (long j = 0; j < n; ++j) answer[j * n + i] = in[i * n + j];
  }
  std::memcpy(out, answer.data(), size * sizeof(float));
#else
#error "name one of the cheats: -DCHEAT_writes_nothing, …"
#endif
  return 0;
}
