import type { Client } from '@mediabucket/client'
import type { ReadonlySignal } from '@preact/signals'
import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { Preferences } from './preferences.tsx'
import type { Router, Section } from './router.ts'
import type { Deletion } from './selection/deletion.ts'
import type { LocationWarning } from './selection/location-warning.ts'
import type { Selection, SelectMany } from './selection/selection.ts'
import type { Sharing } from './selection/sharing.ts'
import type { BucketUsage } from './service/bucket.ts'
import type { Connection } from './service/connection.ts'
import type { Edits } from './service/edits.ts'
import type { FileAccess } from './service/file-access.ts'
import type { MediaCache } from './service/media-cache.ts'
import type { BucketToken } from './session/session.ts'
import type { Notices } from './shell/notices.ts'
import type { Placeholders } from './tiles/placeholders.ts'
import type { ShownList } from './timeline/shown-list.ts'
import type { Timeline } from './timeline/timeline.ts'
import type { Trash } from './trash/trash.ts'
import type { Uploads } from './uploads/uploads.ts'

/** The state and the operations of the page while a person is signed in. */
export interface Gallery {
  readonly client: Client
  readonly tokenInfo: BucketToken
  readonly canDelete: boolean
  readonly canEdit: boolean
  canOpen(section: Section): boolean
  /** Whether a page is offered: it can be opened, or says which scope it needs. */
  offers(section: Section): boolean
  /** Whether *Ask for files* is offered: it creates upload links, or says which scopes that needs. */
  readonly canAsk: boolean
  readonly edits: Edits
  readonly router: Router
  readonly connection: Connection
  readonly notices: Notices
  readonly preferences: Preferences
  readonly shownList: ShownList
  /** The whole bucket, or what of it matches a search and filters. */
  readonly timeline: Timeline
  /** Whether items of the timeline are known. */
  readonly isShown: ReadonlySignal<boolean>
  readonly mediaCache: MediaCache
  readonly placeholders: Placeholders
  readonly usage: BucketUsage
  readonly selection: Selection
  readonly selectMany: SelectMany
  readonly deletion: Deletion
  readonly locationWarning: LocationWarning
  readonly trash: Trash
  readonly uploads: Uploads
  /** Loads the code that the viewer needs for its first item. */
  loadPhotoSwipe(): Promise<typeof import('./viewer/photo-swipe.tsx')>
  readonly files: FileAccess
  readonly sharing: Sharing
  signOut(): void
  close(): void
}

export const GalleryContext = createContext<Gallery | null>(null)

export function useGallery(): Gallery {
  const gallery = useContext(GalleryContext)
  if (gallery === null) throw new Error('useGallery() was called outside GalleryContext')
  return gallery
}
