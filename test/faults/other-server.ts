import type { ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'
import { listen } from '../client/foreign-service.ts'

/** A server that has the files of uploads from URLs, and that scans files. */
export interface OtherServer extends AsyncDisposable {
  /** Those of a service that requests files from it. */
  readonly settings: Readonly<Record<string, string>>
  /** Those of a service that has it scan files too. */
  readonly scanSettings: Readonly<Record<string, string>>
  /** Has a file from now on, and returns its URL. */
  offer(name: string, bytes: Uint8Array<ArrayBuffer>): string
  /** Requests for a file until now. */
  requests(url: string): number
  /** Until `calm` is called, some responses never end. */
  disturb(): void
  calm(): void
}

/** Milliseconds before a response, at most. */
const longestPause = 100

/** One in this many responses never ends. */
const endless = 12

/** Whether the scanner refuses a file: a few of those with random bytes. */
export const isRefusedFile = (bytes: Uint8Array): boolean => (bytes[0] ?? 255) < 8

/** `refuses` is whether the scanner refuses a file. */
export async function openOtherServer(
  random: (below: number) => number,
  refuses = isRefusedFile,
): Promise<OtherServer> {
  const files = new Map<string, { readonly bytes: Uint8Array<ArrayBuffer>; requests: number }>()
  let isDisturbed = false
  const isEndless = () => isDisturbed && random(endless) === 0

  async function sendFile(path: string, response: ServerResponse): Promise<void> {
    const file = files.get(path)
    if (file === undefined) return void response.writeHead(404).end()
    file.requests += 1
    response.writeHead(200, { 'content-length': file.bytes.length })
    response.write(file.bytes.subarray(0, file.bytes.length / 2))
    if (isEndless()) return
    await setTimeout(random(longestPause))
    response.end(file.bytes.subarray(file.bytes.length / 2))
  }

  const server = await listen(async (request, response) => {
    if (request.method !== 'POST') return await sendFile(request.url ?? '', response)
    const bytes = await buffer(request)
    if (isEndless()) return
    await setTimeout(random(longestPause))
    response.writeHead(refuses(bytes) ? 422 : 204).end()
  })
  const settings = { MEDIABUCKET_URL_UPLOADS: '127.0.0.1' }
  return {
    settings,
    scanSettings: { ...settings, MEDIABUCKET_SCAN: `${server.url}/scan` },
    offer(name, bytes) {
      files.set(`/${name}`, { bytes, requests: 0 })
      return `${server.url}/${name}`
    },
    requests: (url) => files.get(new URL(url).pathname)?.requests ?? 0,
    disturb() {
      isDisturbed = true
    },
    calm() {
      isDisturbed = false
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}
