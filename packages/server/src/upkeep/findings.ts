/** Everything that fsck reports: a title and what to do. The codes are stable: programs read them. */
export const findingKinds = {
  'catalog-damaged': {
    title: 'The catalog itself is damaged',
    cure: 'Stop the service and restore a backup: mediabucket restore DIR',
  },
  'bucket-total-wrong': { title: 'Totals of buckets are wrong', cure: 'Run fsck --repair.' },
  'bucket-bytes-wrong': { title: 'Byte counts of buckets are wrong', cure: 'Run fsck --repair.' },
  'bucket-reserved-wrong': {
    title: 'What buckets have reserved for uploads is wrong',
    cure: 'Run fsck --repair.',
  },
  'bucket-sequence-wrong': {
    title: 'Sequences of buckets lie behind their items',
    cure: 'Run fsck --repair.',
  },
  'bucket-ranks-wrong': { title: 'Ranks of buckets are wrong', cure: 'Run fsck --repair.' },
  'bytes-missing': {
    title: 'Items whose bytes are missing',
    cure: 'Copy the files back from a backup (its blobs/ has the same names), or delete the items.',
  },
  'bytes-unreadable': {
    title: 'Items whose bytes cannot be read, or are no regular file',
    cure: 'Look into the disk and the permissions, then copy the files back from a backup.',
  },
  'size-wrong': {
    title: 'Items whose bytes have another length than was sent',
    cure: 'Copy the files back from a backup (its blobs/ has the same names), or delete the items.',
  },
  'hash-wrong': {
    title: 'Items whose bytes are not those that were sent; they answer 500 from now on',
    cure: 'Copy the files back from a backup, then run fsck --verify-bytes, which lets them be served again.',
  },
  'bytes-damaged': {
    title: 'Items that an earlier check found damaged; they answer 500',
    cure: 'Copy the files back from a backup, then run fsck --verify-bytes, which lets them be served again.',
  },
  'bytes-orphaned': {
    title: 'Bytes that no item names',
    cure: 'Run fsck --repair: it moves them to lost+found/ in the data directory.',
  },
  'variant-orphaned': {
    title: 'Variants of pictures that no item has any more',
    cure: 'Run fsck --repair: it moves them to lost+found/ in the data directory.',
  },
  'entry-foreign': {
    title: 'Files and links among the bytes that the service did not put there',
    cure: 'Run fsck --repair: it moves them to lost+found/ in the data directory.',
  },
  'temporary-stale': {
    title: 'Temporary files that nobody writes any more',
    cure: 'Run fsck --repair to move them to lost+found/, or start the service, which drops them.',
  },
  'part-stale': {
    title: 'Pieces of uploads that do not exist any more',
    cure: 'Run fsck --repair: it moves them to lost+found/ in the data directory.',
  },
  'tombstone-with-bytes': {
    title: 'Deleted items whose bytes are still there',
    cure: 'Run fsck --repair, or start the service anew: both finish the deletes.',
  },
  'tombstone-without-bytes': {
    title: 'Tombstones of deleted items whose bytes are gone',
    cure: 'Run fsck --repair, or start the service anew: both forget them.',
  },
  'seeded-without-bytes': {
    title: 'Items that were seeded without bytes',
    cure: 'Nothing: `mediabucket seed` made them so.',
  },
} as const

export type FindingCode = keyof typeof findingKinds

/** Findings that are not faults. */
const notes: ReadonlySet<FindingCode> = new Set(['seeded-without-bytes'])

export interface Finding {
  readonly code: FindingCode
  readonly isFault: boolean
  count: number
  repaired: number
  /** Ids, paths or sentences; at most 10,000. */
  readonly subjects: string[]
}

const mostSubjects = 10_000

export interface Findings {
  add(code: FindingCode, subject: string): void
  repaired(code: FindingCode, count?: number): void
  /** In the order of `findingKinds`. */
  all(): Finding[]
}

export function createFindings(): Findings {
  const found = new Map<FindingCode, Finding>()
  return {
    add(code, subject) {
      const finding = found.get(code) ?? {
        code,
        isFault: !notes.has(code),
        count: 0,
        repaired: 0,
        subjects: [],
      }
      finding.count += 1
      if (finding.subjects.length < mostSubjects) finding.subjects.push(subject)
      found.set(code, finding)
    },
    repaired(code, count = 1) {
      const finding = found.get(code)
      if (finding) finding.repaired += count
    },
    all: () =>
      Object.keys(findingKinds).flatMap((code) => [...found.values()].filter((one) => one.code === code)),
  }
}
