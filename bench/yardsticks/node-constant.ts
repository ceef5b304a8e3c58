import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'

// The minimal yardstick: node:http responds with the bytes of a file.
const body = readFileSync(process.argv[2] ?? '')
const server = createServer((_request, response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length })
  response.end(body)
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  console.log(`listening on http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`)
})
