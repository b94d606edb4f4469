# Reads lines of "case=... peer=... round=... <what measure.c prints>" and prints a table.
# Variables: kind (speed, hung, scaling or plain: the lines as they are), title, base (the peer that
# the others are compared with).
#
# SPDX-License-Identifier: MIT

kind == "plain" { plain = plain $0 "\n"; next }

{
  split("", field)
  for (i = 1; i <= NF; i++) {
    split($i, part, "=")
    # Only the first "=" separates: the name of a case may hold another.
    field[part[1]] = substr($i, length(part[1]) + 2)
  }
  key = field["case"] SUBSEP field["peer"]
  if (!(key in turns)) { order[++keys] = key; caseof[keys] = field["case"]; peerof[keys] = field["peer"] }
  turn = ++turns[key]
  for (name in field) value[key, turn, name] = field[name]
  failures[key] += field["failures"]
}

# median_of(count): of list[1..count], which it sorts.
function median_of(count,   i, j, x) {
  for (i = 2; i <= count; i++) {
    x = list[i]
    for (j = i - 1; j >= 1 && list[j] > x; j--) list[j + 1] = list[j]
    list[j + 1] = x
  }
  if (count == 0) return 0
  return count % 2 ? list[(count + 1) / 2] : (list[count / 2] + list[count / 2 + 1]) / 2
}

function median(key, name,   i) {
  for (i = 1; i <= turns[key]; i++) list[i] = value[key, i, name] + 0
  return median_of(turns[key])
}

# Turn by turn; leaves the smallest and largest in list[1] and list[turns].
function median_ratio(key, name, base, base_name,   i) {
  for (i = 1; i <= turns[key]; i++)
    list[i] = value[base, i, base_name] > 0 ? value[key, i, name] / value[base, i, base_name] : 0
  return median_of(turns[key])
}

function spread(key, name, base, base_name,   middle) {
  middle = median_ratio(key, name, base, base_name)
  return sprintf("%.2f (%.2f..%.2f)", middle, list[1], list[turns[key]])
}

function percentiles(key, name) {
  return sprintf("%.0f/%.0f/%.0f", median(key, name "_p50"), median(key, name "_p99"),
                 median(key, name "_p999"))
}

function speed(   k, key) {
  printf "  %-8s %9s  %-18s  %-16s %-16s %-16s  %-13s %s\n", "peer", "pairs/s", "ratio to " base,
         "acquire p50/99/99.9", "release us", "pair us", "user+sys us", "failures"
  for (k = 1; k <= keys; k++) {
    key = order[k]
    printf "  %-8s %9.0f  %-18s  %-19s %-16s %-16s  %5.1f+%-7.1f %d\n", peerof[k], median(key, "rate"),
           spread(key, "rate", caseof[k] SUBSEP base, "rate"), percentiles(key, "acquire"),
           percentiles(key, "release"), percentiles(key, "pair"), median(key, "user_us"),
           median(key, "sys_us"), failures[key]
  }
}

function hung(   k, key, healthy) {
  printf "  %-8s %9s  %-18s  %-18s  %-24s %-24s %s\n", "peer", "pairs/s", "ratio to limit",
         "to itself healthy", "acquire p99, to healthy", "pair p99, to healthy", "failures"
  for (k = 1; k <= keys; k++) {
    if (caseof[k] != "hung") continue
    key = order[k]
    healthy = "healthy" SUBSEP peerof[k]
    printf "  %-8s %9.0f  %-18s  %-18s  %5.0f %-18s %5.0f %-18s %d\n", peerof[k], median(key, "rate"),
           spread(key, "rate", "hung" SUBSEP "limit", "rate"), spread(key, "rate", healthy, "rate"),
           median(key, "acquire_p99"), spread(key, "acquire_p99", healthy, "acquire_p99"),
           median(key, "pair_p99"), spread(key, "pair_p99", healthy, "pair_p99"), failures[key]
  }
}

function scaling(   k, key) {
  printf "  %-4s %-8s %9s %10s %12s  %-18s %s\n", "N", "peer", "pairs/s", "us a pair", "CPU us a pair",
         "ratio to limit", "failures"
  for (k = 1; k <= keys; k++) {
    key = order[k]
    printf "  %-4s %-8s %9.0f %10.1f %12.1f   %-18s %d\n", caseof[k], peerof[k], median(key, "rate"),
           1e6 / median(key, "rate"), median(key, "user_us") + median(key, "sys_us"),
           spread(key, "rate", caseof[k] SUBSEP "limit", "rate"), failures[key]
  }
}

END {
  print "\n## " title
  if (kind == "plain") printf "%s", plain
  if (kind == "speed") speed()
  if (kind == "hung") hung()
  if (kind == "scaling") scaling()
}
