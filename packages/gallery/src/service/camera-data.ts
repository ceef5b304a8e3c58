import type { Media } from '@mediabucket/client'
import type { FileAccess } from './file-access.ts'
import type { CameraData } from './parse-camera-data.ts'
import type { Addressed } from './urls.ts'

/** Types of pictures in which cameras and programs write such data. */
export const mayHaveCameraData = (contentType: string): boolean =>
  /^image\/(?:jpeg|png|webp|tiff|avif|hei[cf])$/.test(contentType)

/** Bytes from the start of a file in which the data usually is. */
const headLength = 131_072

/** Reads the data from the start of the file; null if there is none. Rejects if the file cannot be loaded. */
export async function readCameraData(
  files: Pick<FileAccess, 'bytes'>,
  media: Addressed & Pick<Media, 'size'>,
  signal: AbortSignal,
): Promise<CameraData | null> {
  if (media.size === 0) return null
  const [response, { parseCameraData }] = await Promise.all([
    files.bytes(media, { firstBytes: headLength, signal }),
    import('./parse-camera-data.ts'),
  ])
  return parseCameraData(await response.arrayBuffer())
}
