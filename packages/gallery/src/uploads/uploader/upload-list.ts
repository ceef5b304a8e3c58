import type { UploadRow, UploadState, UploadTotals } from '../uploads-view.ts'
import { fingerprintOf, type UploadEntry } from './upload-entry.ts'

/** The files in the list of uploads, in sets by state. The cost of an operation does not depend on the number of files. */
export interface UploadList {
  add(entry: UploadEntry): void
  remove(entry: UploadEntry): void
  clear(): void
  get(id: string): UploadEntry | undefined
  /** The entry of the same file that is not done, if there is one. */
  unfinished(file: Pick<UploadEntry, 'path' | 'size' | 'modified'>): UploadEntry | undefined
  /** Changes the state of an entry, which becomes the last in that state. */
  move(entry: UploadEntry, state: UploadState): void
  /** Changes properties of an entry that the totals or the fingerprint depend on. */
  update(
    entry: UploadEntry,
    change: Partial<Pick<UploadEntry, 'size' | 'sent' | 'modified' | 'file' | 'contentType'>>,
  ): void
  in(state: UploadState): ReadonlySet<UploadEntry>
  totals(): UploadTotals
  /** The first `max` rows. */
  rows(max: number, isSeparate: (entry: UploadEntry) => boolean): UploadRow[]
}

const states: readonly UploadState[] = ['waiting', 'sending', 'paused', 'done', 'failed', 'unavailable']

/** Files of one request that are listed first; the others come before the waiting files. */
const maxSendingFirst = 3

/** An empty file counts as one byte, so that it adds to the progress. */
const weightOf = (entry: UploadEntry): number => Math.max(entry.size, 1)

export function createUploadList(): UploadList {
  const byId = new Map<string, UploadEntry>()
  const byFingerprint = new Map<string, UploadEntry>()
  const byState = new Map(states.map((state) => [state, new Set<UploadEntry>()]))
  let [weight, sentWeight, allBytes, sentBytes] = [0, 0, 0, 0]

  const setOf = (state: UploadState): Set<UploadEntry> => byState.get(state) ?? new Set()
  const sentWeightOf = (entry: UploadEntry) => (entry.state === 'done' ? weightOf(entry) : entry.sent)

  /** Adds an entry to the sums (1) or subtracts it (-1). */
  function addToSums(entry: UploadEntry, sign: 1 | -1): void {
    weight += sign * weightOf(entry)
    sentWeight += sign * sentWeightOf(entry)
    allBytes += sign * entry.size
    sentBytes += sign * entry.sent
  }

  function changeCounted(entry: UploadEntry, change: () => void): void {
    addToSums(entry, -1)
    change()
    addToSums(entry, 1)
  }

  function detach(entry: UploadEntry): void {
    setOf(entry.state).delete(entry)
    const fingerprint = fingerprintOf(entry)
    if (byFingerprint.get(fingerprint) === entry) byFingerprint.delete(fingerprint)
  }

  function move(entry: UploadEntry, state: UploadState): void {
    detach(entry)
    changeCounted(entry, () => {
      entry.state = state
      if (state === 'done') entry.sent = entry.size
    })
    setOf(state).add(entry)
    if (state !== 'done') byFingerprint.set(fingerprintOf(entry), entry)
  }

  function* inViewOrder(): Generator<UploadEntry> {
    const sending = [...setOf('sending')]
    yield* sending.slice(0, maxSendingFirst)
    yield* setOf('failed')
    yield* setOf('unavailable')
    yield* setOf('paused')
    yield* sending.slice(maxSendingFirst)
    yield* setOf('waiting')
    yield* setOf('done')
  }

  return {
    add(entry) {
      byId.set(entry.id, entry)
      addToSums(entry, 1)
      move(entry, entry.state)
    },
    remove(entry) {
      if (!byId.delete(entry.id)) return
      addToSums(entry, -1)
      detach(entry)
    },
    clear() {
      byId.clear()
      byFingerprint.clear()
      for (const set of byState.values()) set.clear()
      weight = sentWeight = allBytes = sentBytes = 0
    },
    get: (id) => byId.get(id),
    unfinished: (file) => byFingerprint.get(fingerprintOf(file)),
    move,
    update(entry, change) {
      const fingerprint = fingerprintOf(entry)
      changeCounted(entry, () => Object.assign(entry, change))
      if (fingerprint === fingerprintOf(entry) || byFingerprint.get(fingerprint) !== entry) return
      byFingerprint.delete(fingerprint)
      byFingerprint.set(fingerprintOf(entry), entry)
    },
    in: setOf,
    totals() {
      const countOf = (state: UploadState) => setOf(state).size
      return {
        all: byId.size,
        left: countOf('waiting') + countOf('sending') + countOf('paused'),
        done: countOf('done'),
        failed: countOf('failed'),
        unavailable: countOf('unavailable'),
        paused: countOf('paused'),
        sentBytes,
        allBytes,
        share: weight === 0 ? 0 : Math.min(1, sentWeight / weight),
      }
    },
    rows(max, isSeparate) {
      const rows: UploadRow[] = []
      for (const entry of inViewOrder()) {
        if (rows.length === max) break
        const { id, path, contentType, size, sent, state, reason } = entry
        rows.push({ id, path, contentType, size, sent, state, reason, isSeparate: isSeparate(entry) })
      }
      return rows
    },
  }
}
