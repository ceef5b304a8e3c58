/** The findings of fsck: a title and a cure. The codes are stable, because programs read them. */
export const findingKinds = {
  'catalog-damaged': {
    title: 'The catalog is damaged',
    cure: 'Copy what can be read with mediabucket backup DIR, to another place than the earlier backups. Then stop the service and restore this or an earlier backup with mediabucket restore DIR.',
  },
  'meta-wrong': {
    title: 'Facts about the whole catalog (table meta) that are missing or malformed',
    cure: 'Run fsck --repair, which writes new ones, then restart the service. Readers of lists and of the feed start again then.',
  },
  'row-unreadable': {
    title: 'Items whose rows cannot be read; requests for them receive 500',
    cure: 'Restore a backup from before the damage: a new backup does not have these items.',
  },
  'row-wrong': {
    title: 'Values of the catalog that the service did not write',
    cure: 'Requests that need these rows may fail. Restore a backup that you trust, or delete the items, tokens, webhooks or uploads to which they belong.',
  },
  'row-dangling': {
    title: 'Rows of the catalog that belong to rows which do not exist',
    cure: 'Run fsck --repair: it removes them. No item is among them.',
  },
  'check-failed': {
    title: 'Checks that could not be completed because of these values',
    cure: 'Correct what is reported above, then run fsck again.',
  },
  'bucket-total-wrong': { title: 'Buckets with a wrong number of items', cure: 'Run fsck --repair.' },
  'bucket-bytes-wrong': { title: 'Buckets with a wrong number of bytes', cure: 'Run fsck --repair.' },
  'bucket-reserved-wrong': {
    title: 'Buckets with a wrong reservation for uploads',
    cure: 'Run fsck --repair.',
  },
  'bucket-sequence-wrong': {
    title: 'Buckets whose next sequence number is too low for their items',
    cure: 'Run fsck --repair.',
  },
  'bucket-expiry-wrong': {
    title: 'Buckets whose items would expire too late',
    cure: 'Run fsck --repair.',
  },
  'bucket-ranks-wrong': { title: 'Buckets with wrong ranks', cure: 'Run fsck --repair.' },
  'bucket-names-wrong': {
    title: 'Buckets in which searches by name may miss items',
    cure: 'Run fsck --repair.',
  },
  'bucket-feed-wrong': {
    title: 'Buckets whose revision is below the numbers of their feed',
    cure: 'Run fsck --repair. Until then changes of their items fail.',
  },
  'bucket-labels-wrong': { title: 'Buckets with a wrong index of labels', cure: 'Run fsck --repair.' },
  'bucket-keys-wrong': { title: 'Buckets with wrong numbers of items with keys', cure: 'Run fsck --repair.' },
  'bucket-usage-wrong': {
    title: 'Buckets whose usage by day does not add up to what they have',
    cure: 'Run fsck --repair. The usage of days whose values are damaged may stay too low.',
  },
  'id-malformed': {
    title: 'Rows with ids that the service did not create: something else has changed the catalog',
    cure: 'Restore a backup that you trust. fsck --repair removes such rows of uploads and deletions, but not those of items.',
  },
  'tombstone-wrong': {
    title: 'Tombstones of items that exist, or of uploads in progress',
    cure: 'Run fsck --repair: it removes the tombstones, and keeps the bytes. If such an item was deleted and is listed again, delete it.',
  },
  'upload-wrong': {
    title: 'Unfinished uploads with the id of an item',
    cure: 'Run fsck --repair: it ends the uploads, and keeps the items with their bytes.',
  },
  'bytes-missing': {
    title: 'Items whose bytes are missing',
    cure: 'Copy the files back from a backup (its blobs/ has the same names), restore a backup if there is no such file, or delete the items.',
  },
  'bytes-unreadable': {
    title: 'Items whose bytes cannot be read or are not a regular file',
    cure: 'Check the disk and the permissions, then copy the files back from a backup. Bytes in the catalog have no file: restore a backup.',
  },
  'size-wrong': {
    title: 'Items whose bytes have the wrong size',
    cure: 'Copy the files back from a backup (its blobs/ has the same names), restore a backup if there is no such file, or delete the items.',
  },
  'hash-wrong': {
    title: 'Items whose bytes have changed; requests for them now receive 500',
    cure: 'Copy the files back from a backup, then run fsck --verify-bytes. The service then serves them again. Bytes in the catalog have no file: restore a backup, or delete the items.',
  },
  'bytes-damaged': {
    title: 'Items that an earlier check marked as damaged; requests for them receive 500',
    cure: 'Copy the files back from a backup, then run fsck --verify-bytes. The service then serves them again. Bytes in the catalog have no file: restore a backup, or delete the items.',
  },
  'object-part-wrong': {
    title:
      'Parts of unfinished uploads of objects whose bytes are missing, unreadable or not those that were sent',
    cure: 'Send these parts again, or abort the uploads (AbortMultipartUpload). An object that consists of them would be wrong.',
  },
  'bytes-orphaned': {
    title: 'Bytes without an item',
    cure: 'Run fsck --repair: it moves them to lost+found/ in the data directory.',
  },
  'content-orphaned': {
    title: 'Bytes in the catalog without an item',
    cure: 'Run fsck --repair: it moves them to lost+found/ in the data directory.',
  },
  'variant-orphaned': {
    title: 'Variants of pictures without an item',
    cure: 'Run fsck --repair: it moves them to lost+found/ in the data directory.',
  },
  'entry-foreign': {
    title: 'Files and links in the blob directories that the service did not create',
    cure: 'Run fsck --repair: it moves them to lost+found/ in the data directory.',
  },
  'entry-unreadable': {
    title: 'Directories of bytes that this user cannot read',
    cure: 'Run fsck as the owner of the data, or give the directories to that user. They may contain the bytes of items, so --repair does not move them.',
  },
  'temporary-stale': {
    title: 'Temporary files that are no longer in use',
    cure: 'Run fsck --repair to move them to lost+found/, or start the service, which deletes them.',
  },
  'part-stale': {
    title: 'Partial files without an upload',
    cure: 'Run fsck --repair: it moves them to lost+found/ in the data directory.',
  },
  'tombstone-with-bytes': {
    title: 'Deleted items whose bytes still exist',
    cure: 'Run fsck --repair, or restart the service: both complete the deletions.',
  },
  'tombstone-without-bytes': {
    title: 'Tombstones of deleted items whose bytes no longer exist',
    cure: 'Run fsck --repair, or restart the service: both remove the tombstones.',
  },
} as const

export type FindingCode = keyof typeof findingKinds

export interface Finding {
  readonly code: FindingCode
  count: number
  repaired: number
  /** Ids, paths or sentences; at most 10,000. */
  readonly subjects: string[]
}

const maxSubjects = 10_000

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
      const finding = found.get(code) ?? { code, count: 0, repaired: 0, subjects: [] }
      finding.count += 1
      if (finding.subjects.length < maxSubjects) finding.subjects.push(subject)
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
