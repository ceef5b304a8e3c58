import { randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import { currentEngine } from './database.ts'
import { type SharedServer, startServer, type TestServer } from './server.ts'
import { makeToken } from './token.ts'
import { atWorkerEnd } from './worker-end.ts'

/** By engine. */
const servers = new Map<string, Promise<TestServer>>()

/** Without rate limits for addresses, because all tests have the same one. */
async function start(): Promise<TestServer> {
  const server = await startServer({ MEDIABUCKET_ADDRESS_RATE: 'off', MEDIABUCKET_AUTH_FAILURE_RATE: 'off' })
  atWorkerEnd(() => {
    server.process.kill('SIGKILL')
    rmSync(server.data, { recursive: true, force: true })
  })
  return server
}

/**
 * The server of this worker, with a new bucket and its token: for tests that need no settings and do not stop it. The
 * first call starts it.
 */
export async function sharedServer(): Promise<SharedServer> {
  const engine = currentEngine()
  const starting = servers.get(engine) ?? start()
  servers.set(engine, starting)
  const { url, data, stderr, command, request } = await starting
  const bucket = randomUUID()
  const { token, authorization } = await makeToken({ data }, '--bucket', bucket)
  return {
    url,
    data,
    bucket,
    token,
    stderr,
    command,
    request(path, init = {}) {
      const headers = new Headers(init.headers)
      if (!headers.has('authorization')) headers.set('authorization', authorization)
      return request(path, { ...init, headers })
    },
  }
}
