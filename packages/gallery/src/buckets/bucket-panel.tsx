import type { ManagedBucket, TaggedBucket } from '@mediabucket/client'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { Icon, type IconName } from '../components/icon.tsx'
import { LoadError } from '../components/section.tsx'
import { formatSize, formatTime } from '../format.ts'
import { useService } from '../gallery-context.ts'
import { errorMessage } from '../service/connection.ts'
import { formatCount } from '../strings/locale.ts'
import { strings } from '../strings.ts'
import { type BucketPart, filesPrefix, formatPlace } from './address.ts'
import { QuotaMeter } from './bucket-table.tsx'
import { DeleteDialog } from './delete-dialog.tsx'
import { SettingsForm } from './settings-form.tsx'
import { UsageSection } from './usage-chart.tsx'

/** A bucket: its contents, its settings and its usage, and the ways to its files, tokens and webhooks. */
export function BucketPanel({ name }: { name: string }) {
  const { buckets, connectionTo, address, notices, list } = useService()
  const connection = useMemo(() => connectionTo(name), [connectionTo, name])
  const [loaded, setLoaded] = useState<TaggedBucket | null>(null)
  const [error, setError] = useState<string | null>(null)
  const [attempt, setAttempt] = useState(0)
  const [isDeleting, setDeleting] = useState(false)
  const isLost = connection.lost.value
  useEffect(() => {
    if (isLost || loaded !== null) return
    connection
      .watch(() => buckets.get(name))
      .then(
        (bucket) => {
          setLoaded(bucket)
          setError(null)
        },
        (reason: unknown) => setError(errorMessage(reason)),
      )
  }, [buckets, connection, name, attempt, isLost])
  const texts = strings.buckets
  return (
    <>
      <div class="listing-head">
        <a
          class="icon-button back"
          href={address.listHash.value}
          aria-label={strings.buckets.backToBuckets}
          title={strings.buckets.backToBuckets}
        >
          <Icon name="previous" />
        </a>
        <h1>{name}</h1>
        <div class="listing-tools">
          <PartLink bucket={name} part="files" icon="picture" />
          <PartLink bucket={name} part="tokens" icon="key" />
          <PartLink bucket={name} part="webhooks" icon="send" />
          {loaded !== null && (
            <button type="button" class="button bad" onClick={() => setDeleting(true)}>
              <Icon name="trash" />
              {texts.delete}
            </button>
          )}
        </div>
      </div>
      <p class="off-screen" role="status">
        {loaded === null && error === null && texts.loadingBucket}
      </p>
      {error !== null && (
        <LoadError
          title={texts.bucketFailed}
          reason={error}
          onRetry={() => setAttempt((before) => before + 1)}
        />
      )}
      {loaded !== null && (
        <div class="bucket-cards">
          <div>
            <Contents bucket={loaded.bucket} />
            <UsageSection name={name} />
          </div>
          <SettingsForm loaded={loaded} onChanged={setLoaded} />
        </div>
      )}
      {isDeleting && (
        <DeleteDialog
          name={name}
          etag={loaded?.etag ?? null}
          onClose={() => setDeleting(false)}
          onDeleted={() => {
            notices.show(texts.deleted(name))
            address.go(address.listHash.peek())
            void list.refresh()
          }}
        />
      )}
    </>
  )
}

function PartLink({ bucket, part, icon }: { bucket: string; part: BucketPart; icon: IconName }) {
  const isFiles = part === 'files'
  return (
    <a
      class={isFiles ? 'button primary' : 'button'}
      href={isFiles ? filesPrefix(bucket) : formatPlace({ at: 'bucket', bucket, part })}
    >
      <Icon name={icon} />
      {isFiles ? strings.buckets.openFiles : strings.sections[part]}
    </a>
  )
}

function Contents({ bucket }: { bucket: ManagedBucket }) {
  const { items, bytes, max_items, max_bytes, trash_items = 0, trash_bytes = 0 } = bucket
  const texts = strings.buckets
  const amount = (count: number, size: number) => `${strings.files(count)}, ${formatSize(size)}`
  return (
    <section class="bucket-card" aria-labelledby="contents-title">
      <h2 id="contents-title">{texts.contents}</h2>
      <dl class="bucket-facts">
        <dt>{texts.columns.items}</dt>
        <dd>
          {max_items === null ? formatCount(items) : texts.of(formatCount(items), formatCount(max_items))}
        </dd>
        <dt>{texts.columns.bytes}</dt>
        <dd>
          {max_bytes === null ? formatSize(bytes) : texts.of(formatSize(bytes), formatSize(max_bytes))}{' '}
          <QuotaMeter bucket={bucket} />
        </dd>
        {trash_items > 0 && (
          <>
            <dt>{texts.inTrash}</dt>
            <dd>{amount(trash_items, trash_bytes)}</dd>
          </>
        )}
        {bucket.reserved_items > 0 && (
          <>
            <dt>{texts.reserved}</dt>
            <dd>{amount(bucket.reserved_items, bucket.reserved_bytes)}</dd>
          </>
        )}
        <dt>{texts.createdAt}</dt>
        <dd>
          <time dateTime={bucket.created_at}>{formatTime(bucket.created_at)}</time>
        </dd>
      </dl>
    </section>
  )
}
