import type { Media } from '@mediabucket/client'
import type { Placeholders } from '../listing/placeholders.ts'
import type { FileAccess } from '../service/file-access.ts'

/** What the slide of a file that is not a picture needs: slides are rendered outside GalleryContext. */
export interface FileSlideProps {
  readonly media: Media
  readonly files: FileAccess
  readonly placeholders: Placeholders
}
