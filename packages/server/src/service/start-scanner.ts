import { oncePer } from '../core/tasks.ts'
import type { BlobStore } from '../storage/blobs/blobs.ts'
import { ClamdScanner } from '../uploads/clamd.ts'
import { HttpScanner } from '../uploads/http-scanner.ts'
import { type ScanFile, type Scanner, scanFileOperation } from '../uploads/scanner.ts'
import type { Config } from './config.ts'
import type { StartContext } from './data.ts'

/** One line of the log for failures in this time. Milliseconds. */
const logInterval = 60_000

/** The scanner of uploads; null if files are not scanned. */
export function openScanner({ scan }: Pick<Config, 'scan'>): Scanner | null {
  if (scan === null) return null
  return scan.type === 'clamd' ? new ClamdScanner(scan.at) : new HttpScanner(scan.url)
}

/** The operation that scans uploads with this scanner. It counts and logs what it finds. */
export function startScans(
  { config, log, metrics }: Pick<StartContext, 'config' | 'log' | 'metrics'>,
  scanner: Scanner,
  blobs: Pick<BlobStore, 'openReceived'>,
): ScanFile {
  const acceptsUnscanned = config.scanFailure === 'accept'
  const mayLogFailure = oncePer(logInterval)
  return scanFileOperation({
    ...{ scanner, blobs, acceptsUnscanned },
    timeout: config.scanTimeout,
    onOutcome(outcome, seconds, { sha256, reason, error }) {
      metrics.scans.observe(outcome, seconds)
      if (outcome === 'refused') log.warn({ sha256, reason }, 'the scanner has refused a file')
      if (outcome === 'too-large')
        log.warn(
          { sha256 },
          `a file is too large for the scanner, and was ${acceptsUnscanned ? 'stored' : 'refused'}`,
        )
      if (outcome === 'failed' && mayLogFailure())
        log.error(
          { err: error },
          `the scanner does not scan files; until it does, uploads are ${acceptsUnscanned ? 'stored without a scan' : 'refused'}`,
        )
    },
  })
}
