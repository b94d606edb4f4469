-- The completions of the tool for bash, zsh and fish.
--
-- SPDX-License-Identifier: MIT

local completion = {}

local VALUES = { FILE = "file", DIRECTORY = "directory", VERSION = { "1.2", "1.3" } }

-- Returns "file", "directory", a list of words, or nil for the value of an option.
local function values_of(option)
  local words = option.value and option.value:find("|", 1, true) and {}
  for word in (words and option.value or ""):gmatch("[^|]+") do words[#words + 1] = word end
  return words or VALUES[option.value]
end

local function names_of(options)
  local names = {}
  for _, option in ipairs(options) do
    names[#names + 1] = "--" .. option.name
    if option.letter then names[#names + 1] = "-" .. option.letter end
  end
  return names
end

local function verbs_of(tables)
  local names = {}
  for _, verb in ipairs(tables.verbs) do names[#names + 1] = verb.name end
  return names
end

-- Returns the names of the verbs that run a command.
local function commanding(tables)
  local names = {}
  for _, verb in ipairs(tables.verbs) do
    if verb.operands:find("COMMAND") then names[#names + 1] = verb.name end
  end
  return names
end

-- ---------------------------------------------------------------------------------------------- bash

-- Returns the options whose values are as |kind|: "--name | -n | ..." for a case.
local function pattern_of(options, accepts)
  local chosen = {}
  for _, option in ipairs(options) do
    if option.value and accepts(option) then chosen[#chosen + 1] = option end
  end
  return #chosen > 0 and table.concat(names_of(chosen), " | ")
end

function completion.bash(tables, template)
  local values, options = {}, {}
  local function add(pattern, arguments)
    if pattern then
      values[#values + 1] = ("  %s)\n    mapfile -t COMPREPLY < <(compgen %s -- \"$current\")\n    return 0\n    ;;")
        :format(pattern, arguments)
    end
  end
  add(pattern_of(tables.options, function(option) return values_of(option) == "file" end), "-f")
  add(pattern_of(tables.options, function(option) return values_of(option) == "directory" end), "-d")
  for _, option in ipairs(tables.options) do
    local words = values_of(option)
    if type(words) == "table" then
      add(pattern_of({ option }, function() return true end), ("-W '%s'"):format(table.concat(words, " ")))
    end
  end
  for _, verb in ipairs(tables.verbs) do
    options[#options + 1] = ("  %s) options='%s' ;;"):format(verb.name,
      table.concat(names_of(tables.options_of(verb)), " "))
  end
  options[#options + 1] = ("  *) options='%s' ;;"):format(table.concat(names_of(tables.options), " "))
  local parts = { VALUED = pattern_of(tables.options, function() return true end), VALUES = table.concat(values, "\n"),
    OPTIONS = table.concat(options, "\n"), VERBS = table.concat(verbs_of(tables), " "),
    COMMANDING = table.concat(commanding(tables), "|") }
  return (template:gsub("@(%u+)@", parts))
end

-- ----------------------------------------------------------------------------------------------- zsh

local function zsh_quoted(text) return (text:gsub("'", "'\\''"):gsub("[%[%]:]", "\\%0")) end

local function zsh_value(option)
  local values = values_of(option)
  local action = values == "file" and "_files" or values == "directory" and "_files -/"
    or type(values) == "table" and "(" .. table.concat(values, " ") .. ")" or " "
  return (":%s:%s"):format(option.value:lower():gsub("|", " or "), action)
end

local function zsh_option(option)
  local value = option.value and zsh_value(option) or ""
  local meaning = zsh_quoted(option.meaning)
  local lines = { ("'%s--%s%s[%s]%s'"):format(option.name == "node" and "*" or "", option.name,
    option.value and "=" or "", meaning, value) }
  if option.letter then
    lines[2] = ("'%s-%s%s[%s]%s'"):format(option.name == "node" and "*" or "", option.letter,
      option.value and "+" or "", meaning, value)
  end
  return table.concat(lines, "\n    ")
end

local function zsh_operands(verb)
  if verb.operands:find("COMMAND") then return "'1:resource: ' '*::command:_normal'" end
  if verb.name == "help" then return "'1:verb:_redlock_verbs'" end
  return verb.operands:find("RESOURCE") and "'1:resource: '" or "'*: : '"
end

local function zsh_group(group)
  local lines = {}
  for _, option in ipairs(group.options) do lines[#lines + 1] = "    " .. zsh_option(option) end
  return ("  local -a %s=(\n%s\n  )"):format(group.name:lower() .. "_options", table.concat(lines, "\n"))
end

-- Returns the arrays of the options that |verb| accepts; of all options if it is nil.
local function zsh_arrays(tables, verb)
  local names = {}
  for _, group in ipairs(tables.groups) do
    if #group.verbs > 0 and (not verb or verb.groups[group.name]) then
      names[#names + 1] = "$" .. group.name:lower() .. "_options"
    end
  end
  return table.concat(names, " ")
end

function completion.zsh(tables)
  local verbs, cases, groups = {}, {}, {}
  for _, group in ipairs(tables.groups) do groups[#groups + 1] = #group.verbs > 0 and zsh_group(group) or nil end
  for _, verb in ipairs(tables.verbs) do
    verbs[#verbs + 1] = ("    '%s:%s'"):format(verb.name, zsh_quoted(verb.purpose))
    cases[#cases + 1] = ("  %s) _arguments -S %s %s ;;"):format(verb.name, zsh_arrays(tables, verb),
      zsh_operands(verb))
  end
  return ([==[
#compdef redlock
# zsh completion for redlock(1). build-aux/manual.lua writes this file.

_redlock_verbs() {
  local -a verbs=(
%s
  )
  _describe verb verbs
}

_redlock() {
  local curcontext=$curcontext state line
  typeset -A opt_args
%s
  _arguments -C %s '1:verb:_redlock_verbs' '*:: :->operands' && return
  [[ $state == operands ]] || return
  case $line[1] in
%s
  esac
}

_redlock "$@"
]==]):format(table.concat(verbs, "\n"), table.concat(groups, "\n"), zsh_arrays(tables), table.concat(cases, "\n"))
end

-- ---------------------------------------------------------------------------------------------- fish

local function fish_quoted(text) return "'" .. text:gsub("[\\']", "\\%0") .. "'" end

local function fish_option(option, verbs)
  local parts = { "complete -c redlock" }
  local function add(text) parts[#parts + 1] = text end
  if verbs then add("-n " .. fish_quoted("__fish_seen_subcommand_from " .. table.concat(verbs, " "))) end
  add("-l " .. option.name)
  if option.letter then add("-s " .. option.letter) end
  local values = option.value and values_of(option)
  if values == "file" then add("-r -F") end
  if values == "directory" then add("-x -a '(__fish_complete_directories)'") end
  if type(values) == "table" then add("-x -a " .. fish_quoted(table.concat(values, " "))) end
  if option.value and not values then add("-x") end
  add("-d " .. fish_quoted(option.meaning))
  return table.concat(parts, " ")
end

-- Completes the command of a verb that runs one: after "--", or after the resource if no option
-- stands before it.
local FISH_COMMAND = [[
function __redlock_complete_command
    set -l tokens (commandline -cop)
    set -l at (contains -i -- -- $tokens)
    or set at (%s; or echo 1)
    test "$tokens[$at]" = -- ; or set at (math $at + 1)
    string match -q -- '-*' "$tokens[$at]"; and test "$tokens[$at]" != --; and return
    test (count $tokens) -ge $at; or return
    set -l words
    test (count $tokens) -gt $at; and set words $tokens[(math $at + 1)..-1]
    complete -C (string join ' ' -- (string escape -- $words) (commandline -ct))
end
]]

function completion.fish(tables)
  local verbs, positions = table.concat(verbs_of(tables), " "), {}
  for _, name in ipairs(commanding(tables)) do positions[#positions + 1] = ("contains -i %s $tokens"):format(name) end
  local lines = { "# fish completion for redlock(1). build-aux/manual.lua writes this file.", "",
    FISH_COMMAND:format(table.concat(positions, "; or ")), "complete -c redlock -f" }
  for _, verb in ipairs(tables.verbs) do
    lines[#lines + 1] = ("complete -c redlock -n 'not __fish_seen_subcommand_from %s' -a %s -d %s"):format(verbs,
      verb.name, fish_quoted(verb.purpose))
  end
  lines[#lines + 1] = ("complete -c redlock -n '__fish_seen_subcommand_from help' -a '%s'"):format(verbs)
  lines[#lines + 1] = ("complete -c redlock -n '__fish_seen_subcommand_from %s' -a '(__redlock_complete_command)'")
    :format(table.concat(commanding(tables), " "))
  for _, group in ipairs(tables.groups) do
    local names = {}
    for _, verb in ipairs(group.verbs) do names[#names + 1] = verb.name end
    local is_for_all = #names >= #tables.verbs - 1
    for _, option in ipairs(#names > 0 and group.options or {}) do
      lines[#lines + 1] = fish_option(option, not is_for_all and names or nil)
    end
  end
  return table.concat(lines, "\n") .. "\n"
end

return completion
