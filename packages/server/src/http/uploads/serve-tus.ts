import type { IncomingMessage } from 'node:http'
import { Server } from '@tus/server'
import { faultOfAnswer, faultOfTus } from './tus-fault.ts'
import type { UploadStore } from './upload-store.ts'

/** All that the library gets to see of a request: what stands in other headers is no business of its. */
const heeded = [
  'tus-resumable',
  'content-type',
  'content-length',
  'upload-length',
  'upload-defer-length',
  'upload-metadata',
  'upload-offset',
  'upload-concat',
]

/** All that clients get to see of its answer: its own CORS headers allow everyone. */
const answered = ['location', 'upload-offset', 'upload-length', 'upload-defer-length']

/** The library's locks; turns at an upload are taken in media/upload-turns.ts. */
const noLock = { lock: async () => {}, unlock: async () => {} }

/**
 * Lets the tus library answer a request for the upload `id`, with a store that belongs to the request alone. Throws a
 * Fault for whatever the library refuses.
 */
export async function serveTus(
  request: IncomingMessage,
  parts: {
    readonly store: UploadStore
    readonly method: string
    readonly id: string
    /** Absolute. */
    readonly url: string
    /** Bytes. */
    readonly maxFileSize: number
  },
): Promise<{ status: number; headers: Readonly<Record<string, string>> }> {
  const { store, method, id, url, maxFileSize } = parts
  const thrown: unknown[] = []
  const server = new Server({
    path: '/api/uploads',
    datastore: store,
    locker: { newLock: () => noLock },
    maxSize: maxFileSize,
    namingFunction: () => id,
    getFileIdFromRequest: () => id,
    generateUrl: () => url,
    onResponseError: (_, error) => {
      thrown.push(error)
      return undefined
    },
  })
  const headers = new Headers()
  for (const name of heeded) {
    const value = request.headers[name]
    if (value !== undefined) headers.set(name, value.toString())
  }
  // Without the body, which the library would send through five streams: the store takes it from the connection.
  const answer = await server.handleWeb(new Request(url, { method, headers }))
  if (thrown.length > 0) throw faultOfTus(thrown[0])
  if (answer.status >= 400) throw faultOfAnswer(answer.status, await answer.text())
  const told = answered.flatMap((name) => {
    const value = answer.headers.get(name)
    return value === null ? [] : [[name, value] as const]
  })
  return { status: answer.status, headers: Object.fromEntries(told) }
}
