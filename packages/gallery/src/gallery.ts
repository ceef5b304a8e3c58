import type { Token } from '@mediabucket/client'
import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import { copyText } from './copy-text.ts'
import { createUsage, type Usage } from './listing/bucket-usage.ts'
import { createListing, type Listing } from './listing/listing.ts'
import { createMediaCache, type MediaCache } from './listing/media-cache.ts'
import { refreshWhileVisible } from './listing/refresh-while-visible.ts'
import { createRouter, type Router } from './routing/router.ts'
import { createDeletion, type Deletion } from './selection/deletion.ts'
import { createSelection, type Selection } from './selection/selection.ts'
import { type Connection, createConnection } from './service/connection.ts'
import type { Session, SignedIn } from './session/session.ts'
import { createNotices, type Notices } from './shell/notices.ts'
import { strings } from './strings.ts'
import { createUploads, type Uploads } from './uploads/uploads.ts'

/** Everything that one signed-in person works with. */
export interface Gallery {
  readonly about: Token
  readonly canDelete: boolean
  readonly router: Router
  readonly connection: Connection
  readonly notices: Notices
  readonly listing: Listing
  readonly items: MediaCache
  readonly usage: Usage
  readonly selection: Selection
  readonly deletion: Deletion
  readonly uploads: Uploads
  /** The part of the viewer that is loaded with the first item that is opened. */
  loadPhotoSwipe(): Promise<typeof import('./viewer/photo-swipe.tsx')>
  copyLinks(ids: readonly string[]): Promise<void>
  /** The links of all files of the list of uploads that are done. */
  copyUploaded(): Promise<void>
  signOut(): void
  close(): void
}

/** The only place that puts the stores together. */
export function openGallery({ client, token, about }: SignedIn, session: Session): Gallery {
  const notices = createNotices()
  const router = createRouter()
  const connection = createConnection(() => client.whoami(), session.end)
  const listing = createListing(client, router, connection)
  const items = createMediaCache(client, connection, () => void listing.reload())
  const usage = createUsage(client, connection)
  const selection = createSelection()

  const refresh = async () => {
    await Promise.all([listing.reload(), usage.refresh()])
  }

  const deletion = createDeletion(client, connection, async ({ removed, failed, reason }) => {
    selection.remove(removed)
    for (const id of removed) items.forget(id)
    const open = router.item.value
    const place = open === null ? -1 : listing.ids.value.indexOf(open)
    await refresh()
    const last = listing.page.value?.last_page ?? 1
    if (router.page.value > last) router.replace({ page: last, item: null })
    else if (open !== null && removed.includes(open) && router.item.value === open) {
      // A neighbour takes its place; an item that was shown alone has none.
      const ids = place < 0 ? [] : listing.ids.value
      router.replace({ page: router.page.value, item: ids[Math.min(place, ids.length - 1)] ?? null })
    }
    if (removed.length > 0) notices.tell(strings.deletion.done(removed.length))
    if (failed > 0) notices.tell(strings.deletion.failed(failed, reason), { tone: 'bad' })
  })

  let swipe: ReturnType<Gallery['loadPhotoSwipe']> | null = null
  let shownAt = 0
  const uploads = createUploads({
    bucket: about.bucket,
    token,
    client,
    allowed: about.scopes.includes('media:write'),
    tell: (text, tone) => notices.tell(text, { tone: tone ?? 'plain' }),
    onAdded(allDone) {
      // Of many files one after another, not each brings the page anew.
      if (!allDone && Date.now() - shownAt < 1500) return
      shownAt = Date.now()
      void refresh()
    },
    onUnreachable: connection.report,
    reached: connection.reached,
    onRefused: session.end,
    onFull: () => void usage.refresh(),
  })

  connection.onBack(() => {
    notices.tell(strings.connection.back)
    uploads.serverBack()
  })
  void usage.refresh()
  void uploads.resumeUnfinished()
  // Under an open viewer or a question nothing changes; the look after it is closed shows what did.
  const isCalm = () => router.item.value === null && deletion.asked.value === null
  const stopRefreshing = refreshWhileVisible(async () => {
    if (connection.lost.value || !isCalm()) return
    if (await listing.refresh(isCalm)) await usage.refresh()
  })

  async function copyUrls(looked: readonly Promise<string | null>[]): Promise<void> {
    const urls = (await Promise.all(looked)).filter((url) => url !== null)
    const copied = urls.length > 0 && (await copyText(urls.join('\n')))
    if (copied) notices.tell(strings.link.copied(urls.length))
    else notices.tell(strings.link.failed, { tone: 'bad' })
  }

  return {
    about,
    canDelete: about.scopes.includes('media:delete'),
    router,
    connection,
    notices,
    listing,
    items,
    usage,
    selection,
    deletion,
    uploads,
    loadPhotoSwipe() {
      swipe ??= connection.reached().then(() => import('./viewer/photo-swipe.tsx'))
      return swipe
    },
    copyLinks: (ids) => copyUrls(ids.map(async (id) => (await items.load(id))?.url ?? null)),
    copyUploaded: () =>
      copyUrls(
        (uploads.uploader.value?.items() ?? []).map(
          async ({ id, url }) => url ?? (await items.load(id))?.url ?? null,
        ),
      ),
    signOut() {
      uploads.cancelAll()
      session.signOut()
    },
    close() {
      stopRefreshing()
      router.close()
      connection.close()
      listing.close()
      uploads.close()
    },
  }
}

export const GalleryContext = createContext<Gallery | null>(null)

export function useGallery(): Gallery {
  const gallery = useContext(GalleryContext)
  if (gallery === null) throw new Error('there is no gallery before somebody has signed in')
  return gallery
}
