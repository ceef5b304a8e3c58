import { useEffect, useMemo } from 'preact/hooks'
import { GalleryContext, openGallery } from './gallery.ts'
import { KeyboardShortcuts } from './listing/keyboard-shortcuts.tsx'
import { ListingView } from './listing/listing-view.tsx'
import { Pager } from './listing/pager.tsx'
import type { Preferences } from './preferences.ts'
import { DeletionDialog } from './selection/deletion-dialog.tsx'
import { LocationDialog } from './selection/location-dialog.tsx'
import { SelectionBar } from './selection/selection-bar.tsx'
import type { Session, SignedIn } from './session/session.ts'
import { ConnectionBanner } from './shell/connection-banner.tsx'
import { Header } from './shell/header.tsx'
import { NoticeAnnouncer, NoticeList } from './shell/notice-list.tsx'
import { strings } from './strings.ts'
import { TimelineView } from './timeline/timeline-view.tsx'
import { TokensPage } from './tokens/tokens-page.tsx'
import { TrashPage } from './trash/trash-page.tsx'
import { DropZone } from './uploads/drop-zone.tsx'
import { UploadTray } from './uploads/tray/upload-tray.tsx'
import { Viewer } from './viewer/viewer.tsx'

interface BucketPageProps {
  readonly signedIn: SignedIn
  readonly session: Session
  readonly preferences: Preferences
}

/** The page of a signed-in person. */
export function BucketPage({ signedIn, session, preferences }: BucketPageProps) {
  const gallery = useMemo(() => openGallery(signedIn, session, preferences), [signedIn, session, preferences])
  useEffect(() => () => gallery.close(), [gallery])
  const { router, isShown } = gallery
  const page = router.page.value
  const trash = router.trash.value
  const tokens = router.tokens.value && gallery.canManageTokens
  const listed = !trash && !tokens
  useEffect(() => {
    const { bucket } = signedIn.tokenInfo
    const title = trash
      ? strings.trash.titleOf(bucket)
      : tokens
        ? strings.tokens.titleOf(bucket)
        : page === null
          ? bucket
          : strings.listing.title(bucket, page)
    document.title = `${title} – ${strings.product}`
  }, [page, trash, tokens, signedIn])
  const open = router.item.value !== null && isShown.value
  return (
    <GalleryContext.Provider value={gallery}>
      <button
        type="button"
        class="skip-link"
        onClick={() => (document.getElementById('files') ?? document.getElementById('media'))?.focus()}
      >
        {strings.skipToMedia}
      </button>
      <Header />
      <main id="media" tabIndex={-1}>
        {trash ? <TrashPage /> : tokens ? <TokensPage /> : page === null ? <TimelineView /> : <ListingView />}
      </main>
      <footer class="foot">
        <div class="dock">
          <div class="dock-texts">
            <ConnectionBanner />
            {!open && <NoticeList />}
          </div>
          <UploadTray />
        </div>
        {listed && <SelectionBar />}
        {page !== null && <Pager current={page} />}
      </footer>
      <NoticeAnnouncer />
      <Viewer />
      <DeletionDialog />
      <LocationDialog />
      <DropZone />
      {listed && <KeyboardShortcuts />}
    </GalleryContext.Provider>
  )
}
