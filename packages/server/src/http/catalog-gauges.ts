import { setImmediate } from 'node:timers'
import type { Aggregator } from 'prom-client'
import type { CatalogStatistics } from '../storage/catalog/records.ts'

/** Reads the catalog once for all gauges of a scrape. */
export class ScrapeStatistics {
  readonly #read: () => Promise<CatalogStatistics>
  #ofThisScrape: Promise<CatalogStatistics> | null = null

  constructor(read: () => Promise<CatalogStatistics>) {
    this.#read = read
  }

  read(): Promise<CatalogStatistics> {
    if (this.#ofThisScrape === null) {
      this.#ofThisScrape = this.#read()
      setImmediate(() => {
        this.#ofThisScrape = null
      })
    }
    return this.#ofThisScrape
  }
}

/** The name, the help, the value, and the aggregator where it is not `first`. */
type CatalogGauge = readonly [string, string, (statistics: CatalogStatistics) => number, Aggregator?]

export const catalogGauges: readonly CatalogGauge[] = [
  ['mediabucket_items', 'Items in all buckets.', ({ items }) => items],
  ['mediabucket_items_bytes', 'Bytes of the items in all buckets.', ({ bytes }) => bytes],
  [
    'mediabucket_expired_items',
    'Items that have expired and are not removed yet. Lists and totals omit them.',
    ({ expiredItems }) => expiredItems,
  ],
  [
    'mediabucket_unfinished_uploads',
    'Unfinished resumable uploads.',
    ({ unfinishedUploads }) => unfinishedUploads,
  ],
  [
    'mediabucket_unfinished_upload_bytes',
    'Bytes that unfinished resumable uploads have reserved: their lengths where known, otherwise the received bytes.',
    ({ unfinishedBytes }) => unfinishedBytes,
  ],
  [
    'mediabucket_writer_queue_changes',
    'Catalog changes that wait for their commit.',
    ({ waitingChanges }) => waitingChanges,
    'sum',
  ],
  ['mediabucket_wal_bytes', 'Size of the write-ahead log of the catalog.', ({ logBytes }) => logBytes],
  [
    'mediabucket_webhooks_failing',
    'Webhooks whose last delivery failed and will be repeated.',
    ({ failingWebhooks }) => failingWebhooks,
  ],
  [
    'mediabucket_webhooks_stopped',
    'Webhooks that were switched off because of their receivers: after three days of failures, or a response 410.',
    ({ stoppedWebhooks }) => stoppedWebhooks,
  ],
  [
    'mediabucket_first_bucket_timestamp_seconds',
    'When the oldest bucket was created, in seconds since 1970; 0 where there is none.',
    ({ firstBucketAt }) => (firstBucketAt ?? 0) / 1000,
  ],
  [
    'mediabucket_last_backup_timestamp_seconds',
    'When the last backup finished, in seconds since 1970; 0 where there was none.',
    (read) => (lastRun('backup', read)?.finishedAt ?? 0) / 1000,
  ],
  [
    'mediabucket_last_backup_faults',
    'Items that the last backup could not copy.',
    (read) => lastRun('backup', read)?.faults ?? 0,
  ],
  [
    'mediabucket_last_fsck_timestamp_seconds',
    'When the last fsck finished, in seconds since 1970; 0 where there was none.',
    (read) => (lastRun('fsck', read)?.finishedAt ?? 0) / 1000,
  ],
  [
    'mediabucket_last_fsck_faults',
    'Faults that remained after the last fsck.',
    (read) => lastRun('fsck', read)?.faults ?? 0,
  ],
]

const lastRun = (kind: 'backup' | 'fsck', { upkeep }: CatalogStatistics) =>
  upkeep.find((one) => one.kind === kind)
