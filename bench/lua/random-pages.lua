-- Arguments: a token, the first and the last page; asks for pages between them at random.
function init(args)
  headers = { ["Authorization"] = "Bearer " .. args[1] }
  if args[4] then headers["Accept-Encoding"] = args[4] end
  first, last = tonumber(args[2]), tonumber(args[3])
  math.randomseed(os.time())
end
function request()
  return wrk.format("GET", "/api/media?page=" .. math.random(first, last), headers)
end
