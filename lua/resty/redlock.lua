--- The name that OpenResty's libraries go by.
return require "redlock"
