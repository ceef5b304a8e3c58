import { createHash } from 'node:crypto'
import { Fault, fileTooLarge } from '../core/faults.ts'
import type { Labels } from '../core/item-labels.ts'
import type { PeerCounts } from '../core/peer-counts.ts'
import { maxFileSizeOf, requireFileSize } from '../core/quotas.ts'
import type { Actor } from '../core/token-rules.ts'
import type { AddressGuard } from '../http/address-guard.ts'
import { type UrlUploadOutcome, urlUploadOutcomes } from '../http/metrics.ts'
import type { Grant } from '../storage/catalog/records.ts'
import type { Stored, StoreOperations } from './commit.ts'
import type { UploadBucket } from './new-items.ts'
import type { RequestKey } from './reservations.ts'
import { openUrl, type UrlSource } from './url-source.ts'

/** What a client asks for. */
export interface UrlUpload {
  readonly url: URL
  /** Null for those of the other server. */
  readonly filename: string | null
  readonly declaredType: string | null
  readonly labels: Labels | null
  /** As core/focus.ts stores it. */
  readonly focus: number | null
  /** Milliseconds since 1970; null for never. */
  readonly expiresAt: number | null
  /** Of the bytes, 32 bytes; null if it is not checked. */
  readonly sha256: Uint8Array | null
  readonly key: RequestKey | null
}

/** Bytes that have arrived, and those of the whole file, if that is known. */
export interface UrlProgress {
  readonly received: number
  readonly size: number | null
}

interface Watching {
  /** Aborted when the client has gone, or when the service stops. */
  readonly signal: AbortSignal
  /** Called when the other server has responded, and for each chunk. */
  readonly onProgress: (progress: UrlProgress) => void
}

/** Uploads from URLs at a time, of the service and of a token. */
const maxAtOnce = { all: 32, token: 4 }

interface UrlUploadParts {
  /** Null where these uploads are off. */
  readonly guard: AddressGuard | null
  readonly storeItems: StoreOperations['storeItems']
  readonly findRepeated: StoreOperations['findRepeated']
  /** Bytes. */
  readonly maxFileSize: number
  readonly peers: PeerCounts | null
  readonly onOutcome: (outcome: UrlUploadOutcome) => void
}

type UrlCaller = UploadBucket & Pick<Grant, 'tokenId' | 'urlUploads'> & { readonly actor: Actor }

/** Uploads of files that the service requests from other servers (docs/interface.md FU1). */
export class UrlUploads {
  readonly #parts: UrlUploadParts
  /** Those in progress in all processes, by token. */
  readonly #running = new Map<string, number>()
  #count = 0

