import { createHash } from 'node:crypto'
import { open, rm } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'

// The minimal yardstick of large uploads: reads a socket to its end, hashes, writes, syncs, and responds with the hash.
// Arguments: a directory, and algorithms; default sha256.
const [directory = '', ...named] = process.argv.slice(2)
const algorithms = named.length > 0 ? named : ['sha256']

async function receive(socket: Socket): Promise<void> {
  const path = join(directory, 'received')
  const file = await open(path, 'wx')
  const hashes = algorithms.map((algorithm) => createHash(algorithm))
  // The response needs the socket, which an iterator of Node.js 26 destroys at its end.
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    // The write runs while this thread hashes.
    const written = file.write(chunk)
    for (const hash of hashes) hash.update(chunk)
    await written
  }
  await file.sync()
  await file.close()
  socket.end(hashes.map((hash) => hash.digest('hex')).join(' '))
  await rm(path)
}

const server = createServer({ allowHalfOpen: true }, (socket) => void receive(socket))
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  console.log(`listening on http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`)
})
