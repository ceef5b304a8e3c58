import { startServer } from '../harness/server.ts'
import { tusOf } from '../harness/tus.ts'

/** A requirement of tus 1.0.0 for servers, quoted, with the matching rule of docs/interface.md. */
export type Requirement = readonly [rule: string, quotation: string, check: () => Promise<void>]

export const unknown = '/api/uploads/0123456789abcdefghjkmnpqrs'

/** A server with a limit of 1 MB, and requests to it. */
export async function startTus() {
  const server = await startServer({ MEDIABUCKET_MAX_FILE_SIZE: '1MB' })
  const tus = tusOf(server)
  return {
    ...tus,
    server,
    /** Requests the creation of an upload. */
    post: (headers: Record<string, string>, body?: string) => tus.send('POST', '/api/uploads', headers, body),
    /** A header of the response to OPTIONS. */
    async optionOf(name: string): Promise<string> {
      const { headers } = await fetch(`${server.url}/api/uploads`, { method: 'OPTIONS' })
      return headers.get(name) ?? ''
    },
    /** An upload of ten bytes, four of which are stored. */
    async unfinished(headers: Record<string, string> = {}): Promise<string> {
      const url = await tus.createWithLength(10, headers)
      await tus.sendChunk(url, 0, 'abcd')
      return url
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}
