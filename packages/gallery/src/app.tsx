import { useEffect, useMemo } from 'preact/hooks'
import { GalleryContext } from './gallery-context.ts'
import { openGallery } from './open-gallery.ts'
import type { Preferences } from './preferences.tsx'
import { DeletionDialog, LocationDialog } from './selection/dialogs.tsx'
import { SelectionBar } from './selection/selection-bar.tsx'
import type { Session, SignedIn } from './session/session.ts'
import { Resuming, SignIn } from './session/sign-in.tsx'
import { Header } from './shell/header.tsx'
import { ConnectionBanner, NoticeAnnouncer, NoticeList } from './shell/notice-list.tsx'
import { strings } from './strings.ts'
import { KeyboardShortcuts } from './timeline/keys.tsx'
import { TimelineView } from './timeline/timeline-view.tsx'
import { DropZone } from './uploads/drop-zone.tsx'
import { UploadTray } from './uploads/tray.tsx'
import { useCode } from './use-code.ts'
import { Viewer } from './viewer/viewer.tsx'

export function App({ session, preferences }: { session: Session; preferences: Preferences }) {
  const state = session.state.value
  if (state.at === 'signed-in')
    return (
      <BucketPage
        key={state.signedIn.token}
        signedIn={state.signedIn}
        session={session}
        preferences={preferences}
      />
    )
  if (state.at === 'resuming') return <Resuming session={session} unreachable={state.unreachable} />
  return <SignIn session={session} state={state} preferences={preferences} />
}

interface BucketPageProps {
  readonly signedIn: SignedIn
  readonly session: Session
  readonly preferences: Preferences
}

/** The page of a signed-in person. */
function BucketPage({ signedIn, session, preferences }: BucketPageProps) {
  const gallery = useMemo(() => openGallery(signedIn, session, preferences), [signedIn, session, preferences])
  useEffect(() => () => gallery.close(), [gallery])
  const { router, isShown } = gallery
  const trash = router.trash.value
  const tokens = router.tokens.value && gallery.canManageTokens
  const webhooks = router.webhooks.value && gallery.canManageWebhooks
  const listed = !trash && !tokens && !webhooks
  useEffect(() => {
    const { bucket } = signedIn.tokenInfo
    const title = trash
      ? strings.trash.titleOf(bucket)
      : tokens
        ? strings.tokens.titleOf(bucket)
        : webhooks
          ? strings.webhooks.titleOf(bucket)
          : bucket
    document.title = `${title} – ${strings.product}`
  }, [trash, tokens, webhooks, signedIn])
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
        {trash ? <TrashPage /> : tokens ? <TokensPage /> : webhooks ? <WebhooksPage /> : <TimelineView />}
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

/** The trash, when its code is loaded. */
function TrashPage() {
  const view = useCode(() => import('./trash/trash-view.tsx'))
  if (view === 'loading') return <p role="status">{strings.trash.loading}</p>
  return view === 'failed' ? <p role="alert">{strings.notLoaded}</p> : <view.TrashView />
}

/** The list of tokens, when its code is loaded. */
function TokensPage() {
  const view = useCode(() => import('./tokens/tokens-view.tsx'))
  if (view === 'loading') return <p role="status">{strings.tokens.loading}</p>
  return view === 'failed' ? <p role="alert">{strings.notLoaded}</p> : <view.TokensView />
}

/** The webhooks, when their code is loaded. */
function WebhooksPage() {
  const view = useCode(() => import('./webhooks/webhooks-view.tsx'))
  if (view === 'loading') return <p role="status">{strings.webhooks.loading}</p>
  return view === 'failed' ? <p role="alert">{strings.notLoaded}</p> : <view.WebhooksView />
}
