import { fileURLToPath } from 'node:url'
import { type Gallery, readGallery } from '../http/gallery/gallery-files.ts'
import type { StartContext } from './start-context.ts'

/** Reads the built gallery. Null where it is turned off or not built. */
export async function loadGallery({ config, log }: StartContext): Promise<Gallery | null> {
  if (!config.gallery) return null
  const gallery = await readGallery(galleryDirectory())
  if (gallery === null)
    log.warn(
      'the gallery is not built, so there is no page at /; `npm run build` in packages/gallery builds it',
    )
  return gallery
}

/** The directory of the built files in the gallery's package. */
const galleryDirectory = (): string =>
  fileURLToPath(new URL('dist/', import.meta.resolve('@mediabucket/gallery/package.json')))
