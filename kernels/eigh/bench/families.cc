// families.cc: the lists of cases.
#include "families.h"

namespace crucible::eigh::bench {

const std::vector<Case>& correctness_cases() {
  static const std::vector<Case> cases = [] {
    std::vector<Case> c = {{20, 32, 1, "dense"},     {40, 176, 1, "dense"}, {40, 352, 1, "dense"},
                           {16, 512, 2, "dense"},    {4, 1024, 2, "dense"}, {2, 2048, 1, "dense"},
                           {16, 512, 4, "spectrum"}, {16, 512, 2, "psd"}};
    for (const char* f : {"rankdef", "nearrank", "repeated", "clustered", "band", "rowscale"}) {
      c.push_back({16, 512, 0, f});
    }
    c.push_back({4, 1024, 4, "spectrum"});
    c.push_back({4, 1024, 0, "rankdef"});
    c.push_back({4, 1024, 0, "clustered"});
    c.push_back({2, 2048, 2, "mixed"});
    c.push_back({16, 512, 2, "mixed"});
    c.push_back({4, 1024, 2, "mixed"});
    c.push_back({1, 4096, 1, "diagonal"});
    for (const char* f :
         {"zero", "identity", "diag_even", "diag_geometric", "diag_clustered",
          "diag_geometric_high", "diag_geometric_low", "dense_even", "dense_geometric"}) {
      c.push_back({16, 512, 0, std::string("lapack_") + f});
    }
    for (const char* f :
         {"dense_clustered", "dense_even_high", "dense_even_low", "random", "random_high",
          "random_low", "band_even", "band_even_high", "band_even_low"}) {
      c.push_back({4, 1024, 0, std::string("lapack_") + f});
    }
    return c;
  }();
  return cases;
}

const std::vector<Case>& ranked_cases() {
  static const std::vector<Case> cases = {{20, 32, 1, "dense"},
                                          {40, 176, 1, "dense"},
                                          {40, 352, 1, "dense"},
                                          {640, 512, 2, "dense"},
                                          {60, 1024, 2, "dense"},
                                          {8, 2048, 1, "dense"},
                                          {640, 512, 2, "mixed"},
                                          {60, 1024, 2, "mixed"},
                                          {640, 512, 0, "rankdef"},
                                          {640, 512, 0, "clustered"},
                                          {60, 1024, 0, "nearrank"},
                                          {640, 512, 0, "lapack_dense_even"},
                                          {60, 1024, 0, "lapack_dense_geometric"}};
  return cases;
}

const std::vector<std::string>& wide_families() {
  static const std::vector<std::string> names = {"zero",
                                                 "multiple_of_identity",
                                                 "diagonal_shuffled",
                                                 "dense",
                                                 "spectrum",
                                                 "psd",
                                                 "rankdef",
                                                 "nearrank",
                                                 "repeated",
                                                 "clustered",
                                                 "diagonal",
                                                 "band",
                                                 "rowscale",
                                                 "mixed",
                                                 "lapack_identity",
                                                 "lapack_diag_even",
                                                 "lapack_diag_geometric",
                                                 "lapack_diag_clustered",
                                                 "lapack_dense_even",
                                                 "lapack_dense_geometric",
                                                 "lapack_dense_clustered",
                                                 "lapack_random",
                                                 "lapack_band_even",
                                                 "lapack_dense_even_high",
                                                 "lapack_dense_even_low",
                                                 "lapack_random_high",
                                                 "lapack_random_low",
                                                 "lapack_band_even_high",
                                                 "lapack_band_even_low",
                                                 "lapack_diag_geometric_high",
                                                 "lapack_diag_geometric_low",
                                                 "arrow_last",
                                                 "arrow_first",
                                                 "wilkinson",
                                                 "glued_wilkinson",
                                                 "one_two_one",
                                                 "one_two_one_conjugated",
                                                 "clement",
                                                 "hilbert",
                                                 "kahan",
                                                 "toeplitz_0.5",
                                                 "toeplitz_0.9",
                                                 "toeplitz_0.999",
                                                 "min_ij",
                                                 "graded_down",
                                                 "graded_up",
                                                 "ones_tiny_diagonal",
                                                 "near_identity",
                                                 "near_one",
                                                 "legendre",
                                                 "laguerre",
                                                 "hermite",
                                                 "block_diagonal",
                                                 "plus_minus",
                                                 "bipartite",
                                                 "bipartite_one",
                                                 "block_sign",
                                                 "distance",
                                                 "tiny_tails",
                                                 "zero_tails",
                                                 "rank_one",
                                                 "few_samples",
                                                 "hadamard",
                                                 "subnormal",
                                                 "float_max"};
  return names;
}

}  // namespace crucible::eigh::bench
