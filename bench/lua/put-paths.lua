-- Arguments: a file with a path on each line, and a number of bytes; puts a body of that size to one path after another.
function init(args)
  local body = string.rep("0123456789", math.ceil(tonumber(args[2]) / 10)):sub(1, tonumber(args[2]))
  puts = {}
  for line in io.lines(args[1]) do puts[#puts + 1] = wrk.format("PUT", line, {}, body) end
  at = 0
end
function request()
  at = at % #puts + 1
  return puts[at]
end
