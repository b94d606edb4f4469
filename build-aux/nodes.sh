# Temporary redis-servers on free ports of 127.0.0.1, for POSIX shells that source this file:
#
#     nodes_start 5                 sets node_ports and node_pids, in the same order
#     nodes_start_tls 1             adds nodes that accept only TLS, with a self-signed certificate for
#                                   localhost: $nodes_certificate
#     nodes_stop                    ends all nodes, stopped ones too, and removes their directory
#
# REDLOCK_TEST_SERVER names another program than redis-server.
#
# The script must set a trap for nodes_stop. A server is recognised by its log, because another
# program may take the port in the meantime.

node_ports=
node_pids=
nodes_directory=
nodes_certificate=
node_next_port=$((20000 + $$ * 37 % 10000))

# Starts one server on $1. Fails if the port is taken.
node_try() {
  node_log=$nodes_directory/$1.log
  node_port_option=--port
  [ -z "$nodes_certificate" ] || node_port_option="--port 0 --tls-cert-file $nodes_certificate --tls-key-file ${nodes_certificate%.pem}.key
    --tls-ca-cert-file $nodes_certificate --tls-auth-clients no --tls-port"
  # shellcheck disable=SC2086
  "${REDLOCK_TEST_SERVER:-redis-server}" $node_port_option "$1" --bind 127.0.0.1 --save '' --appendonly no --daemonize no \
    --dir "$nodes_directory" --logfile "$node_log" >"$nodes_directory/output" 2>&1 </dev/null &
  node_pid=$!
  node_pids="$node_pids $node_pid"
  node_polls=0
  while [ "$node_polls" -lt 500 ]; do
    if grep -q 'Ready to accept connections' "$node_log" 2>/dev/null; then
      node_ports="$node_ports $1"
      return 0
    fi
    grep -qi 'failed listening\|could not create server' "$node_log" 2>/dev/null && break
    kill -0 "$node_pid" 2>/dev/null || break
    node_polls=$((node_polls + 1))
    sleep 0.02
  done
  kill -KILL "$node_pid" 2>/dev/null || true
  wait "$node_pid" 2>/dev/null || true
  node_pids=${node_pids% "$node_pid"}
  return 1
}

nodes_start() {
  [ -n "$nodes_directory" ] || nodes_directory=$(mktemp -d) || return 1
  node_wanted=$1
  node_tries=0
  while [ "$node_wanted" -gt 0 ]; do
    if node_try "$node_next_port"; then
      node_wanted=$((node_wanted - 1))
    fi
    node_next_port=$((node_next_port + 1))
    node_tries=$((node_tries + 1))
    if [ "$node_tries" -gt 100 ]; then
      echo "no redis-server could be started; the output of the last one:" >&2
      cat "$nodes_directory/output" "$node_log" >&2
      return 1
    fi
  done
}

nodes_start_tls() {
  [ -n "$nodes_directory" ] || nodes_directory=$(mktemp -d) || return 1
  nodes_certificate=$nodes_directory/node.pem
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost -keyout "$nodes_directory/node.key" -out "$nodes_certificate" 2>/dev/null || return 1
  nodes_start "$1"
}

nodes_stop() {
  for node_pid in $node_pids; do
    kill -KILL "$node_pid" 2>/dev/null || true
  done
  for node_pid in $node_pids; do
    wait "$node_pid" 2>/dev/null || true
  done
  node_pids=
  node_ports=
  [ -z "$nodes_directory" ] || rm -rf "$nodes_directory"
  nodes_directory=
  nodes_certificate=
}
