std = "min"
max_line_length = 120
exclude_files = { "build" }

files["lua/redlock/types.lua"] = { ignore = { "212", "241" } }
files["lua/redlock/nginx*.lua"] = { std = "luajit", read_globals = { "ngx" } }
files["lua/redlock/nginx_pages.lua"] = { std = "luajit", globals = { "ngx" } } -- writes its fields
files["spec"] = { std = "max+busted" }
files["bench"] = { std = "max" }
files["examples"] = { std = "max" }
files["conformance"] = { std = "max" }