  constructor(parts: UrlUploadParts) {
    this.#parts = parts
    parts.peers?.subscribe('url-uploads', (tokenId, change) => this.#change(tokenId, change))
  }

  /** Throws Fault `url-uploads-off`. */
  requireOn({ urlUploads }: Pick<Grant, 'urlUploads'>): void {
    if (this.#parts.guard === null)
      throw new Fault(
        'url-uploads-off',
        'This service does not request files from other servers (MEDIABUCKET_URL_UPLOADS).',
      )
    if (!urlUploads)
      throw new Fault('url-uploads-off', 'This bucket stores no files from other servers (url_uploads).')
  }

  /**
   * Requests the URL and stores its bytes as one item, durable when it resolves. If it throws, nothing is stored. Throws Fault `url-uploads-off`,
   * `url-uploads-too-many`, `digest-mismatch`, those of openUrl and of storeItems, and the reason of the signal.
   */
  async store(caller: UrlCaller, upload: UrlUpload, watching: Watching): Promise<Stored> {
    const { findRepeated } = this.#parts
    const { key } = upload
    const fingerprint = fingerprintOf(upload)
    // The file may have changed since, or be gone: the request decides what is a repetition, not its bytes.
    const first = key && (await findRepeated(caller, { key, fingerprint }))
    if (first) return { items: first, repeated: true }
    let outcome: UrlUploadOutcome = 'failed'
    let release: (() => void) | null = null
    try {
      release = this.#enter(caller.tokenId)
      const stored = await this.#fetch(caller, upload, { ...watching, fingerprint })
      outcome = 'stored'
      return stored
    } catch (error) {
      outcome = outcomeOf(error)
      throw error
    } finally {
      release?.()
      this.#parts.onOutcome(outcome)
    }
  }

  async #fetch(
    caller: UrlCaller,
    { url, filename, declaredType, labels, focus, expiresAt, sha256, key }: UrlUpload,
    { signal, onProgress, fingerprint }: Watching & { readonly fingerprint: Uint8Array },
  ): Promise<Stored> {
    const { guard, storeItems, maxFileSize } = this.#parts
    this.requireOn(caller)
    if (guard === null) throw new TypeError('uploads from a URL are off')
    const source = await openUrl(guard, url, signal)
    try {
      const { length } = source
      requireLength(caller, length, maxFileSize)
      onProgress({ received: 0, size: length })
      const sent = {
        filename: filename ?? source.filename,
        declaredType: declaredType ?? source.contentType,
        ...{ labels, focus },
      }
      return await storeItems(caller, [[{ sent, body: watched(source, sha256, onProgress) }]], {
        ...{ by: caller.actor, key, fingerprint, expiresAt },
        declaredBytes: length ?? 0,
        atMost: length,
      })
    } finally {
      source.close()
    }
  }

  /** Throws Fault `url-uploads-too-many`. */
  #enter(tokenId: string): () => void {
    const ofToken = this.#running.get(tokenId) ?? 0
    const limit =
      ofToken >= maxAtOnce.token ? maxAtOnce.token : this.#count >= maxAtOnce.all ? maxAtOnce.all : null
    if (limit !== null)
      throw new Fault(
        'url-uploads-too-many',
        `${limit === maxAtOnce.token ? 'This token' : 'The service'} has ${limit} uploads from URLs in progress. Try again when one has ended.`,
        { members: { maximum: limit } },
      )
    this.#report(tokenId, 1)
    return () => this.#report(tokenId, -1)
  }

  #report(tokenId: string, change: number): void {
    this.#change(tokenId, change)
    this.#parts.peers?.add('url-uploads', tokenId, change)
  }

  #change(tokenId: string, change: number): void {
    this.#count += change
    const count = (this.#running.get(tokenId) ?? 0) + change
    if (count > 0) this.#running.set(tokenId, count)
    else this.#running.delete(tokenId)
  }
}

/** The faults that are outcomes of their own. */
const ownOutcomes: readonly string[] = ['source-refused', 'source-failed', 'source-timeout']

function outcomeOf(error: unknown): UrlUploadOutcome {
  if (!(error instanceof Fault)) return 'failed'
  const { code } = error
  if (code === 'upload-incomplete' || code === 'shutting-down') return 'ended'
  return urlUploadOutcomes.find((outcome) => outcome === code && ownOutcomes.includes(code)) ?? 'refused'
}

/** Refuses a file by its declared length, before a byte of it is read. */
function requireLength(caller: UploadBucket, length: number | null, maxFileSize: number): void {
  if (length === null) return
  requireFileSize(caller, length)
  const largest = maxFileSizeOf(caller, maxFileSize)
  if (length > largest) throw fileTooLarge(largest)
}

/** The bytes, with their hash compared after the last one, before anything is committed. */
async function* watched(
  { body, length }: UrlSource,
  sha256: Uint8Array | null,
  onProgress: Watching['onProgress'],
): AsyncGenerator<Uint8Array, void, void> {
  const hash = sha256 === null ? null : createHash('sha256')
  let received = 0
  for await (const chunk of body) {
    hash?.update(chunk)
    received += chunk.byteLength
    onProgress({ received, size: length })
    yield chunk
  }
  if (hash !== null && sha256 !== null && !hash.digest().equals(sha256))
    throw new Fault('digest-mismatch', 'The file at the URL has another SHA-256 than the request states.')
}

/** Equal for requests that ask for the same (docs/interface.md FU6). */
const fingerprintOf = ({ url, filename, declaredType, labels, focus, sha256 }: UrlUpload): Uint8Array =>
  createHash('sha256')
    .update(
      JSON.stringify([
        'url',
        url.href,
        filename,
        declaredType,
        labels,
        focus,
        sha256 && Buffer.from(sha256).toString('hex'),
      ]),
    )
    .digest()
