import { createReadStream, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'

// The minimal yardstick of downloads: node:http pipes a file's stream into each response. Argument: a directory.
const directory = process.argv[2] ?? ''
const server = createServer((request, response) => {
  const path = join(directory, request.url ?? '')
  response.writeHead(200, {
    'content-type': 'application/octet-stream',
    'content-length': statSync(path).size,
  })
  createReadStream(path).pipe(response)
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  console.log(`listening on http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`)
})
