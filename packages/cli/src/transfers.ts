import { setTimeout } from 'node:timers/promises'
import type { Client, GetOptions } from '@mediabucket/client'
import { CommandError } from './command.ts'

/** The bytes of an item as they arrive. */
export interface Transfer {
  readonly headers: Headers
  /** Where the bytes begin: 0 unless the server continues an earlier download. */
  readonly offset: number
  /** All bytes of the item; null if unknown. */
  readonly size: number | null
  readonly chunks: AsyncGenerator<Uint8Array, void, void>
}

/** Attempts to continue a download after which it fails, unless one of them receives bytes. */
const maxContinuations = 5

/** Requests the bytes of an item. A connection that breaks is continued at the byte at which it broke. */
export async function openTransfer(
  client: Client,
  reference: string,
  { signal, resumeFrom }: { readonly signal: AbortSignal; readonly resumeFrom?: GetOptions['resumeFrom'] },
): Promise<Transfer> {
  const first = await client.get(reference, { signal, resumeFrom })
  const offset = resumeFrom !== undefined && first.status === 206 ? startOf(first, resumeFrom.offset) : 0
  const length = first.headers.has('content-encoding') ? null : first.headers.get('content-length')
  const size = length === null ? null : offset + Number(length)
  return { headers: first.headers, offset, size, chunks: chunksOf() }

  async function* chunksOf(): AsyncGenerator<Uint8Array, void, void> {
    const etag = first.headers.get('etag')
    let { body } = first
    let at = offset
    for (let attempt = 1; ; attempt += 1) {
      try {
        for await (const chunk of body ?? []) {
          attempt = 0
          at += chunk.length
          yield chunk
        }
        return
      } catch (error) {
        signal.throwIfAborted()
        if (at === size) return
        const isStrong = etag?.startsWith('"') === true
        if (!isBroken(error) || !isStrong || at === 0 || attempt >= maxContinuations) throw error
        await setTimeout(250 * 2 ** attempt, undefined, { signal })
        const next = await client.get(reference, { signal, resumeFrom: { offset: at, etag } })
        if (next.status !== 206)
          throw new CommandError('the item changed during the download; download it again')
        startOf(next, at)
        body = next.body
      }
    }
  }
}

/** Checks that a 206 response begins at this byte. */
function startOf(response: Response, offset: number): number {
  const range = response.headers.get('content-range') ?? ''
  if (range.startsWith(`bytes ${offset}-`)) return offset
  throw new CommandError(`the server sent another range (${JSON.stringify(range)}) than requested`)
}

const isBroken = (error: unknown): boolean =>
  error instanceof Error && (error.name === 'ConnectionError' || error.name === 'TimeoutError')
