import type { FileSystemSpace } from '../../core/file-system-space.ts'

/** Downloads leave this multiple of the space that uploads leave, so that they do not use the space of uploads. */
const factor = 2

/** Whether the disk of the catalog has space for events of downloads (docs/interface.md Y8). */
export const hasRoomForDownloads = (spaces: readonly FileSystemSpace[]): boolean =>
  spaces.every(({ stores, free, reserve }) => stores === 'blobs' || free >= factor * reserve)
