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
    @VALUED@) value=$word ;;
    =) ;;
    --)
      [[ $verb == @(@COMMANDING@) && $operands -ge 1 ]] || return 0
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
        [[ $verb != @(@COMMANDING@) || $operands -lt 2 ]] || break
      fi
      ;;
    esac
  done
  [[ $current != = ]] || current=

  COMPREPLY=()
  if [[ $verb == @(@COMMANDING@) && $operands -ge 2 ]] || [[ $verb == @(@COMMANDING@) && $operands -eq 1 && $current != -* && -z $value ]]; then
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
@VALUES@
  *) return 0 ;;
  esac
  case $verb in
@OPTIONS@
  esac
  if [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
  elif [[ -z $verb ]]; then
    mapfile -t COMPREPLY < <(compgen -W '@VERBS@' -- "$current")
  elif [[ $verb == help ]]; then
    mapfile -t COMPREPLY < <(compgen -W '@VERBS@' -- "$current")
  fi
}
complete -F _redlock redlock
