# From two outputs of strace -c, the first of the shorter run: calls per pair, in all and by kind.
# Variables: peer, nodes, pairs (the difference between the runs).
#
# SPDX-License-Identifier: MIT

$4 ~ /^[0-9]+$/ && $NF != "total" {
  calls[$NF] += FNR == NR ? -$4 : $4
}

END {
  for (name in calls) {
    each = calls[name] / pairs
    total += each
    if (each >= 0.01) kinds = kinds sprintf(" %s %.2f", name, each)
  }
  printf "  N=%d %-8s %6.2f :%s\n", nodes, peer, total, kinds
}
