import type { ChosenFile } from '../chosen-files.ts'
import type { UploadRow, UploadState, UploadTotals } from '../uploads-view.ts'

export interface FormKey {
  /** The Idempotency-Key of the request. */
  readonly key: string
  /** The number of files in the request. */
  readonly count: number
}

/** One file in the list of uploads. Only `UploadList` changes its state. */
export interface UploadEntry {
  readonly id: string
  readonly path: string
  readonly name: string
  contentType: string
  /** Bytes. */
  size: number
  /** Milliseconds since 1970. */
  modified: number
  /** Null if it could not be read, or must be chosen again. */
  file: File | null
  reread: ChosenFile['reread']
  state: UploadState
  /** Bytes. */
  sent: number
  /** Why it failed; empty otherwise. */
  reason: string
  /** Whether a retry would fail too. */
  isFinal: boolean
  /** The id of its resumable upload; null if there is none. */
  uploadId: string | null
  /** The form that it was last sent in; null if there is none. */
  form: FormKey | null
  /** The id of the stored item; null before it is stored. */
  itemId: string | null
  /** The `sampleHash` of the content that an earlier visit sent; null if any content may continue it. */
  sample: number | null
  /** Whether the browser stores it for a later visit. */
  isSaved: boolean
  readonly addedAt: number
}

export function newEntry({ file, path, reread }: ChosenFile, id: string): UploadEntry {
  return {
    id,
    path,
    name: path.slice(path.lastIndexOf('/') + 1),
    contentType: file?.type ?? '',
    size: file?.size ?? 0,
    modified: file?.lastModified ?? 0,
    file,
    reread,
    state: 'waiting',
    sent: 0,
    reason: '',
    isFinal: false,
    uploadId: null,
    form: null,
    itemId: null,
    sample: null,
    isSaved: false,
    addedAt: Date.now(),
  }
}

/** Identifies a file by path, size and time. Files of one name in different folders are different files. */
const fingerprintOf = ({ path, size, modified }: Pick<UploadEntry, 'path' | 'size' | 'modified'>): string =>
  `${size} ${modified} ${path}`

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
        const { id, path, contentType, size, sent, state, reason, isFinal } = entry
        rows.push({
          ...{ id, path, contentType, size, sent, state, reason, isFinal },
          isSeparate: isSeparate(entry),
        })
      }
      return rows
    },
  }
}
