import type { Media } from '@mediabucket/client'
import type { CameraData } from './parse-camera-data.ts'
import { type Addressed, bytesUrl } from './urls.ts'

/** Types of pictures in which cameras and programs write such data. */
export const mayHaveCameraData = (contentType: string): boolean =>
  /^image\/(?:jpeg|png|webp|tiff|avif|hei[cf])$/.test(contentType)

/** Bytes from the start of a file in which the data usually is. */
const headLength = 131_072

/** Reads the data from the start of the file; null if there is none. Rejects if the file cannot be loaded. */
export async function readCameraData(
  media: Addressed & Pick<Media, 'size'>,
  signal: AbortSignal,
): Promise<CameraData | null> {
  const { size } = media
  if (size === 0) return null
  const [response, { parseCameraData }] = await Promise.all([
    fetch(bytesUrl(media), { headers: { range: `bytes=0-${headLength - 1}` }, signal }),
    import('./parse-camera-data.ts'),
  ])
  if (!response.ok || (size > headLength && response.status !== 206))
    throw new Error(`The server responded with ${response.status}`)
  return parseCameraData(await response.arrayBuffer())
}
