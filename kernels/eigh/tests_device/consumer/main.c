/* Asks the installed library for a workspace size: needs no GPU, only the header and the link. */
#include <crucible/eigh.h>
#include <stdio.h>

int main(void) {
  size_t bytes = 0;
  const crucible_eigh_status status = crucible_eigh_workspace(100, 4, 0, &bytes);
  printf("workspace of 4 x 100: %zu bytes, %s\n", bytes, crucible_eigh_status_string(status));
  return status == CRUCIBLE_EIGH_OK && bytes > 0 ? 0 : 1;
}
