import type { FileSystemSpace } from '../../core/file-system-space.ts'

/** Events that clients can cause in any number leave this multiple of the space that uploads leave, so that they do not use the space of uploads. */
const factor = 2

/** Whether the disk of the catalog has space for events of downloads and links (docs/interface.md Y1, Y8). */
export const hasRoomForEvents = (spaces: readonly FileSystemSpace[]): boolean =>
  spaces.every(({ stores, free, reserve }) => stores === 'blobs' || free >= factor * reserve)
