import { readFileSync } from 'node:fs'
import { connect } from 'node:net'

// Keeps streams of GET /api/items open until standard input ends, and then prints the bytes that were read. A stream that has ended
// starts again. Prints the number of refused streams when every stream has begun.
// Arguments: the URL of the server, a file with a token for each stream, and `read`, or `hold` to read the first bytes only.
const [base = '', file = '', form] = process.argv.slice(2)
const { hostname, port } = new URL(base)
const tokens = readFileSync(file, 'utf8').split('\n')
let [begun, bytes, refused] = [0, 0, 0]

function open(token: string, isFirst: boolean): void {
  const socket = connect({ host: hostname, port: Number(port) })
  let hasBegun = !isFirst
  socket.write(
    `GET /api/items HTTP/1.1\r\nHost: ${hostname}\r\nAccept: application/x-ndjson\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`,
  )
  socket.on('data', (chunk) => {
    bytes += chunk.length
    if (!hasBegun && !chunk.toString('latin1', 0, 12).endsWith(' 200')) refused += 1
    if (!hasBegun && ++begun === tokens.length) console.log(JSON.stringify({ begun, refused }))
    hasBegun = true
    if (form === 'hold') socket.pause()
  })
  socket.on('error', () => {})
  socket.on('close', () => open(token, !hasBegun))
}

for (const token of tokens) open(token, true)
process.stdin.on('end', () => {
  console.log(JSON.stringify({ bytes, refused }))
  process.exit(0)
})
process.stdin.resume()
