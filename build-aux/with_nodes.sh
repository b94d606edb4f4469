#!/bin/sh
# Starts N Redis nodes and runs a command with their addresses as its last arguments:
#
#     with_nodes.sh N COMMAND...
set -u
. "$(dirname "$0")/nodes.sh"
trap nodes_stop EXIT
trap 'exit 130' INT TERM HUP
count=$1
shift
nodes_start "$count" || exit 1
for port in $node_ports; do set -- "$@" "127.0.0.1:$port"; done
"$@"
