/** A file system on which data are stored. Bytes. */
export interface FileSystemSpace {
  readonly stores: 'blobs' | 'catalog' | 'blobs and catalog'
  readonly free: number
  readonly total: number
  /** Uploads leave at least this much free. */
  readonly reserve: number
}

const largest = 64e6
const share = 10

/** The default of the reserve that uploads leave free: a tenth of the file system, 64 MB at the most. Bytes. */
export const defaultReserve = (total: number): number => Math.min(largest, Math.floor(total / share))
