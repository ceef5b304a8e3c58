import { useEffect, useState } from 'preact/hooks'
import { IconButton } from '../components/controls.tsx'
import { Icon } from '../components/icon.tsx'
import { formatSize, kindOf } from '../format.ts'
import { useGallery } from '../gallery-context.ts'
import { CopyLinks } from '../selection/copy-links.tsx'
import { strings } from '../strings.ts'
import { headlineOf, progressLineOf } from './tray-texts.ts'
import type { Uploader } from './uploader/uploader.ts'
import { canFit, type UploadRow } from './uploads-view.ts'

/** Rows shown at first, and added by each click on "Show more": a folder may contain thousands of files. */
const rowsPerStep = 50

/** The list of uploads, in a corner of the page. Shown while there is something to show. */
export function UploadTray() {
  const { uploads, notices, usage } = useGallery()
  const [open, setOpen] = useState(true)
  const [maxRows, setMaxRows] = useState(rowsPerStep)
  const { rows, totals, waitingForServer } = uploads.view.value
  const notes = uploads.notes.value
  const filesFound = uploads.filesFound.value
  const uploader = uploads.uploader.value
  const { all, left, done, failed, unavailable, paused, share } = totals
  const headline = headlineOf(uploads.view.value, filesFound)
  const line = progressLineOf(uploads.view.value)
  const ended = left === 0 && filesFound === null
  const succeeded = ended && failed + unavailable === 0
  const limit = usage.bucket.value?.max_bytes ?? null
  useEffect(() => setOpen(!succeeded || done === 0), [succeeded, done === 0])
  useEffect(() => uploader?.setMaxRows(maxRows), [uploader, maxRows])
  const announcement = [headline, ...notes.map(({ text }) => text())].join('. ')
  useEffect(() => {
    if (announcement) notices.announce(announcement)
    // Announce the start, pauses and the end, not the progress of each file.
  }, [ended, paused === left, waitingForServer, failed, unavailable, notes.length])
  const autoClose = useAutoClose(succeeded && !notes.some(({ isBad }) => isBad), uploads.cancelAll)
  return (
    <section class="tray" aria-label={strings.uploads.label} data-open={open} {...autoClose}>
      <header class="tray-head">
        <h2>{headline}</h2>
        {ended && done > 0 && (
          <CopyLinks
            label={strings.uploads.copy}
            ids={() => uploader?.uploadedIds() ?? []}
            isPrivate={usage.bucket.value?.private === true}
            menu="uploaded-links"
          />
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
        {ended && <IconButton icon="close" label={strings.uploads.close} onClick={uploads.cancelAll} />}
      </header>
      {(left > 0 || succeeded) && all > 0 && (
        <progress
          class={succeeded ? 'progress done' : 'progress'}
          aria-label={strings.uploads.overall}
          max={1}
          value={share}
        />
      )}
      {line !== '' && <p class="tray-line">{line}</p>}
      <TrayNotes />
      {open && uploader && rows.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboards must be able to scroll it, even if no row has a button
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
              <button
                type="button"
                class="button small quiet"
                onClick={() => setMaxRows(maxRows + rowsPerStep)}
              >
                {strings.uploads.showMore(Math.min(rowsPerStep, all - rows.length))}
              </button>
            </li>
          )}
        </ul>
      )}
      <TrayFooter limit={limit} />
    </section>
  )
}

/** The actions for all files; hidden if there are none. `limit`: the bucket's limit in bytes, null if it has none. */
function TrayFooter({ limit }: { limit: number | null }) {
  const { uploads } = useGallery()
  const { totals, allSaved } = uploads.view.value
  const { left, failed } = totals
  // Folders that are being read contain files that nobody has stored.
  const canClose = allSaved && uploads.filesFound.value === null
  const uploader = uploads.uploader.value
  return (
    <div class="tray-foot">
      {left > 0 && <p>{canClose ? strings.uploads.continuesLater : strings.uploads.keepOpen}</p>}
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
  )
}

interface TrayRowProps {
  readonly row: UploadRow
  readonly uploader: Uploader
  /** Whether the file is within the bucket's limit. */
  readonly canFit: boolean
  readonly waitingForServer: boolean
}

