import { setTimeout as pause } from 'node:timers/promises'
import { Fault } from '../core/faults.ts'
import type { ScanOutcome } from '../http/scan-metrics.ts'
import { FairPlaces } from '../pictures/picture-queue.ts'
import type { BlobStore } from '../storage/blobs/blobs.ts'
import type { ReceivedFile } from '../storage/blobs/received-file.ts'
import type { BucketId } from '../storage/catalog/records.ts'

/** What a scanner says about a file. */
export type Verdict =
  | { readonly outcome: 'clean' }
  | { readonly outcome: 'refused'; readonly reason: string }
  /** The scanner does not scan files of this size. */
  | { readonly outcome: 'too-large' }

/** The bytes of a file, and how many they are. */
export interface ScannedFile {
  readonly bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>
  readonly size: number
}

/** The scanner has closed the connection before it had the whole file, and said nothing. */
export class ScanCutOff extends Error {}

/** A program that scans files. */
export interface Scanner {
  /** Throws if there is no verdict, and ScanCutOff. */
  scan(file: ScannedFile, signal: AbortSignal): Promise<Verdict>
  /** Throws if the scanner does not respond. */
  check(signal: AbortSignal): Promise<void>
}

/** Scans a received file, before its item exists. Throws Fault `file-refused` and `scanner-unavailable`. */
export type ScanFile = (file: ReceivedFile, bucketId: BucketId) => Promise<void>

/** Files of this process that are scanned at a time, and those of one bucket. clamd scans ten by default. */
const maxScans = { all: 8, each: 6 }

/** Milliseconds between two attempts. */
const retryDelay = 500

interface ScanParts {
  readonly scanner: Scanner
  readonly blobs: Pick<BlobStore, 'openReceived'>
  /** Milliseconds for which a file waits for its turn, and then for all attempts. */
  readonly timeout: number
  /** Whether files are stored that the scanner does not scan. */
  readonly acceptsUnscanned: boolean
  readonly onOutcome: (outcome: ScanOutcome, seconds: number, more: ScanReport) => void
}

/** For the log. */
interface ScanReport {
  /** The first 16 hexadecimal digits: the log removes what is as long as a token. */
  readonly sha256: string
  readonly reason?: string
  readonly error?: unknown
}

/** Has every file scanned before it is stored (docs/interface.md SC1). */
export function scanFileOperation(parts: ScanParts): ScanFile {
  const places = new FairPlaces({ ...maxScans, timeout: parts.timeout })
  return (file, bucketId) => scanFile(parts, places, file, bucketId)
}

async function scanFile(
  parts: ScanParts,
  places: FairPlaces,
  file: ReceivedFile,
  bucketId: BucketId,
): Promise<void> {
  const { timeout, acceptsUnscanned, onOutcome } = parts
  const began = performance.now()
  const report = (outcome: ScanOutcome, more: Omit<ScanReport, 'sha256'> = {}) =>
    onOutcome(outcome, (performance.now() - began) / 1_000, {
      sha256: `${Buffer.from(file.sha256).toString('hex', 0, 8)}…`,
      ...more,
    })
  const leave = await places.take(`${bucketId}`).catch(async (error: unknown) => {
    const isRunning = await runs(parts.scanner, AbortSignal.timeout(checkTimeout))
    report(isRunning ? 'busy' : 'failed', { error })
    // Otherwise a client that fills the queue could store files without a scan.
    if (acceptsUnscanned && !isRunning) return null
    throw new Fault(
      'scanner-unavailable',
      isRunning
        ? `The file has waited for its scan for ${timeout / 1_000} seconds, because others were scanned. Nothing was stored.`
        : noResponse(timeout),
    )
  })
  if (leave === null) return
  let verdict: Verdict
  try {
    // From now on, so that a file that had to wait gets as much time as others.
    verdict = await scanUntil(parts, file, AbortSignal.timeout(timeout))
  } catch (error) {
    report('failed', { error })
    if (acceptsUnscanned) return
    throw new Fault('scanner-unavailable', noResponse(timeout))
  } finally {
    leave()
  }
  if (verdict.outcome === 'clean') return report('clean')
  if (verdict.outcome === 'too-large') {
    report('too-large')
    if (acceptsUnscanned) return
    throw new Fault('file-refused', 'The scanner of uploads does not scan files of this size.')
  }
  const reason = printable(verdict.reason)
  report('refused', { reason })
  throw new Fault('file-refused', `The scanner refuses the file${reason === '' ? '' : `: ${reason}`}.`)
}

const noResponse = (timeout: number): string =>
  `The scanner of uploads did not respond within ${timeout / 1_000} seconds. Nothing was stored.`

/** Milliseconds in which a scanner shows that it runs. */
const checkTimeout = 2_000

/**
 * Repeats a scan without a verdict until the signal is aborted. Throws the last error. A response that precedes the end of the file can be lost with the connection:
 * a scanner that has cut off a file twice, and runs, does not take files of its size. A proxy in front of one that does not run cuts off every file.
 */
async function scanUntil(
  { scanner, blobs }: ScanParts,
  file: ReceivedFile,
  signal: AbortSignal,
): Promise<Verdict> {
  for (let cutOffs = 0; ; ) {
    try {
      return await scanOnce(scanner, blobs, file, signal)
    } catch (error) {
      if (signal.aborted) throw error
      cutOffs = error instanceof ScanCutOff ? cutOffs + 1 : 0
      if (cutOffs === 2) {
        if (await runs(scanner, signal)) return { outcome: 'too-large' }
        cutOffs = 0
      }
      await pause(retryDelay, null, { signal }).catch(() => {
        throw error
      })
    }
  }
}

const runs = (scanner: Scanner, signal: AbortSignal): Promise<boolean> =>
  scanner.check(AbortSignal.any([signal, AbortSignal.timeout(checkTimeout)])).then(
    () => true,
    () => false,
  )

async function scanOnce(
  scanner: Scanner,
  blobs: ScanParts['blobs'],
  file: ReceivedFile,
  signal: AbortSignal,
): Promise<Verdict> {
  const { size } = file
  if ('bytes' in file) return await scanner.scan({ bytes: [file.bytes], size }, signal)
  const opened = await blobs.openReceived(file)
  try {
    return await scanner.scan({ bytes: size === 0 ? [] : opened.stream(0, size - 1), size }, signal)
  } finally {
    await opened.close()
  }
}

/** A text of another program for a message: one line of at most 200 characters. */
const printable = (text: string): string =>
  text
    .toWellFormed()
    .replace(/[\p{C}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .trim()
    .slice(0, 200)
    .replace(/\.$/, '')
