#!/bin/sh
# Times encode and decode of every registered method, with one thread and with two, and prints the table of
# docs/performance.md: milliseconds, and in brackets their ratio to the limit of the same run.
#
#   codec_table.sh [WISP [SECONDS]]     WISP: the program; SECONDS: how long to measure each method
set -eu

wisp=${1:-$(dirname -- "$0")/../../build/release/wisp}
seconds=${2:-2}
lines=$(mktemp)
trap 'rm -f -- "$lines"' EXIT
for threads in 1 2; do
  OMP_WAIT_POLICY=passive "$wisp" bench codec --all --numel 25000000 --threads "$threads" --seconds "$seconds" --json >>"$lines"
done

echo "| method | payload | encode, 1 thread | 2 threads | decode 1, 1 thread | 2 threads | decode 4, 1 thread | 2 threads | state MB | scratch MB | error | cosine | bias |"
echo "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
awk '
  function value(key,  text) {  # of `key` in the current line, which has numbers and strings without quotes inside
    if (!match($0, "\"" key "\":(\"[^\"]*\"|[^,}]*)")) { print "codec_table: no " key " in " $0 >"/dev/stderr"; exit 1 }
    text = substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3)
    gsub(/"/, "", text)
    return text ~ /^[-+0-9.eE]+$/ ? text + 0 : text
  }
  function time(key) { return sprintf("%.1f (%.2f)", value(key "_ms"), value(key "_ms") / value(key "_limit_ms")) }
  function size(bytes) {
    return bytes >= 1e6 ? sprintf("%.2f MB", bytes / 1e6) : bytes >= 1e3 ? sprintf("%.1f kB", bytes / 1e3) : bytes " B"
  }
  function mega(bytes) { return bytes < 5e4 ? "0" : sprintf("%.0f", bytes / 1e6) }
  {
    options = value("options")
    gsub(/compression\./, "", options)
    name = "`" value("method") "`" (options == "" ? "" : " `" options "`")
    if (value("threads") == 1) {
      names[++rows] = name
      one_encode[name] = time("encode"); one_decode[name] = time("decode"); one_decode4[name] = time("decode4")
      payload[name] = size(value("payload_bytes"))
      rest[name] = mega(value("state_bytes")) " | " mega(value("scratch_bytes")) " | " \
        sprintf("%.3f | %.3f | %.3f", value("rel_error"), value("cosine"), value("bias"))
    } else {
      two_encode[name] = time("encode"); two_decode[name] = time("decode"); two_decode4[name] = time("decode4")
    }
  }
  END {
    for (i = 1; i <= rows; ++i) {
      n = names[i]
      print "| " n " | " payload[n] " | " one_encode[n] " | " two_encode[n] " | " one_decode[n] " | " two_decode[n] " | " \
        one_decode4[n] " | " two_decode4[n] " | " rest[n] " |"
    }
  }' "$lines"
