// transpose.cc: out[j][i] = in[i][j] for n x n floats, row-major. The example's kernel.
#include "tuning.h"

extern "C" int transpose(const float* in, float* out, int n) {
  for (int row = 0; row < n; row += kBlock)
    for (int column = 0; column < n; column += kBlock)
      for (int i = row; i < row + kBlock && i < n; ++i)
        for (int j = column; j < column + kBlock && j < n; ++j)
          if (kReadRows)
            out[static_cast<long>(j) * n + i] = in[static_cast<long>(i) * n + j];
          else
            out[static_cast<long>(i) * n + j] = in[static_cast<long>(j) * n + i];
  return 0;
}
