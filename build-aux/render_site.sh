#!/bin/sh
# Renders pages of the site $1 in headless Chromium, and searches the site. Without Chromium and its
# driver it does nothing.
#
#     render_site.sh SITE [DIRECTORY]       also writes the screenshots there
set -u
site=$1
pictures=${2:-}
for program in chromedriver curl python3; do
  command -v "$program" >/dev/null || {
    echo "ok - no $program: the site is not rendered # SKIP"
    exit 0
  }
done
work=$(mktemp -d)
session=
server=
driver=
finish() {
  [ -z "$session" ] || curl -s -X DELETE "$session" >/dev/null
  for pid in $server $driver; do kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null; done
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

# eventually command ...: repeats the command until it succeeds, for two minutes.
eventually() {
  tries=0
  until "$@"; do
    tries=$((tries + 1))
    [ "$tries" -lt 600 ] || return 1
    sleep 0.2
  done
}
has_port() { grep -qs ' port [1-9]' "$1"; }
port_of() { sed -n 's/.* port \([1-9][0-9]*\).*/\1/p' "$1" | tail -n 1; }

# The search reads its index by HTTP. mkdocs has brought Python.
python3 -u -m http.server --bind 127.0.0.1 --directory "$site" 0 >"$work/server" 2>/dev/null &
server=$!
chromedriver --port=0 >"$work/driver" 2>&1 &
driver=$!
if ! eventually has_port "$work/server" || ! eventually has_port "$work/driver"; then
  echo 'not ok - the servers for the site and for the browser do not start'
  exit 1
fi
address=http://127.0.0.1:$(port_of "$work/server")

arguments='"--headless","--no-sandbox","--disable-gpu","--disable-dev-shm-usage","--hide-scrollbars","--window-size=1280,1000"'
curl -s -d "{\"capabilities\":{\"alwaysMatch\":{\"goog:chromeOptions\":{\"args\":[$arguments]}}}}" \
  "http://127.0.0.1:$(port_of "$work/driver")/session" >"$work/session"
session=$(sed -n 's/.*"sessionId":"\([^"]*\)".*/\1/p' "$work/session")
if [ -z "$session" ]; then
  echo "not ok - the browser does not start: $(cut -c 1-300 "$work/session")"
  exit 1
fi
session=http://127.0.0.1:$(port_of "$work/driver")/session/$session

# Succeeds if the condition $1, in JavaScript, holds in the page.
holds() {
  curl -s -d "{\"script\":\"return ($1) ? 'holds' : ''\",\"args\":[]}" "$session/execute/sync" | grep -q holds
}

status=0
# page condition description picture
expect() {
  curl -s -d "{\"url\":\"$address/$1\"}" "$session/url" >/dev/null
  if eventually holds "$2"; then
    echo "ok - $3"
  else
    echo "not ok - $3: $1 does not get there"
    status=1
  fi
  [ -n "$pictures" ] || return 0
  curl -s "$session/screenshot" | sed 's/.*"value":"\([^"]*\)".*/\1/' | base64 -d >"$pictures/$4.png"
}
shown="document.querySelector('h1').offsetHeight > 0"
fits="document.documentElement.scrollWidth <= window.innerWidth"
drawn="[...document.images].every(i => i.complete && i.naturalWidth > 100)"
expect index.html "$shown && $fits && $drawn" 'the first page and its picture fit into the window' first-page
expect api/lua.html "$shown && $fits && document.getElementById('client-acquire')" \
  'the page of the Lua API fits into the window' lua-api
expect 'search.html?q=fencing' "document.querySelector('#mkdocs-search-results a[href*=fencing-tokens]')" \
  'the search finds fencing tokens' search
if holds "document.querySelector('#mkdocs-search-results a[href*=no-such-page]')"; then
  echo 'not ok - render_site.sh finds what is not there'
  status=1
fi
exit $status
