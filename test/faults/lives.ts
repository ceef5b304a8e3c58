import { temporaryDirectory } from '../harness/directory.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { tusOf } from '../harness/tus.ts'

/** One process that serves the data, of the several that one run starts on them. */
export interface Life {
  readonly server: TestServer
  /** Of the first bucket, in every life. */
  readonly authorization: string
  readonly token: string
  readonly tus: ReturnType<typeof tusOf>
}

export interface Lives extends AsyncDisposable {
  readonly directory: string
  start(settings?: Readonly<Record<string, string>>): Promise<Life>
}

/** A data directory on which servers are started one after another; `at` is one that exists. */
export async function openLives(at?: string): Promise<Lives> {
  const directory = at === undefined ? await temporaryDirectory() : null
  const path = directory?.path ?? at ?? ''
  let token = ''
  const started: TestServer[] = []
  return {
    directory: path,
    async start(settings = {}) {
      const server = await startServer(settings, path)
      started.push(server)
      token ||= server.token
      return {
        server,
        token,
        authorization: `Bearer ${token}`,
        tus: tusOf({ url: server.url, token }),
      }
    },
    async [Symbol.asyncDispose]() {
      for (const server of started) await server[Symbol.asyncDispose]()
      await directory?.[Symbol.asyncDispose]()
    },
  }
}
