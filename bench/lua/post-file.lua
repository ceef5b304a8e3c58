-- Arguments: a token, a number of bytes; uploads a raw file of that size again and again.
function init(args)
  local body = string.rep("0123456789", math.ceil(tonumber(args[2]) / 10)):sub(1, tonumber(args[2]))
  local headers = { ["Authorization"] = "Bearer " .. args[1], ["Content-Type"] = "application/octet-stream" }
  upload = wrk.format("POST", "/api/media", headers, body)
end
function request()
  return upload
end
