import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/**
 * A port that is free now. Not one of those that the system gives to outgoing connections and to servers that listen on port 0, which
 * could take it before its use, or while its server is stopped.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 32_000)
    const server = createServer()
    const isFree = await new Promise<boolean>((done) => {
      server.once('error', () => done(false))
      server.listen(port, '127.0.0.1', () => done(true))
    })
    await new Promise((done) => server.close(done))
    if (isFree) return port
  }
}
