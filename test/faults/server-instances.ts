import { temporaryDirectory } from '../harness/directory.ts'
import { s3EndpointOf } from '../harness/s3-door.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { tusOf } from '../harness/tus.ts'

/** One of the servers that are started one after another on the same data directory. */
export interface Instance {
  readonly server: TestServer
  /** The origin of the S3 protocol, if the server has a port for it. */
  readonly s3: string
  /** For the first bucket; the same for every server on the data. */
  readonly authorization: string
  readonly token: string
  readonly tus: ReturnType<typeof tusOf>
}

export interface Instances extends AsyncDisposable {
  readonly directory: string
  start(settings?: Readonly<Record<string, string>>): Promise<Instance>
}

/** A server with what tests send to it. */
export const instanceOf = (server: TestServer, token: string): Instance => ({
  server,
  s3: s3EndpointOf(server),
  token,
  authorization: `Bearer ${token}`,
  tus: tusOf({ url: server.url, token }),
})

/** A data directory on which servers are started one after another; `at` is an existing directory. */
export async function openInstances(at?: string): Promise<Instances> {
  const directory = at === undefined ? await temporaryDirectory() : null
  const path = directory?.path ?? at ?? ''
  let token = ''
  const started: TestServer[] = []
  return {
    directory: path,
    async start(settings = {}) {
      const server = await startServer(
        { MEDIABUCKET_AUDIT: 'changes', MEDIABUCKET_S3_PORT: '0', ...settings },
        path,
      )
      started.push(server)
      token ||= server.token
      return instanceOf(server, token)
    },
    async [Symbol.asyncDispose]() {
      for (const server of started) await server[Symbol.asyncDispose]()
      await directory?.[Symbol.asyncDispose]()
    },
  }
}
