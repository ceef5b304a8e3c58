import { useEffect, useState } from 'preact/hooks'
import { IconButton } from '../../components/icon-button.tsx'
import { useGallery } from '../../gallery.ts'
import { strings } from '../../strings.ts'
import { canFit } from '../uploads-view.ts'
import { TrayNotes } from './tray-notes.tsx'
import { TrayRow } from './tray-row.tsx'
import { headlineOf, progressLineOf } from './tray-texts.ts'
import { useAutoClose } from './use-auto-close.ts'

/** Rows that are shown at first, and added with each step: a folder may hold thousands of files. */
const step = 50

/** The files on their way, in a corner. */
export function UploadTray() {
  const { uploads, notices, listing, router, usage, copyUploaded } = useGallery()
  const [open, setOpen] = useState(true)
  const [most, setMost] = useState(step)
  const { rows, totals, held, kept, waitingForServer } = uploads.view.value
  const notes = uploads.notes.value
  const reading = uploads.reading.value
  const uploader = uploads.uploader.value
  const { all, left, done, failed, needed, paused, share } = totals
  const headline = headlineOf(uploads.view.value, reading)
  const line = progressLineOf(uploads.view.value)
  const settled = left === 0 && reading === null
  const limit = usage.bucket.value?.max_bytes ?? null
  const finished = settled && failed + needed === 0
  const shown = all > 0 || notes.length > 0 || reading !== null
  const last = listing.page.value?.last_page ?? 1
  useEffect(() => setOpen(!finished || done === 0), [finished, done === 0])
  useEffect(() => {
    if (!shown) setMost(step)
  }, [shown])
  useEffect(() => uploader?.show(most), [uploader, most])
  const spoken = shown ? [headline, ...notes.map(({ text }) => text)].join('. ') : ''
  useEffect(() => {
    if (spoken) notices.say(spoken)
    // Of each file's progress nobody wants to hear; of the start, of pauses and of the end they do.
  }, [shown, settled, paused === left, waitingForServer, failed, needed, notes.length])
  const leave = useAutoClose(finished && shown && !notes.some(({ isBad }) => isBad), uploads.cancelAll)
  if (!shown) return null
  return (
    <section class="tray" aria-label={strings.uploads.label} data-open={open} {...leave}>
      <header class="tray-head">
        <h2>{headline}</h2>
        {settled && done > 0 && (
          <IconButton icon="link" label={strings.uploads.copy} onClick={() => void copyUploaded()} />
        )}
        {uploader && left > paused && (
          <IconButton icon="pause" label={strings.uploads.pauseAll} onClick={uploader.pauseAll} />
        )}
        {uploader && paused > 0 && left === paused && (
          <IconButton icon="play" label={strings.uploads.resumeAll} onClick={uploader.resumeAll} />
        )}
        {all > 0 && (
          <IconButton
            icon={open ? 'down' : 'up'}
            label={open ? strings.uploads.collapse : strings.uploads.expand}
            onClick={() => setOpen(!open)}
          />
        )}
        {settled && <IconButton icon="close" label={strings.uploads.clear} onClick={uploads.cancelAll} />}
      </header>
      {(left > 0 || finished) && all > 0 && (
        <progress
          class={finished ? 'progress done' : 'progress'}
          aria-label={strings.uploads.overall}
          max={1}
          value={share}
        />
      )}
      {line !== '' && <p class="tray-line">{line}</p>}
      <TrayNotes />
      {open && uploader && rows.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and its rows may hold nothing that takes the focus
        <ul class="tray-rows" tabIndex={0} aria-label={strings.uploads.label}>
          {rows.map((row) => (
            <TrayRow
              key={row.id}
              row={row}
              uploader={uploader}
              canFit={canFit(row.size, limit)}
              waitingForServer={waitingForServer}
            />
          ))}
          {all > rows.length && (
            <li class="tray-more">
              <span>{strings.uploads.more(all - rows.length)}</span>
              <button type="button" class="button small quiet" onClick={() => setMost(most + step)}>
                {strings.uploads.showMore(Math.min(step, all - rows.length))}
              </button>
            </li>
          )}
        </ul>
      )}
      {(left > 1 || (settled && (failed > 0 || done > 0))) && (
        <div class="tray-foot">
          {left > 0 && !held && <p>{kept ? strings.uploads.keptForLater : strings.uploads.keepOpen}</p>}
          {settled && done > 0 && router.page.value !== last && (
            <button type="button" class="button small" onClick={() => router.go({ page: last, item: null })}>
              {strings.uploads.show}
            </button>
          )}
          {uploader && failed > 1 && (
            <button
              type="button"
              class="button small"
              onClick={() => uploader.retryAll((size) => canFit(size, limit))}
            >
              {strings.uploads.retryFailed}
            </button>
          )}
          {left > 1 && (
            <button type="button" class="button small quiet" onClick={uploads.cancelAll}>
              {strings.uploads.cancelAll}
            </button>
          )}
        </div>
      )}
    </section>
  )
}
