# bash completion for redlock(1). build-aux/manual.lua writes this file.

_redlock() {
  local current=${COMP_WORDS[COMP_CWORD]} verb= word options=
  local operands=0 value= index
  for ((index = 1; index < COMP_CWORD; index++)); do
    word=${COMP_WORDS[index]}
    if [[ -n $value && $word != = ]]; then
      value=
      continue
    fi
    case $word in
    --node | -n | --nodes-file | --ttl | -t | --node-timeout | --quorum | --guard-max-ttl | --guard-cluster | --prefix | -p | --wait | -w | --conflict-exit-code | -E | --max-hold | --label | --permits | --hold-for | --on-lost | --kill-after | --interval | --duration | --tls-ca | --tls-ca-path | --tls-crl | --tls-cert | --tls-key | --tls-key-password-file | --tls-server-name | --tls-min-version | --tls-ciphers) value=$word ;;
    =) ;;
    --)
      [[ $verb == @(run|lead) && $operands -ge 1 ]] || return 0
      operands=2
      ((index++))
      break
      ;;
    -*) ;;
    *)
      if [[ -z $verb ]]; then
        verb=$word
      else
        ((operands++))
        [[ $verb != @(run|lead) || $operands -lt 2 ]] || break
      fi
      ;;
    esac
  done
  [[ $current != = ]] || current=

  COMPREPLY=()
  if [[ $verb == @(run|lead) && $operands -ge 2 ]] || [[ $verb == @(run|lead) && $operands -eq 1 && $current != -* && -z $value ]]; then
    # The command has a completion of its own.
    if declare -F _command_offset >/dev/null; then
      _command_offset "$index"
    elif [[ $COMP_CWORD -eq $index ]]; then
      mapfile -t COMPREPLY < <(compgen -c -- "$current")
    else
      mapfile -t COMPREPLY < <(compgen -f -- "$current")
    fi
    return 0
  fi
  case $value in
  '') ;;
  --nodes-file | --tls-ca | --tls-crl | --tls-cert | --tls-key | --tls-key-password-file)
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
    return 0
    ;;
  --tls-ca-path)
    mapfile -t COMPREPLY < <(compgen -d -- "$current")
    return 0
    ;;
  --on-lost)
    mapfile -t COMPREPLY < <(compgen -W 'term warn' -- "$current")
    return 0
    ;;
  --tls-min-version)
    mapfile -t COMPREPLY < <(compgen -W '1.2 1.3' -- "$current")
    return 0
    ;;
  *) return 0 ;;
  esac
  case $verb in
  run) options='--node -n --nodes-file --ttl -t --node-timeout --quorum --guard --guard-max-ttl --guard-cluster --prefix -p --wait -w --conflict-exit-code -E --max-hold --label --no-label --fence --permits --hold-for --on-lost --strict --kill-after --quiet -q --verbose -v --tls --tls-ca --tls-ca-path --tls-crl --tls-cert --tls-key --tls-key-password-file --tls-server-name --tls-min-version --tls-ciphers --tls-dangerously-unverified --help -h --version -V' ;;
  lead) options='--node -n --nodes-file --ttl -t --node-timeout --quorum --guard --guard-max-ttl --guard-cluster --prefix -p --wait -w --conflict-exit-code -E --max-hold --label --no-label --strict --kill-after --quiet -q --verbose -v --tls --tls-ca --tls-ca-path --tls-crl --tls-cert --tls-key --tls-key-password-file --tls-server-name --tls-min-version --tls-ciphers --tls-dangerously-unverified --help -h --version -V' ;;
  acquire) options='--node -n --nodes-file --ttl -t --node-timeout --quorum --guard --guard-max-ttl --guard-cluster --prefix -p --wait -w --conflict-exit-code -E --label --no-label --fence --permits --hold-for --quiet -q --verbose -v --json --tls --tls-ca --tls-ca-path --tls-crl --tls-cert --tls-key --tls-key-password-file --tls-server-name --tls-min-version --tls-ciphers --tls-dangerously-unverified --help -h --version -V' ;;
  extend) options='--node -n --nodes-file --ttl -t --node-timeout --quorum --guard --guard-max-ttl --guard-cluster --prefix -p --label --no-label --quiet -q --verbose -v --json --tls --tls-ca --tls-ca-path --tls-crl --tls-cert --tls-key --tls-key-password-file --tls-server-name --tls-min-version --tls-ciphers --tls-dangerously-unverified --help -h --version -V' ;;
  release) options='--node -n --nodes-file --ttl -t --node-timeout --quorum --guard --guard-max-ttl --guard-cluster --prefix -p --quiet -q --verbose -v --json --tls --tls-ca --tls-ca-path --tls-crl --tls-cert --tls-key --tls-key-password-file --tls-server-name --tls-min-version --tls-ciphers --tls-dangerously-unverified --help -h --version -V' ;;
  hold) options='--node -n --nodes-file --ttl -t --node-timeout --quorum --guard --guard-max-ttl --guard-cluster --prefix -p --wait -w --conflict-exit-code -E --max-hold --label --no-label --fence --permits --hold-for --quiet -q --verbose -v --json --ctdb --tls --tls-ca --tls-ca-path --tls-crl --tls-cert --tls-key --tls-key-password-file --tls-server-name --tls-min-version --tls-ciphers --tls-dangerously-unverified --help -h --version -V' ;;
  inspect) options='--node -n --nodes-file --ttl -t --node-timeout --quorum --guard --guard-max-ttl --guard-cluster --prefix -p --permits --quiet -q --verbose -v --json --tls --tls-ca --tls-ca-path --tls-crl --tls-cert --tls-key --tls-key-password-file --tls-server-name --tls-min-version --tls-ciphers --tls-dangerously-unverified --help -h --version -V' ;;
  force-release) options='--node -n --nodes-file --ttl -t --node-timeout --quorum --guard --guard-max-ttl --guard-cluster --prefix -p --quiet -q --verbose -v --json --tls --tls-ca --tls-ca-path --tls-crl --tls-cert --tls-key --tls-key-password-file --tls-server-name --tls-min-version --tls-ciphers --tls-dangerously-unverified --help -h --version -V' ;;
  watch) options='--node -n --nodes-file --ttl -t --node-timeout --quorum --guard --guard-max-ttl --guard-cluster --prefix -p --quiet -q --verbose -v --json --interval --tls --tls-ca --tls-ca-path --tls-crl --tls-cert --tls-key --tls-key-password-file --tls-server-name --tls-min-version --tls-ciphers --tls-dangerously-unverified --help -h --version -V' ;;
  nodes) options='--node -n --nodes-file --ttl -t --node-timeout --quorum --guard --guard-max-ttl --guard-cluster --prefix -p --quiet -q --verbose -v --json --tls --tls-ca --tls-ca-path --tls-crl --tls-cert --tls-key --tls-key-password-file --tls-server-name --tls-min-version --tls-ciphers --tls-dangerously-unverified --help -h --version -V' ;;
  doctor) options='--node -n --nodes-file --ttl -t --node-timeout --quorum --guard --guard-max-ttl --guard-cluster --prefix -p --keys --quiet -q --verbose -v --json --tls --tls-ca --tls-ca-path --tls-crl --tls-cert --tls-key --tls-key-password-file --tls-server-name --tls-min-version --tls-ciphers --tls-dangerously-unverified --help -h --version -V' ;;
  bootstrap) options='--node -n --nodes-file --ttl -t --node-timeout --quorum --guard --guard-max-ttl --guard-cluster --prefix -p --quiet -q --verbose -v --json --tls --tls-ca --tls-ca-path --tls-crl --tls-cert --tls-key --tls-key-password-file --tls-server-name --tls-min-version --tls-ciphers --tls-dangerously-unverified --help -h --version -V' ;;
  bench) options='--node -n --nodes-file --ttl -t --node-timeout --quorum --guard --guard-max-ttl --guard-cluster --prefix -p --quiet -q --verbose -v --json --duration --tls --tls-ca --tls-ca-path --tls-crl --tls-cert --tls-key --tls-key-password-file --tls-server-name --tls-min-version --tls-ciphers --tls-dangerously-unverified --help -h --version -V' ;;
  help) options='--help -h --version -V' ;;
  *) options='--node -n --nodes-file --ttl -t --node-timeout --quorum --guard --guard-max-ttl --guard-cluster --prefix -p --wait -w --conflict-exit-code -E --max-hold --label --no-label --fence --permits --hold-for --on-lost --strict --kill-after --keys --quiet -q --verbose -v --json --ctdb --interval --duration --tls --tls-ca --tls-ca-path --tls-crl --tls-cert --tls-key --tls-key-password-file --tls-server-name --tls-min-version --tls-ciphers --tls-dangerously-unverified --help -h --version -V' ;;
  esac
  if [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
  elif [[ -z $verb ]]; then
    mapfile -t COMPREPLY < <(compgen -W 'run lead acquire extend release hold inspect force-release watch nodes doctor bootstrap bench help' -- "$current")
  elif [[ $verb == help ]]; then
    mapfile -t COMPREPLY < <(compgen -W 'run lead acquire extend release hold inspect force-release watch nodes doctor bootstrap bench help' -- "$current")
  fi
}
complete -F _redlock redlock
