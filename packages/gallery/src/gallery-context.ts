import type { BucketManager, Client, Token } from '@mediabucket/client'
import type { ReadonlySignal, Signal } from '@preact/signals'
import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { ServiceAddress } from './buckets/address.ts'
import type { BucketList } from './buckets/bucket-list.ts'
import type { Usages } from './buckets/usages.ts'
import type { Preferences } from './preferences.tsx'
import type { Router, Section } from './router.ts'
import type { Deletion } from './selection/deletion.ts'
import type { LocationWarning } from './selection/location-warning.ts'
import type { Selection, SelectMany } from './selection/selection.ts'
import type { Sharing } from './selection/sharing.ts'
import type { BucketUsage } from './service/bucket.ts'
import type { Connection } from './service/connection.ts'
import type { FileAccess } from './service/file-access.ts'
import type { MediaCache } from './service/media-cache.ts'
import type { BucketToken, SignedIn } from './session/session.ts'
import type { Notices } from './shell/notices.ts'
import type { Placeholders } from './tiles/placeholders.ts'
import type { ShownList } from './timeline/shown-list.ts'
import type { Timeline } from './timeline/timeline.ts'
import type { Trash } from './trash/trash.ts'
import type { Uploads } from './uploads/uploads.ts'

/** Where a service token has opened a bucket. */
export interface PlaceInService {
  /** The address of the list of buckets. */
  readonly origin: string
  /** What the addresses of the bucket begin with. */
  readonly prefix: string
  /** Called when the bucket does not exist any more, with the number of files that were still to be uploaded. */
  onGone(unfinished: number): void
}

/** What every page of a signed-in person has. */
export interface Page {
  readonly connection: Connection
  readonly notices: Notices
  readonly preferences: Preferences
  readonly tokenInfo: Token
  signOut(): void
}

/** One bucket: what the pages of its tokens and webhooks need. */
export interface BucketAccess extends Page {
  readonly client: Client
  /** The token, with its scopes in this bucket. */
  readonly tokenInfo: BucketToken
}

/** The state and the operations of the page that shows a bucket. */
export interface Gallery extends BucketAccess {
  /** The address of the list of buckets, from which a service token has opened this one; null for the bucket of the token. */
  readonly origin: string | null
  readonly canDelete: boolean
  readonly canEdit: boolean
  canOpen(section: Section): boolean
  /** Whether a page is offered: it can be opened, or says which scope it needs. */
  offers(section: Section): boolean
  /** Whether *Ask for files* is offered: it creates upload links, or says which scopes that needs. */
  readonly canAsk: boolean
  /** Increased with each change of labels on this page. */
  readonly labelChanges: Signal<number>
  readonly router: Router
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
  loadPhotoSwipe(): Promise<
    typeof import('./viewer/photo-swipe.tsx') & {
      /** Those of buckets that have none of their own. */
      readonly serviceSizes: readonly string[]
    }
  >
  readonly files: FileAccess
  readonly sharing: Sharing
  close(): void
}

export const GalleryContext = createContext<Gallery | null>(null)

export function useGallery(): Gallery {
  const gallery = useContext(GalleryContext)
  if (gallery === null) throw new Error('useGallery() was called outside GalleryContext')
  return gallery
}

/** A bucket of a service, whose pages are not opened from a gallery. */
export interface BucketOfService extends BucketAccess {
  /** The page that they were opened from. */
  readonly parent: { readonly label: string; open(): void }
}

/** Around the pages of a bucket that is not shown by a gallery. */
export const BucketContext = createContext<BucketOfService | null>(null)

export function useBucket(): BucketAccess {
  const bucket = useContext(BucketContext)
  return bucket ?? useGallery()
}

/** The pages of a token of the service: its buckets. */
export interface Service extends Page {
  /** Those of the token that hold in every bucket. */
  readonly scopes: readonly string[]
  readonly address: ServiceAddress
  /** Whether no bucket has the name in the address. */
  readonly isGone: ReadonlySignal<boolean>
  readonly buckets: BucketManager
  readonly list: BucketList
  readonly usages: Usages
  /** The session in a bucket, for its gallery. */
  signedInTo(bucket: string): SignedIn
  placeOf(bucket: string): PlaceInService
  /** The connection for requests that name this bucket. */
  connectionTo(bucket: string): Connection
  accessTo(bucket: string): BucketOfService
  close(): void
}

/** Around the pages of a service. */
export const ServiceContext = createContext<Service | null>(null)

export function useService(): Service {
  const service = useContext(ServiceContext)
  if (service === null) throw new Error('useService() was called outside ServiceContext')
  return service
}

export function usePage(): Page {
  const service = useContext(ServiceContext)
  return service ?? useGallery()
}
