import { computed, effect, signal } from '@preact/signals'
import type { Gallery, PlaceInService } from './gallery-context.ts'
import type { Preferences } from './preferences.tsx'
import { createRouter, noChoice, type Section } from './router.ts'
import { createDeletion, showDeletion } from './selection/deletion.ts'
import { createLocationWarning } from './selection/location-warning.ts'
import { createSelection, createSelectMany } from './selection/selection.ts'
import { createSharing } from './selection/sharing.ts'
import { createBucketUsage } from './service/bucket.ts'
import { createChanges, refreshWhileVisible } from './service/changes.ts'
import { type Connection, createConnection } from './service/connection.ts'
import { createFileAccess } from './service/file-access.ts'
import { createMediaCache } from './service/media-cache.ts'
import type { Session, SignedIn } from './session/session.ts'
import { createNotices } from './shell/notices.ts'
import { loadTexts, strings } from './strings.ts'
import { createPlaceholders } from './tiles/placeholders.ts'
import { createShownList } from './timeline/shown-list.ts'
import { createTimeline } from './timeline/timeline.ts'
import { askScopes, isUser, missingScopes } from './tokens/token-kinds.ts'
import { createTrash } from './trash/trash.ts'
import { createUploads } from './uploads/uploads.ts'

/** After an upload the listing is reloaded at most this often, until all uploads are done. Milliseconds. */
const reloadInterval = 1500

/** Creates the stores and connects them. No other file does. */
export function openGallery(
  { client, largeFileClient, tokenInfo }: SignedIn,
  session: Session,
  preferences: Preferences,
  place?: PlaceInService,
): Gallery {
  const closing = new AbortController()
  const canOpen = (section: Section) => section === 'trash' || tokenInfo.scopes.includes(`${section}:manage`)
  const notices = createNotices()
  const { order, layout } = preferences
  const router = createRouter({ ...noChoice, order: order.peek(), view: layout.peek() }, place?.prefix)
  const connection = createConnection(() => client.whoami(), session.end, onBucketGone)
  const mediaCache = createMediaCache(client, connection, () => void reload())
  const files = createFileAccess(client, mediaCache)
  const locationWarning = createLocationWarning(files, closing.signal)
  const usage = createBucketUsage(client, connection)
  const shownList = createShownList(router, preferences)
  const timeline = createTimeline({
    client,
    connection,
    mediaCache,
    total: computed(() => usage.bucket.value?.items ?? null),
    active: computed(() => router.section.value === null),
    place: router.place,
    order: shownList.order,
    filter: shownList.filter,
  })
  const changes = createChanges(client, connection)
  const selection = createSelection()
  const selectMany = createSelectMany(timeline, selection, mediaCache)

  function onBucketGone(): void {
    const { left } = uploads.view.peek().totals
    // A bucket with this name that is created later must not receive them.
    uploads.cancelAll()
    place?.onGone(left)
  }

  const isShown = computed(() => timeline.loaded.value !== null)

  const reload = async () => {
    await Promise.all([timeline.refresh(), usage.refresh()])
  }

  const trash = createTrash(client, connection, notices, () => reload())
  const deletion = createDeletion(client, connection, usage.hasTrash, (result) =>
    showDeletion(result, { router, timeline, mediaCache, selection, notices, trash, usage }),
  )

  let photoSwipe: ReturnType<Gallery['loadPhotoSwipe']> | null = null
  let reloadedAt = 0
  const uploads = createUploads({
    bucket: tokenInfo.bucket,
    client,
    largeFileClient,
    allowed: tokenInfo.scopes.includes('media:write'),
    async importTray() {
      const [{ UploadTray }] = await Promise.all([import('./uploads/tray.tsx'), loadTexts('uploads')])
      return UploadTray
    },
    notify: (text, tone) => notices.show(text, { tone: tone ?? 'plain' }),
    onUploaded(allDone) {
      if (!allDone && Date.now() - reloadedAt < reloadInterval) return
      reloadedAt = Date.now()
      void reload()
    },
    onUnreachable: connection.reportLoss,
    untilReached: connection.untilReached,
    onUnauthorized: session.end,
    onBucketRefused: () => void usage.refresh(),
  })

  connection.onRestored(() => {
    notices.show(strings.connection.back)
    uploads.onServerBack()
  })
  // The first pictures are requested before the size of the bucket.
  const stopWaiting = effect(() => {
    if ((!isShown.value && router.section.value === null) || usage.bucket.peek() !== null) return
    requestAnimationFrame(() => setTimeout(() => void usage.refresh()))
  })
  void uploads.resumeUnfinished()
  // The listing does not change below an open viewer or dialog; the next refresh after it is closed shows the changes.
  const canRefresh = () =>
    router.item.value === null && deletion.pending.value === null && locationWarning.pending.value === null
  const stopRefreshing = refreshWhileVisible({
    client,
    connection,
    async refresh() {
      if (connection.lost.value || !canRefresh()) return false
      const result = await changes.show(() => timeline.refresh(canRefresh))
      if (result === 'shown') await usage.refresh()
      return result !== 'failed'
    },
  })

  const sharing = createSharing({
    client,
    connection,
    notices,
    selectMany,
    locationWarning,
    files,
    names: preferences.names,
    closing: closing.signal,
  })

  return {
    client,
    tokenInfo,
    origin: place?.origin ?? null,
    canDelete: tokenInfo.scopes.includes('media:delete'),
    canEdit: tokenInfo.scopes.includes('media:write'),
    canOpen,
    // A person of an issuer cannot get these scopes (docs/interface.md J3).
    offers: (section) => canOpen(section) || !isUser(tokenInfo),
    canAsk: !isUser(tokenInfo) && missingScopes(tokenInfo, askScopes).length < askScopes.length,
    labelChanges: signal(0),
    router,
    connection,
    notices,
    preferences,
    shownList,
    timeline,
    isShown,
    mediaCache,
    placeholders: createPlaceholders(),
    usage,
    selection,
    selectMany,
    deletion,
    locationWarning,
    trash,
    uploads,
    loadPhotoSwipe() {
      photoSwipe ??= importPhotoSwipe(connection)
      return photoSwipe
    },
    files,
    sharing,
    signOut() {
      uploads.cancelAll()
      session.signOut()
    },
    close() {
      closing.abort()
      stopRefreshing()
      stopWaiting()
      router.close()
      connection.close()
      timeline.close()
      uploads.close()
    },
  }
}

async function importPhotoSwipe(connection: Connection): ReturnType<Gallery['loadPhotoSwipe']> {
  await connection.untilReached()
  const [{ openPhotoSwipe }, serviceSizes] = await Promise.all([
    import('./viewer/photo-swipe.tsx'),
    import('./service/service-sizes.ts').then(({ loadServiceSizes }) => loadServiceSizes()),
    loadTexts('slides'),
  ])
  return { openPhotoSwipe, serviceSizes }
}
