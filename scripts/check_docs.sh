#!/bin/sh
# Checks the prose of Markdown pages and headers: the length of sentences, lines and pages, links, openings of headers.
#
#   check_docs.sh [--table]
#
# The limits are what the pages reach today. They may fall and never rise. --table prints the figures of every page.
# Code, tables and headings are not sentences. Inline code counts as one word.
set -eu
export LC_ALL=C  # awk sees bytes

cd -- "$(dirname -- "$0")/.."
most_of_all=65000  # words of all pages together
most_words=40      # words of a sentence
most_mean=16       # words of a sentence, mean of a page
most_columns=120   # columns of a line of prose
failed=0

fail() {
  echo "check_docs: $1" >&2
  failed=1
}

# sentences PAGE: a line "NUMBER WORDS SENTENCE" for each sentence, NUMBER being the line on which its paragraph begins
sentences() {
  awk '
    function flush(   rest, words, count, i, sentence) {
      gsub(/`[^`]*`/, "CODE", block)
      while (match(block, /!?\[[^]]*\]\([^)]*\)/)) {
        rest = substr(block, RSTART, RLENGTH)
        sub(/\]\([^)]*\)$/, "", rest)
        sub(/^!?\[/, "", rest)
        block = substr(block, 1, RSTART - 1) rest substr(block, RSTART + RLENGTH)
      }
      gsub(/et al\./, "et al", block)
      count = split(block, words, /[ \t]+/)
      sentence = ""
      length_ = 0
      for (i = 1; i <= count; ++i) {
        if (words[i] == "") continue
        sentence = sentence " " words[i]
        if (words[i] ~ /[A-Za-z0-9]/) ++length_
        if (words[i] ~ /[.!?][)*"]*$/ && words[i] !~ /^(e\.g\.|i\.e\.|vs\.|fig\.|[A-Z]\.)$/ || i == count) {
          if (length_ > 0) print begin, length_, sentence
          sentence = ""
          length_ = 0
        }
      }
      block = ""
    }
    /^ *```/ { flush(); code = !code; next }
    code || (block == "" && /^    /) { next }
    /^ *$/ || /^ *\|/ || /^#/ || /^!\[/ { flush(); next }
    /^ *([-*]|[0-9]+\.) / { flush(); sub(/^ *([-*]|[0-9]+\.) /, "") }
    { if (block == "") begin = FNR; block = block " " $0 }
    END { flush() }' "$1"
}

check_page() {
  sentences "$1" >"$work/sentences"
  awk -v page="$1" -v longest="$most_words" -v mean="$most_mean" -v table="$table" -v lines="$(wc -l <"$1")" '
    { ++count; words += $2; if ($2 > most) most = $2 }
    $2 > longest { printf "check_docs: %s:%d: a sentence of %d words, more than %d\n", page, $1, $2, longest > "/dev/stderr"; bad = 1 }
    END {
      if (count && words / count > mean) {
        printf "check_docs: %s: sentences have %.1f words on average, more than %d\n", page, words / count, mean > "/dev/stderr"
        bad = 1
      }
      if (table) printf "%-32s %5d lines  %4d sentences of %4.1f words, the longest %3d\n", page, lines, count, count ? words / count : 0, most
      exit bad
    }' "$work/sentences" || failed=1
  awk -v page="$1" -v most="$most_columns" '
    function columns(text) {
      gsub(/[\200-\277]/, "", text)  # all but the first byte of each character
      return length(text)
    }
    /^ *```/ { code = !code }
    !code && !/^ *\|/ && !/\]\([^)]*\)[^ ]*$/ && columns($0) > most {
      printf "check_docs: %s:%d: a line of %d columns, more than %d\n", page, FNR, columns($0), most > "/dev/stderr"
      bad = 1
    }
    END { exit bad }' "$1" || failed=1
}

# anchors PAGE: the names of its headings, as a browser has them
anchors() {
  awk '/^ *```/ { code = !code } !code && /^#+ /' "$1" | sed -E 's/^#+ +//' | tr '[:upper:]' '[:lower:]' |
    sed -E 's/[^a-z0-9 _-]//g; s/ /-/g'
}

check_links() {
  awk '/^ *```/ { code = !code } !code { gsub(/`[^`]*`/, ""); print }' "$1" | grep -oE '\]\([^) ]+\)' | sed -E 's/^\]\(//; s/\)$//' |
    grep -vE '^[a-z]+:' | sort -u >"$work/links" || true
  while read -r link; do
    path=${link%%#*}
    if [ -n "$path" ]; then target=$(dirname -- "$1")/$path; else target=$1; fi
    if [ ! -e "$target" ]; then
      fail "$1 links to $link, and there is no such file"
    elif [ "$path" != "$link" ] && ! anchors "$target" | grep -qxF -e "${link#*#}"; then
      fail "$1 links to $link, and $target has no such heading"
    fi
  done <"$work/links"
}

table=
case ${1:-} in
  '') ;;
  --table) table=1 ;;
  *)
    echo "usage: check_docs.sh [--table]" >&2
    exit 2
    ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

git ls-files '*.md' ':!docs/tables/' >"$work/pages" # those are printed by wisp table
while read -r page; do
  check_page "$page"
  check_links "$page"
done <"$work/pages"
words=$(xargs cat <"$work/pages" | wc -w)
[ "$words" -le "$most_of_all" ] || fail "the pages have $words words, more than $most_of_all: shorten some"

git ls-files '*.h' >"$work/headers"
while read -r header; do
  opening=$(awk '/^\/\/ / { print; exit }' "$header")
  case $opening in
    '') fail "$header does not say what it is in its first lines" ;;
    '// What '* | '// Which '* | '// How '* | '// Where '* | '// Who '* | '// When '* | '// Why '*)
      fail "$header opens with a question word, not with what it is: $opening" ;;
  esac
done <"$work/headers"

[ -z "$table" ] || echo "$words words in $(wc -l <"$work/pages") pages, $(wc -l <"$work/headers") headers"
[ "$failed" -eq 0 ] && echo "check_docs: clean"
exit "$failed"
