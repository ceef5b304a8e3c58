import type { CreatedToken } from '@mediabucket/client'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Icon } from '../components/icon.tsx'
import { LoadError } from '../components/section.tsx'
import { formatSize } from '../format.ts'
import { useService } from '../gallery-context.ts'
import { strings } from '../strings.ts'
import { NewTokenDialog } from '../tokens/token-dialogs.tsx'
import { formatPlace, type ListedBuckets, prefixOf } from './address.ts'
import { BucketTable } from './bucket-table.tsx'
import { CreateDialog } from './create-dialog.tsx'

type Dialog =
  | { readonly kind: 'create' }
  | { readonly kind: 'token'; readonly bucket: string; readonly created: CreatedToken }

/** The list of buckets. */
export function BucketsView({ listed }: { listed: ListedBuckets }) {
  const { list, address, notices } = useService()
  const { order, name } = listed
  const [dialog, setDialog] = useState<Dialog | null>(null)
  useEffect(() => void list.show({ order, name }), [list, order, name])
  const texts = strings.buckets
  const rows = list.rows.value
  const totals = list.totals.value
  const error = list.error.value
  const failure = error && (
    <LoadError title={texts.failedToLoad} reason={error.reason} onRetry={() => void list.retry()} />
  )
  const open = (bucket: string) => address.go(formatPlace({ at: 'bucket', bucket, part: null }))
  return (
    <>
      <div class="listing-head">
        <h1>{strings.buckets.title}</h1>
        <p class="muted">
          {totals !== null && texts.totals(totals.buckets, totals.items, formatSize(totals.bytes))}
        </p>
        <div class="listing-tools">
          <PrefixField value={name} onChange={(next) => address.list({ name: next })} />
          <button type="button" class="button primary" onClick={() => setDialog({ kind: 'create' })}>
            {texts.create}
          </button>
        </div>
      </div>
      <p class="off-screen" role="status">
        {list.isLoading.value && rows === null
          ? texts.loading
          : totals !== null && texts.found(totals.buckets)}
      </p>
      {error?.isForMore === false && failure}
      {rows !== null && totals?.buckets === 0 && (
        <p class="muted">{name === '' ? texts.none : texts.noMatch(name)}</p>
      )}
      {rows !== null && rows.length > 0 && (
        <BucketTable rows={rows} total={totals?.buckets ?? rows.length} order={order} />
      )}
      {error?.isForMore && failure}
      {dialog?.kind === 'create' && (
        <CreateDialog
          onClose={() => setDialog(null)}
          onCreated={(bucket, created) => {
            notices.show(texts.created(bucket))
            if (created === null) open(bucket)
            else setDialog({ kind: 'token', bucket, created })
          }}
        />
      )}
      {dialog?.kind === 'token' && (
        <NewTokenDialog created={dialog.created} onClose={() => open(dialog.bucket)} />
      )}
    </>
  )
}

/** After the last key, before the list is requested. Milliseconds. */
const typingPause = 200

function PrefixField({ value, onChange }: { value: string; onChange: (name: string) => void }) {
  const [typed, setTyped] = useState(value)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  // Back and forward change the address.
  useEffect(() => setTyped((before) => (prefixOf(before) === value ? before : value)), [value])
  useEffect(() => () => clearTimeout(timer.current), [])
  return (
    <label class="bucket-search">
      <Icon name="search" size={18} />
      <input
        type="text"
        aria-label={strings.buckets.search}
        placeholder={strings.buckets.search}
        value={typed}
        maxLength={63}
        autocapitalize="none"
        autocomplete="off"
        spellcheck={false}
        onInput={({ currentTarget }) => {
          setTyped(currentTarget.value)
          clearTimeout(timer.current)
          timer.current = setTimeout(onChange, typingPause, prefixOf(currentTarget.value))
        }}
      />
    </label>
  )
}
