/** Rows of the first read of a bucket, and the most of one read. An item may have a hundred kilobytes. */
const firstLength = 20
const longestLength = 100

/** Bytes of the rows of one read. Between two reads of a list, other requests are handled. */
const readBytes = 256 * 1024

/** Buckets whose rows have a known length. */
const maxKnown = 10_000

/** How many rows of a list one read has, by the bytes that those of the same bucket had before. */
export class ReadLengths {
  readonly #lengths = new Map<number, number>()

  next(bucketId: number): number {
    return this.#lengths.get(bucketId) ?? firstLength
  }

  /** The rows of a read had these bytes as JSON. */
  note(bucketId: number, rows: number, bytes: number): void {
    if (rows === 0) return
    if (this.#lengths.size >= maxKnown) this.#lengths.clear()
    const fitting = Math.floor((readBytes * rows) / Math.max(bytes, 1))
    this.#lengths.set(bucketId, Math.min(Math.max(fitting, 1), longestLength))
  }
}
