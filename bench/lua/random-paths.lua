-- Arguments: a file with a path on each line; asks for one of them at random. Prints the percentile that wrk leaves out.
function init(args)
  paths = {}
  for line in io.lines(args[1]) do paths[#paths + 1] = line end
  math.randomseed(os.time())
end
function request()
  return wrk.format("GET", paths[math.random(#paths)])
end
function done(summary, latency)
  io.write(string.format("     95%%  %.2fms\n", latency:percentile(95) / 1000))
end
