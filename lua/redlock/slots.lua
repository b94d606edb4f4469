--- Inspects the slots of a semaphore, each of which is a lock: name/1, name/2 ...

local slots = {}

--- Inspects slots 1 to `permits` by inspect(client, name).
--- Returns a table of them; or nil, message, code.
function slots.inspect(inspect, client, resource, permits)
  local found = { permits = permits, held = 0, slots = {} }
  for slot = 1, permits do
    local one, message, code = inspect(client, resource .. "/" .. slot)
    if not one then return nil, message, code end
    if one.holder then found.held = found.held + 1 end
    found.slots[slot] = one
  end
  return found
end

return slots
