--- Messages of the fake: those of rl_message.c.

local tables = require "redlock.fake_table"

local message = {}

local MOST_OF_A_NAME = 64

--- Returns the bytes of a name as printable ASCII, with \x1b for the rest. Shortens long names.
function message.shown(name, most)
  local text = name:sub(1, most or MOST_OF_A_NAME):gsub("[%c\\\128-\255]", function(byte)
    return ("\\x%02x"):format(byte:byte())
  end)
  return #name > (most or MOST_OF_A_NAME) and text .. "..." or text
end

local function quoted(name)
  return "'" .. message.shown(name) .. "'"
end

--- Returns the first of several resources, and the number of the rest.
function message.resources(resources)
  local more = #resources - 1
  return message.shown(resources[1], 80) .. (more > 0 and " and " .. more .. " more" or "")
end

local function subject(result)
  local resources = result.resources
  if result.operation == "bootstrap" then return "bootstrap" end
  if #resources == 1 then return quoted(resources[1]) end
  return ("the lock on %s and %d more"):format(quoted(resources[1]), #resources - 1)
end

-- Returns the nodes whose vote is in `kinds`, with or without reasons.
local function nodes(result, kinds, with_reasons)
  local list = {}
  for _, vote in ipairs(result.votes) do
    if kinds[vote.vote] then
      local text = vote.node
      if with_reasons then
        local key = vote.key and #result.resources > 1 and quoted(result.resources[vote.key]) .. " is " or ""
        local taken = result.operation == "acquire" and "held by another client" or "lost"
        text = text .. ": " .. key .. (vote.vote == "taken" and taken or vote.error or "no reply")
      end
      list[#list + 1] = text
    end
  end
  return table.concat(list, with_reasons and "; " or ", ")
end

local TAKEN, FAILED = { taken = true }, { error = true, unknown = true }
local NOT_GRANTED = { taken = true, error = true, unknown = true }

local function without_vote(result)
  return result.failed > 0 and "; without a vote: " .. nodes(result, FAILED, true) or ""
end

local function in_the_way(result)
  local text = (" is taken: %d of %d nodes hold one of them for another client"):format(result.taken, #result.votes)
  local separator = ": "
  for index, resource in ipairs(result.resources) do
    local names = {}
    for _, vote in ipairs(result.votes) do
      if vote.vote == "taken" and vote.key == index then names[#names + 1] = vote.node end
    end
    if names[1] then
      text = text .. separator .. quoted(resource) .. " on " .. table.concat(names, ", ")
      separator = "; "
    end
  end
  return text
end

local of_code = {}

function of_code.taken(result)
  local text
  if #result.resources > 1 then
    text = in_the_way(result)
  elseif result.permits then
    text = (" is taken: %d of %d nodes have no free slot of %d%s: %s")
      :format(result.taken, #result.votes, result.permits, result.other and
        ("; another client uses permits = %d: give all clients the same number"):format(result.other) or "",
        nodes(result, TAKEN))
  elseif result.holder then
    text = (" is taken, held by '%s': %d of %d nodes hold it for another client: %s")
      :format(result.holder, result.taken, #result.votes, nodes(result, TAKEN))
  else
    text = (" is taken: %d of %d nodes hold it for another client: %s")
      :format(result.taken, #result.votes, nodes(result, TAKEN))
  end
  return text .. without_vote(result)
end

function of_code.lost(result)
  local denied = result.denied or {}
  return (" is lost: %d of %d nodes no longer have its token%s")
    :format(#denied, #result.votes, denied[1] and ": " .. table.concat(denied, ", ") or "")
end

function of_code.unavailable(result)
  local yes = result.granted
  if result.operation == "release" or result.operation == "force_release" then yes = yes + result.taken end
  return (": %d of %d nodes %s (%d needed): %s")
    :format(yes, #result.votes, tables.done[result.asked or result.operation], result.needed,
      nodes(result, NOT_GRANTED, true))
end

function of_code.not_held(result)
  if result.operation ~= "force_release" then return ": " .. tables.sentences.not_held end
  return ": no node that answered has such a key: the lock is free or has another holder, so inspect it again"
    .. without_vote(result)
end

function of_code.expired(result)
  if result.operation == "extend" then
    return " was not extended: its lease had expired"
  elseif result.operation == "release" then
    return " had expired before it was released"
  end
  return (": the majority came after %d ms, too late for a ttl of %d ms")
    :format(math.floor(result.took or 0), result.ttl or 0)
end

--- Returns the message of a failed operation. `result` has `operation`, `code`, `resources`,
--- `votes` and their counts; `refused` is the reason of an operation that asked no node.
function message.of(result)
  if result.refused then return subject(result) .. ": " .. result.refused end
  local make = of_code[result.code]
  if make and result.votes then return subject(result) .. make(result) end
  return subject(result) .. ": " .. tables.sentences[result.code]
end

return message
