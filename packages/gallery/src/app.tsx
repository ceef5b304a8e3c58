import type { ComponentType } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { GalleryContext, useGallery } from './gallery-context.ts'
import { openGallery } from './open-gallery.ts'
import type { Preferences } from './preferences.tsx'
import type { Section } from './router.ts'
import { DeletionDialog, LocationDialog } from './selection/dialogs.tsx'
import { SelectionBar } from './selection/selection-bar.tsx'
import type { BucketPageProps, ServicePagesProps } from './service-pages.tsx'
import type { Session } from './session/session.ts'
import { Resuming, SignIn } from './session/sign-in.tsx'
import { Header } from './shell/header.tsx'
import { ConnectionBanner, NoticeAnnouncer, NoticeList } from './shell/notice-list.tsx'
import { loadTexts, strings } from './strings.ts'
import { KeyboardShortcuts } from './timeline/keys.tsx'
import { TimelineView } from './timeline/timeline-view.tsx'
import { DropZone } from './uploads/drop-zone.tsx'
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
  if (state.at === 'service')
    return (
      <ServicePage
        key={state.signedIn.token}
        signedIn={state.signedIn}
        session={session}
        preferences={preferences}
      />
    )
  if (state.at === 'resuming') return <Resuming session={session} unreachable={state.unreachable} />
  return <SignIn session={session} state={state} preferences={preferences} />
}

/** The pages of a service token, when their code is loaded. */
function ServicePage(props: Omit<ServicePagesProps, 'BucketPage'>) {
  const [Loaded, setLoaded] = useState<ComponentType<ServicePagesProps> | 'loading' | 'failed'>('loading')
  useEffect(() => {
    Promise.all([import('./service-pages.tsx'), loadTexts('buckets', 'tokens')]).then(
      ([{ ServicePages }]) => setLoaded(() => ServicePages),
      () => setLoaded('failed'),
    )
  }, [])
  if (Loaded === 'loading') return <p role="status">{strings.viewer.loading}</p>
  return Loaded === 'failed' ? (
    <p role="alert">{strings.notLoaded}</p>
  ) : (
    <Loaded {...props} BucketPage={BucketPage} />
  )
}

/** The page of a bucket. */
function BucketPage({ signedIn, session, preferences, place }: BucketPageProps) {
  const gallery = useMemo(
    () => openGallery(signedIn, session, preferences, place),
    [signedIn, session, preferences, place],
  )
  useEffect(() => () => gallery.close(), [gallery])
  const { router, isShown } = gallery
  const section = router.section.value
  const shown = section !== null && gallery.offers(section) ? section : null
  useEffect(() => {
    const { bucket } = signedIn.tokenInfo
    const title = shown === null ? bucket : `${bucket}, ${strings.sections[shown]}`
    document.title = `${title} – ${strings.product}`
  }, [shown, signedIn])
  const { view, notes, filesFound } = gallery.uploads
  const hasUploads = view.value.totals.all > 0 || notes.value.length > 0 || filesFound.value !== null
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
        {shown === null ? <TimelineView /> : <SectionPage key={shown} section={shown} />}
      </main>
      <footer class="foot">
        <div class="dock">
          <div class="dock-texts">
            <ConnectionBanner />
            {!open && <NoticeList />}
          </div>
          {hasUploads && <Tray />}
        </div>
        {shown === null && <SelectionBar />}
      </footer>
      <NoticeAnnouncer />
      <Viewer />
      <DeletionDialog />
      <LocationDialog />
      <DropZone />
      {shown === null && <KeyboardShortcuts />}
    </GalleryContext.Provider>
  )
}

const views = {
  trash: async () => (await import('./trash/trash-view.tsx')).TrashView,
  tokens: async () => (await import('./tokens/tokens-view.tsx')).TokensView,
  webhooks: async () => (await import('./webhooks/webhooks-view.tsx')).WebhooksView,
}
const texts = {
  trash: ['trash'],
  tokens: ['tokens', 'links', 'labels'],
  webhooks: ['webhooks', 'tokens'],
} as const

/** The list of uploads, when its code is loaded. */
function Tray() {
  const { uploads } = useGallery()
  const [isFailed, setFailed] = useState(false)
  useEffect(() => void uploads.loadTray().catch(() => setFailed(true)), [uploads])
  const Loaded = uploads.tray.value
  if (Loaded !== null) return <Loaded />
  return isFailed ? <p role="alert">{strings.notLoaded}</p> : null
}

/** What is shown instead of files, when its code is loaded. */
function SectionPage({ section }: { section: Section }) {
  const { canOpen } = useGallery()
  const missing = async () => {
    const { MissingScopePage } = await import('./tokens/missing-scopes.tsx')
    return () => <MissingScopePage title={strings.sections[section]} scope={`${section}:manage`} />
  }
  const View = useCode<ComponentType>(canOpen(section) ? views[section] : missing, ...texts[section])
  if (View === 'loading') return <p role="status">{strings.viewer.loading}</p>
  return View === 'failed' ? <p role="alert">{strings.notLoaded}</p> : <View />
}
