-- Arguments: a token, the number of files of a form, bytes of each; uploads that form again and again.
function init(args)
  local body = string.rep("0123456789", math.ceil(tonumber(args[3]) / 10)):sub(1, tonumber(args[3]))
  local parts = {}
  for i = 1, tonumber(args[2]) do
    parts[i] = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"" .. i .. ".bin\"\r\nContent-Type: application/octet-stream\r\n\r\n" .. body .. "\r\n"
  end
  local form = table.concat(parts) .. "--b--\r\n"
  upload = wrk.format("POST", "/api/media", { ["Authorization"] = "Bearer " .. args[1], ["Content-Type"] = "multipart/form-data; boundary=b" }, form)
end
function request()
  return upload
end
