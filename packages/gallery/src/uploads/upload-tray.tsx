import { useEffect, useState } from 'preact/hooks'
import { useGallery } from '../gallery.ts'
import { IconButton } from '../parts/icon-button.tsx'
import { strings } from '../strings.ts'
import { TrayRow } from './tray-row.tsx'
import { mayFit, mostUrgent, type UploadTotals } from './upload-row.ts'

/** A folder may hold thousands of files; nobody reads so many lines. */
const mostRows = 100

/** The files on their way, in a corner. */
export function UploadTray() {
  const { uploads, notices, listing, router, usage } = useGallery()
  const [open, setOpen] = useState(true)
  const rows = uploads.rows.value
  const totals = uploads.totals.value
  const engine = uploads.engine.value
  const headline = headlineOf(totals)
  const { left, failed, needed, paused, share } = totals
  const under = left > paused
  const settled = left === 0
  const limit = usage.bucket.value?.max_bytes ?? null
  const again = rows.filter((row) => row.state === 'failed' && mayFit(row, limit))
  const finished = settled && failed + needed === 0
  const last = listing.page.value?.last_page ?? 1
  useEffect(() => setOpen(!finished), [finished])
  useEffect(() => {
    if (rows.length > 0) notices.say(headline)
    // Of each file's progress nobody wants to hear; of beginning, pause and end they do.
  }, [rows.length > 0, under, failed, needed])
  if (engine === null || rows.length === 0) return null
  return (
    <section class="tray" aria-label={strings.uploads.label} data-open={open}>
      <header class="tray-head">
        <h2>{headline}</h2>
        {settled && totals.done > 0 && router.page.value !== last && (
          <button type="button" class="button small" onClick={() => router.go({ page: last, item: null })}>
            {strings.uploads.show}
          </button>
        )}
        {left > paused && (
          <IconButton icon="pause" label={strings.uploads.pauseAll} onClick={engine.pauseAll} />
        )}
        {paused > 0 && left === paused && (
          <IconButton icon="play" label={strings.uploads.resumeAll} onClick={engine.resumeAll} />
        )}
        {settled && again.length > 0 && (
          <IconButton
            icon="retry"
            label={strings.uploads.retryAll}
            onClick={() => {
              for (const row of again) engine.retry(row.id)
            }}
          />
        )}
        <IconButton
          icon={open ? 'down' : 'up'}
          label={open ? strings.uploads.collapse : strings.uploads.expand}
          onClick={() => setOpen(!open)}
        />
        {settled && <IconButton icon="close" label={strings.uploads.clear} onClick={uploads.cancelAll} />}
      </header>
      <progress
        class={finished ? 'progress done' : 'progress'}
        aria-label={strings.uploads.overall}
        max={1}
        value={share}
      />
      {open && (
        <ul class="tray-rows">
          {mostUrgent(rows, mostRows).map((row) => (
            <TrayRow key={row.id} row={row} engine={engine} mayFit={mayFit(row, limit)} />
          ))}
          {rows.length > mostRows && (
            <li class="tray-more">{strings.uploads.more(rows.length - mostRows)}</li>
          )}
        </ul>
      )}
      {open && left > 1 && (
        <p class="tray-foot">
          <button type="button" class="button small quiet" onClick={uploads.cancelAll}>
            {strings.uploads.cancelAll}
          </button>
        </p>
      )}
    </section>
  )
}

function headlineOf({ left, done, failed, needed, paused }: UploadTotals): string {
  if (left > paused) return strings.uploads.sending(left)
  if (paused > 0) return strings.uploads.paused(paused)
  if (needed > 0) return strings.uploads.needed(needed)
  if (failed > 0) return strings.uploads.failed(failed)
  return strings.uploads.finished(done)
}
