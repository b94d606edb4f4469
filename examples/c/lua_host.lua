-- The script of lua_host: the client is its argument.
local dlm = ...

for _, node in ipairs(dlm:nodes()) do
  print("node " .. node.node)
end
local lock = assert(dlm:acquire("orders:42", { ttl = 5000 }))
print(("%s: held, valid for %.1f ms"):format(_VERSION, lock:remaining()))
for _, vote in ipairs(lock:votes()) do
  print(("  %s: %s"):format(vote.node, vote.vote))
end
assert(lock:release())
print("released")
