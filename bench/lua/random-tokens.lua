-- Arguments: a file with a token on each line; asks for page 2 with one of them at random.
function init(args)
  tokens = {}
  for line in io.lines(args[1]) do tokens[#tokens + 1] = "Bearer " .. line end
  math.randomseed(os.time())
end
function request()
  return wrk.format("GET", "/api/media?page=2", { ["Authorization"] = tokens[math.random(#tokens)] })
end
