import type { ComponentType } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import { Icon } from '../components/icon.tsx'
import { BucketContext, useService } from '../gallery-context.ts'
import { ConnectionBanner, NoticeAnnouncer, NoticeList } from '../shell/notice-list.tsx'
import { strings } from '../strings.ts'
import { MissingScopePage, MissingScopes } from '../tokens/missing-scopes.tsx'
import { useCode } from '../use-code.ts'
import type { BucketPart } from './address.ts'
import { BucketPanel } from './bucket-panel.tsx'
import { BucketsView } from './buckets-view.tsx'
import { ServiceHeader } from './service-header.tsx'

/** The pages of a token of the service: the list of buckets, and the pages of each. */
export function BucketsPage() {
  const { address, tokenInfo, isGone } = useService()
  const place = address.place.value
  const isFirst = useRef(true)
  useEffect(() => {
    const title = place.at === 'list' ? strings.buckets.title : place.bucket
    document.title = `${title} – ${strings.product}`
  }, [place])
  const shown = place.at === 'list' ? '' : `${place.bucket} ${place.part}`
  // With the render: after it, a person may have moved the focus to what is shown now.
  useLayoutEffect(() => {
    // What had the focus is gone. The list finds its own place again.
    if (!isFirst.current && place.at === 'bucket') {
      scrollTo(0, 0)
      document.getElementById('media')?.focus({ preventScroll: true })
    }
    isFirst.current = false
  }, [shown])
  return (
    <>
      <button type="button" class="skip-link" onClick={() => document.getElementById('media')?.focus()}>
        {strings.buckets.skip}
      </button>
      <ServiceHeader />
      <main id="media" tabIndex={-1}>
        {!tokenInfo.scopes.includes('buckets:manage') ? (
          <>
            <div class="listing-head">
              <h1>{strings.buckets.title}</h1>
            </div>
            <MissingScopes scopes={['buckets:manage']} />
          </>
        ) : place.at === 'list' ? (
          <BucketsView listed={place} />
        ) : isGone.value ? (
          <GoneBucket name={place.bucket} />
        ) : place.part === null ? (
          <BucketPanel key={place.bucket} name={place.bucket} />
        ) : (
          <PartPage key={shown} bucket={place.bucket} part={place.part} />
        )}
      </main>
      <footer class="foot">
        <div class="dock">
          <div class="dock-texts">
            <ConnectionBanner />
            <NoticeList />
          </div>
        </div>
      </footer>
      <NoticeAnnouncer />
    </>
  )
}

/** Instead of a bucket that does not exist. */
function GoneBucket({ name }: { name: string }) {
  const { address } = useService()
  return (
    <div class="state" role="alert">
      <Icon name="alert" size={40} />
      <h1>{strings.buckets.gone(name)}</h1>
      <p>{strings.buckets.goneHint}</p>
      <a class="button primary" href={address.listHash.value}>
        {strings.buckets.backToBuckets}
      </a>
    </div>
  )
}

const views = {
  tokens: async () => (await import('../tokens/tokens-view.tsx')).TokensView,
  webhooks: async () => (await import('../webhooks/webhooks-view.tsx')).WebhooksView,
}

/** The tokens or the webhooks of a bucket, or which scope the token lacks. */
function PartPage({ bucket, part }: { bucket: string; part: BucketPart }) {
  const service = useService()
  const access = useMemo(() => service.accessTo(bucket), [service, bucket])
  const scope = part === 'files' ? 'media:read' : `${part}:manage`
  const title = part === 'files' ? strings.buckets.openFiles : strings.sections[part]
  return (
    <BucketContext.Provider value={access}>
      {part === 'files' || !service.scopes.includes(scope) ? (
        <MissingScopePage title={title} scope={scope} />
      ) : (
        <LoadedPart part={part} />
      )}
    </BucketContext.Provider>
  )
}

function LoadedPart({ part }: { part: keyof typeof views }) {
  const View = useCode<ComponentType>(views[part], 'tokens', 'links', 'labels', 'webhooks')
  if (View === 'loading') return <p role="status">{strings.viewer.loading}</p>
  return View === 'failed' ? <p role="alert">{strings.notLoaded}</p> : <View />
}