function TrayRow({ row, uploader, canFit, waitingForServer }: TrayRowProps) {
  const { id, path, state, size, sent, isSeparate } = row
  const name = path.slice(path.lastIndexOf('/') + 1)
  const folder = path.slice(0, -name.length)
  return (
    <li class={`tray-row ${state}`}>
      <Icon name={kindOf(row.contentType)} />
      <div class="tray-text">
        <span class="tray-name" title={path}>
          {name}
          {folder !== '' && <span class="tray-folder"> {folder}</span>}
        </span>
        <span class="tray-state">{stateTextOf(row, waitingForServer)}</span>
        {(state === 'sending' || state === 'paused') && isSeparate && (
          <progress
            class="progress"
            aria-label={strings.uploads.uploadOf(name)}
            max={Math.max(size, 1)}
            value={sent}
          />
        )}
      </div>
      {(state === 'sending' || state === 'waiting') && isSeparate && (
        <IconButton icon="pause" label={strings.uploads.pause(name)} onClick={() => uploader.toggle(id)} />
      )}
      {state === 'paused' && isSeparate && (
        <IconButton icon="play" label={strings.uploads.resume(name)} onClick={() => uploader.toggle(id)} />
      )}
      {state === 'failed' && canFit && !row.isFinal && (
        <IconButton icon="retry" label={strings.uploads.retry(name)} onClick={() => uploader.retry(id)} />
      )}
      {state === 'done' ? (
        <span class="tray-done">
          <Icon name="check" />
        </span>
      ) : (
        (isSeparate || state === 'failed' || state === 'unavailable') && (
          <IconButton icon="close" label={strings.uploads.cancel(name)} onClick={() => uploader.cancel(id)} />
        )
      )}
    </li>
  )
}

function stateTextOf(
  { state, sent, size, reason, isSeparate }: UploadRow,
  waitingForServer: boolean,
): string {
  const { uploads } = strings
  switch (state) {
    case 'waiting':
      return `${uploads.waiting} · ${formatSize(size)}`
    case 'sending':
      if (waitingForServer) return `${uploads.waitingForServer} · ${formatSize(size)}`
      return isSeparate
        ? uploads.progress(formatSize(sent), formatSize(size))
        : `${uploads.inProgress} · ${formatSize(size)}`
    case 'paused':
      return sent > 0
        ? uploads.pausedAt(formatSize(sent), formatSize(size))
        : `${uploads.pausedAll} · ${formatSize(size)}`
    case 'done':
      return `${uploads.done} · ${formatSize(size)}`
    case 'failed':
      return reason
    case 'unavailable':
      return uploads.chooseAgain
  }
}

/** The tooltip of a note lists at most this many paths. */
const maxPaths = 20

/** Notes about files that were not added. */
function TrayNotes() {
  const { uploads } = useGallery()
  const notes = uploads.notes.value
  if (notes.length === 0) return null
  return (
    <ul class="tray-notes">
      {notes.map(({ id, text, paths, isBad, action }) => (
        <li key={id} class={isBad ? 'tray-note bad' : 'tray-note'}>
          <span title={paths.slice(0, maxPaths).join('\n')}>{text()}</span>
          {action && (
            <button
              type="button"
              class="button small"
              onClick={() => {
                action.run()
                uploads.dismiss(id)
              }}
            >
              {action.label}
            </button>
          )}
          <IconButton icon="close" label={strings.dismiss} onClick={() => uploads.dismiss(id)} />
        </li>
      ))}
    </ul>
  )
}

/** Milliseconds. */
const closeAfter = 30_000

/** Calls `close` some time after `ready`, but not while the pointer or the focus is in the element. Returns its listeners. */
function useAutoClose(ready: boolean, close: () => void) {
  const [hovered, setHovered] = useState(false)
  const [focused, setFocused] = useState(false)
  const inUse = hovered || focused
  useEffect(() => {
    if (!ready || inUse) return
    const timer = setTimeout(close, closeAfter)
    return () => clearTimeout(timer)
  }, [ready, inUse, close])
  return {
    onPointerEnter: () => setHovered(true),
    onPointerLeave: () => setHovered(false),
    onFocusIn: () => setFocused(true),
    onFocusOut: () => setFocused(false),
  }
}
