#!/bin/sh
# Builds the docs as a web site in the directory $1.
set -eu
site=$1
source=$site-source
here=$(dirname "$0")
rm -rf "$site" "$source"
${LUA:-lua5.4} "$here/site.lua" "$source"
mkdocs build --quiet --strict -f "$source/mkdocs.yml" -d "$(cd "$source/.." && pwd)/$(basename "$site")"

# The theme of Debian 12 names two scripts that its package lacks: jQuery by another name, and one
# that no page needs.
for jquery in "$site"/js/jquery-*.min.js; do
  [ -e "$site/js/jquery-3.6.0.min.js" ] || cp "$jquery" "$site/js/jquery-3.6.0.min.js"
done
[ -e "$site/js/theme_extra.js" ] || : >"$site/js/theme_extra.js"
echo "ok - the site is in $site: open $site/index.html"
