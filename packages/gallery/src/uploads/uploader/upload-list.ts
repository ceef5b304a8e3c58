import { fingerprintOf, type UploadEntry } from '../upload-entry.ts'
import type { UploadRow, UploadState, UploadTotals } from '../uploads-view.ts'

/** All files of the list, in sets by state: no operation on one file looks at the others. */
export interface UploadList {
  add(entry: UploadEntry): void
  remove(entry: UploadEntry): void
  clear(): void
  get(id: string): UploadEntry | undefined
  /** An entry of the same file that is not done. */
  unfinished(file: Pick<UploadEntry, 'path' | 'size' | 'modified'>): UploadEntry | undefined
  /** An entry that is moved to `waiting` becomes the last of those. */
  move(entry: UploadEntry, state: UploadState): void
  /** Changes the size, the bytes sent or the file of an entry. */
  update(
    entry: UploadEntry,
    change: Partial<Pick<UploadEntry, 'size' | 'sent' | 'modified' | 'file' | 'contentType'>>,
  ): void
  /** Puts entries that were sending in front of those that wait. */
  requeue(entries: readonly UploadEntry[]): void
  in(state: UploadState): ReadonlySet<UploadEntry>
  totals(): UploadTotals
  rows(most: number, alone: (entry: UploadEntry) => boolean): UploadRow[]
}

const states: readonly UploadState[] = ['waiting', 'sending', 'paused', 'done', 'failed', 'needed']

/** Rows for these many files of one request; the others of it stand among those that wait. */
const mostSending = 3

/** An empty file counts as one byte, so that it shows when it is done. */
const weightOf = (entry: UploadEntry): number => Math.max(entry.size, 1)

export function createUploadList(): UploadList {
  const byId = new Map<string, UploadEntry>()
  const byFingerprint = new Map<string, UploadEntry>()
  const byState = new Map(states.map((state) => [state, new Set<UploadEntry>()]))
  let [weight, sentWeight, size, sentBytes] = [0, 0, 0, 0]

  const setOf = (state: UploadState): Set<UploadEntry> => byState.get(state) ?? new Set()
  const sentWeightOf = (entry: UploadEntry) => (entry.state === 'done' ? weightOf(entry) : entry.sent)

  /** Counts an entry in (1) or out (-1). */
  function count(entry: UploadEntry, sign: 1 | -1): void {
    weight += sign * weightOf(entry)
    sentWeight += sign * sentWeightOf(entry)
    size += sign * entry.size
    sentBytes += sign * entry.sent
  }

  function changed(entry: UploadEntry, change: () => void): void {
    count(entry, -1)
    change()
    count(entry, 1)
  }

  function drop(entry: UploadEntry): void {
    setOf(entry.state).delete(entry)
    const print = fingerprintOf(entry)
    if (byFingerprint.get(print) === entry) byFingerprint.delete(print)
  }

  function move(entry: UploadEntry, state: UploadState): void {
    drop(entry)
    changed(entry, () => {
      entry.state = state
      if (state === 'done') entry.sent = entry.size
    })
    setOf(state).add(entry)
    if (state !== 'done') byFingerprint.set(fingerprintOf(entry), entry)
  }

  function* urgent(): Generator<UploadEntry> {
    const sending = [...setOf('sending')]
    yield* sending.slice(0, mostSending)
    yield* setOf('failed')
    yield* setOf('needed')
    yield* setOf('paused')
    yield* sending.slice(mostSending)
    yield* setOf('waiting')
    yield* setOf('done')
  }

  return {
    add(entry) {
      byId.set(entry.id, entry)
      count(entry, 1)
      move(entry, entry.state)
    },
    remove(entry) {
      if (!byId.delete(entry.id)) return
      count(entry, -1)
      drop(entry)
    },
    clear() {
      byId.clear()
      byFingerprint.clear()
      for (const set of byState.values()) set.clear()
      weight = sentWeight = size = sentBytes = 0
    },
    get: (id) => byId.get(id),
    unfinished: (file) => byFingerprint.get(fingerprintOf(file)),
    move,
    update(entry, change) {
      const print = fingerprintOf(entry)
      changed(entry, () => Object.assign(entry, change))
      if (print === fingerprintOf(entry) || byFingerprint.get(print) !== entry) return
      byFingerprint.delete(print)
      byFingerprint.set(fingerprintOf(entry), entry)
    },
    requeue(entries) {
      const behind = [...setOf('waiting')]
      for (const entry of entries) move(entry, 'waiting')
      byState.set('waiting', new Set([...entries, ...behind]))
    },
    in: setOf,
    totals() {
      const counted = (state: UploadState) => setOf(state).size
      return {
        all: byId.size,
        left: counted('waiting') + counted('sending') + counted('paused'),
        done: counted('done'),
        failed: counted('failed'),
        needed: counted('needed'),
        paused: counted('paused'),
        sentBytes,
        allBytes: size,
        share: weight === 0 ? 0 : Math.min(1, sentWeight / weight),
      }
    },
    rows(most, alone) {
      const rows: UploadRow[] = []
      for (const entry of urgent()) {
        if (rows.length === most) break
        const { id, path, contentType, size: bytes, sent, state, reason } = entry
        rows.push({ id, path, contentType, size: bytes, sent, state, reason, alone: alone(entry) })
      }
      return rows
    },
  }
}
