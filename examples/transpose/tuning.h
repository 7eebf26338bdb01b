// tuning.h: what a campaign may turn; knobs.toml says what each does.
#pragma once

inline constexpr int kBlock = 2;     // edge of the square that is transposed at a time
inline constexpr int kReadRows = 1;  // 1: walk rows of the input, 0: rows of the output
