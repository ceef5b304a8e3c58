import { randomUUID } from 'node:crypto'
import { appendFile, readFile, rm } from 'node:fs/promises'
import { nullIfMissing, type StateFiles } from './state-files.ts'

/** The properties of an item that are printed, or needed to find it again. */
export interface StoredItem {
  readonly id: string
  readonly url: string
  /** Bytes. */
  readonly size: number
}

/** A request that stores files, by their fingerprints in the order sent, and its Idempotency-Key. */
export interface Batch {
  readonly key: string
  readonly files: readonly string[]
}

/**
 * The requests of a run and their responses, recorded before and after each request. A repeated run reads it, so that no file is
 * stored twice.
 */
export interface UploadJournal {
  /** Random for each first run; keys are derived from it. */
  readonly run: string
  /** When the first run began, in milliseconds since 1970. */
  readonly startedAt: number
  /** Records the run before its first request. */
  readonly begin: () => Promise<void>
  /** True if a later run can continue this one. */
  readonly begun: () => boolean
  /** The item that an earlier run stored for a file; `lost` if the response was lost. */
  readonly stored: (file: string) => StoredItem | 'lost' | null
  /** The batches that an earlier run sent without receiving a response. */
  readonly unanswered: readonly Batch[]
  readonly sending: (batch: Batch) => Promise<void>
  /** `items` are in the order of the files; null if the service stored them and the response was lost. */
  readonly answered: (batch: Batch, items: readonly StoredItem[] | null) => Promise<void>
  /** The service refused the batch and stored nothing. */
  readonly refused: (batch: Batch) => Promise<void>
  readonly remove: () => Promise<void>
}

type Entry =
  | { readonly run: string; readonly at?: number }
  | { readonly sending: Batch }
  | { readonly answered: string; readonly items: readonly StoredItem[] | null }
  | { readonly refused: string }

/** One line of JSON for each entry, appended. */
export async function openJournal(files: StateFiles, command: string): Promise<UploadJournal> {
  const found = await files.use(command, (path) => readFile(path, 'utf8').catch(nullIfMissing))
  const entries = (found ?? '').split('\n').flatMap(readEntry)
  const earlier = entries.find((entry) => 'run' in entry)
  const { run, at: startedAt = Date.now() } = earlier ?? { run: randomUUID() }
  const open = new Map<string, Batch>()
  const items = new Map<string, StoredItem | 'lost'>()
  for (const entry of entries) {
    if ('sending' in entry) open.set(entry.sending.key, entry.sending)
    else if ('answered' in entry) {
      const batch = open.get(entry.answered)
      for (const [index, file] of batch?.files.entries() ?? [])
        items.set(file, entry.items === null ? 'lost' : (entry.items[index] ?? 'lost'))
      open.delete(entry.answered)
    } else if ('refused' in entry) open.delete(entry.refused)
  }
  let begun = earlier !== undefined
  let isNew = !begun

  async function append(...added: readonly Entry[]): Promise<void> {
    const lines = isNew ? [{ run, at: startedAt }, ...added] : added
    isNew = false
    begun = true
    // The file may end with an incomplete line of a killed process.
    const text = lines.map((line) => `\n${JSON.stringify(line)}`).join('')
    await files.use(command, (path) => appendFile(path, text, { mode: 0o600, flush: true }))
  }

  return {
    run,
    startedAt,
    async begin() {
      if (isNew) await append()
    },
    begun: () => begun,
    stored: (file) => items.get(file) ?? null,
    unanswered: [...open.values()],
    sending: (batch) => append({ sending: batch }),
    answered: (batch, items) => append({ answered: batch.key, items }),
    refused: (batch) => append({ refused: batch.key }),
    async remove() {
      if (begun) await files.use(command, (path) => rm(path, { force: true }))
    },
  }
}

function readEntry(line: string): Entry[] {
  const entry: unknown = parseJson(line)
  if (!isObject(entry)) return []
  const { run, at, sending, answered, items, refused } = entry
  if (typeof run === 'string') return [typeof at === 'number' ? { run, at } : { run }]
  if (typeof refused === 'string') return [{ refused }]
  if (isBatch(sending)) return [{ sending }]
  if (typeof answered !== 'string') return []
  return Array.isArray(items) && items.every(isItem) ? [{ answered, items }] : [{ answered, items: null }]
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return null
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null

const isBatch = (value: unknown): value is Batch =>
  isObject(value) &&
  typeof value['key'] === 'string' &&
  Array.isArray(value['files']) &&
  value['files'].every((file) => typeof file === 'string')

const isItem = (value: unknown): value is StoredItem =>
  isObject(value) &&
  typeof value['id'] === 'string' &&
  typeof value['url'] === 'string' &&
  typeof value['size'] === 'number'
