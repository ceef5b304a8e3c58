import type { Token } from '@mediabucket/client'
import type { ReadonlySignal } from '@preact/signals'
import { useCallback, useEffect, useRef } from 'preact/hooks'
import { FileButton, IconButton } from '../components/controls.tsx'
import { Icon } from '../components/icon.tsx'
import { formatSize, kindOf } from '../format.ts'
import { limitTexts } from '../limit-texts.ts'
import { strings } from '../strings.ts'
import type { ChosenFile } from '../uploads/chosen-files.ts'
import { headlineOf, progressLineOf } from '../uploads/tray-texts.ts'
import type { Uploader } from '../uploads/uploader/uploader.ts'
import type { Uploads } from '../uploads/uploads.ts'
import type { UploadRow } from '../uploads/uploads-view.ts'
import { useFileDrop } from '../uploads/use-file-drop.ts'
import { ChosenList } from './chosen-list.tsx'
import type { UploadLink } from './upload-link.ts'

/** Rows of the list of files. */
const maxRows = 1000

export function UploadPage({ link }: { link: UploadLink }) {
  const state = link.state.value
  const { links } = strings
  const title = state.at === 'open' ? state.token.name || links.defaultTitle : links.defaultTitle
  useEffect(() => {
    document.title = title
  }, [title])
  if (state.at === 'open') return <OpenLink {...state} title={title} link={link} />
  const texts = {
    checking: { heading: links.checking, hint: '' },
    invalid: { heading: links.invalid, hint: links.invalidHint },
    unreachable: { heading: links.unreachable, hint: links.unreachableHint },
  }[state.at]
  return (
    <main class="upload-page">
      <div class="upload-state" role={state.at === 'checking' ? undefined : 'alert'}>
        <h1>{texts.heading}</h1>
        {texts.hint !== '' && <p>{texts.hint}</p>}
      </div>
    </main>
  )
}

interface OpenLinkProps {
  readonly token: Token
  readonly uploads: Uploads
  readonly arrived: ReadonlySignal<number>
  readonly chosen: ReadonlySignal<readonly ChosenFile[]>
  readonly title: string
  readonly link: UploadLink
}

function OpenLink({ token, uploads, arrived, chosen, title, link }: OpenLinkProps) {
  const { links } = strings
  const onFiles = useCallback((transfer: DataTransfer) => void uploads.addDropped(transfer), [uploads])
  const dragging = useFileDrop(onFiles)
  const { totals } = uploads.view.value
  const uploader = uploads.uploader.value
  useEffect(() => uploader?.setMaxRows(maxRows), [uploader])
  const ended = totals.left === 0 && uploads.filesFound.value === null
  const isComplete = token.left?.items === 0 && ended
  const main = useRef<HTMLElement>(null)
  return (
    <main ref={main} tabIndex={-1} class={dragging ? 'upload-page dragging' : 'upload-page'}>
      <h1 dir="auto">{title}</h1>
      {token.note !== null && (
        <p class="upload-note" dir="auto">
          {token.note}
        </p>
      )}
      {!isComplete && <Chooser token={token} uploads={uploads} dragging={dragging} />}
      {isComplete && arrived.value === 0 && (
        <section class="upload-end">
          <h2>{links.complete}</h2>
          <p>{links.completeHint}</p>
        </section>
      )}
      <p class="message" role="status">
        {link.notice.value}
      </p>
      {chosen.value.length > 0 && (
        <ChosenList
          files={chosen.value}
          token={token}
          onRemove={link.remove}
          onSend={() => {
            // The button is removed.
            main.current?.focus({ preventScroll: true })
            link.send()
          }}
        />
      )}
      <Progress uploads={uploads} arrived={arrived.value} isComplete={isComplete} />
    </main>
  )
}

/** The buttons that choose files, and what can be sent in words. */
function Chooser({
  token,
  uploads,
  dragging,
}: Pick<OpenLinkProps, 'token' | 'uploads'> & { dragging: boolean }) {
  const { links } = strings
  const types = token.limits?.types ?? null
  const areAll = (...kinds: string[]) =>
    types?.every((type) => kinds.includes(type.split('/')[0] ?? '')) === true
  const takesPhotos = types === null || types.some((type) => type === 'image/*' || type === 'image/jpeg')
  const label = areAll('image')
    ? links.choosePhotos
    : areAll('image', 'video')
      ? links.choosePhotosAndVideos
      : links.chooseFiles
  const accept = types?.join(',') ?? ''
  const add = (files: File[]) => void uploads.add(files)
  return (
    <section class="upload-choose" aria-label={links.limits}>
      <FileButton class="button primary wide" accept={accept} onChoose={add}>
        <Icon name="upload" />
        {label}
      </FileButton>
      {takesPhotos && (
        <span class="touch-only">
          <FileButton class="button wide" accept="image/*" camera onChoose={add}>
            {links.takePhoto}
          </FileButton>
        </span>
      )}
      <p class="muted drop-hint">{dragging ? links.drop : links.orDrop}</p>
      <ul class="upload-limits">
        {limitTexts(token).map((text) => (
          <li key={text}>{text}</li>
        ))}
      </ul>
    </section>
  )
}

interface ProgressProps {
  readonly uploads: Uploads
  /** Files that arrived, also before a reload. */
  readonly arrived: number
  /** Whether the link accepts no more files. */
  readonly isComplete: boolean
}

/** The files of this visit, and thanks for those that arrived. */
function Progress({ uploads, arrived, isComplete }: ProgressProps) {
  const { links } = strings
  const view = uploads.view.value
  const { rows, totals, allSaved } = view
  const { all, left, done, failed, unavailable, share } = totals
  const uploader = uploads.uploader.value
  const filesFound = uploads.filesFound.value
  const notes = uploads.notes.value
  const ended = left === 0 && filesFound === null
  const succeeded = ended && done > 0 && failed + unavailable === 0
  const status = useRef<HTMLDivElement>(null)
  const filesBefore = useRef(0)
  // Below a long note, a person would see neither that files are uploaded nor that all arrived.
  useEffect(() => {
    if (succeeded || all > filesBefore.current) status.current?.scrollIntoView({ block: 'nearest' })
    filesBefore.current = all
  }, [all, succeeded])
  if (all === 0 && arrived === 0 && notes.length === 0 && filesFound === null) return null
  const line = progressLineOf(view)
  return (
    <section class="upload-progress" aria-label={links.progress}>
      <div class={succeeded ? 'upload-thanks' : undefined} role="status" ref={status}>
        {succeeded && <Icon name="check" size={32} />}
        <h2>
          {succeeded
            ? links.thanks(arrived)
            : ended && arrived > 0
              ? [
                  links.arrived(arrived),
                  ...(failed > 0 ? [strings.uploads.failed(failed)] : []),
                  ...(unavailable > 0 ? [strings.uploads.toChooseAgain(unavailable)] : []),
                ].join(' · ')
              : headlineOf(view, filesFound)}
        </h2>
        {isComplete && arrived > 0 ? (
          <>
            {failed + unavailable === 0 && <p>{links.canClose}</p>}
            <p>
              {links.complete}. {links.completeHint}
            </p>
          </>
        ) : (
          ended && arrived > 0 && failed + unavailable === 0 && <p>{links.more}</p>
        )}
      </div>
      {left > 0 && (
        <>
          <progress class="progress" aria-label={strings.uploads.overall} max={1} value={share} />
          <p class="muted">{line}</p>
          <p class="muted">{allSaved ? links.continuesLater : strings.uploads.keepOpen}</p>
        </>
      )}
      {notes.map(({ id, text, action }) => (
        <p key={id} class="upload-note">
          {text()}{' '}
          {action && (
            <button type="button" class="button small" onClick={action.run}>
              {action.label}
            </button>
          )}
        </p>
      ))}
      {uploader && rows.length > 0 && (
        <ul class="upload-files">
          {rows.map((row) => (
            <FileRow key={row.id} row={row} uploader={uploader} />
          ))}
        </ul>
      )}
    </section>
  )
}

function FileRow({ row, uploader }: { row: UploadRow; uploader: Uploader }) {
  const { id, path, state, size, sent, reason } = row
  const { links, uploads } = strings
  const name = path.slice(path.lastIndexOf('/') + 1)
  const texts = {
    waiting: uploads.waiting,
    sending: row.isSeparate ? uploads.progress(formatSize(sent), formatSize(size)) : uploads.inProgress,
    paused: uploads.pausedAll,
    done: uploads.done,
    unavailable: uploads.chooseAgain,
  }
  const parts = state === 'failed' ? [formatSize(size), reason] : [texts[state], formatSize(size)]
  const text = state === 'sending' && row.isSeparate ? texts.sending : parts.join(' · ')
  return (
    <li class={`tray-row ${state}`}>
      <Icon name={kindOf(row.contentType)} />
      <div class="tray-text">
        <span class="tray-name" dir="auto">
          {name}
        </span>
        <span class="tray-state">{text}</span>
        {state === 'sending' && row.isSeparate && (
          <progress
            class="progress"
            aria-label={uploads.uploadOf(name)}
            max={Math.max(size, 1)}
            value={sent}
          />
        )}
      </div>
      {state === 'failed' && !row.isFinal && (
        <IconButton icon="retry" label={links.retry(name)} onClick={() => uploader.retry(id)} />
      )}
      {state === 'done' ? (
        <span class="tray-done">
          <Icon name="check" />
        </span>
      ) : (
        (row.isSeparate || state === 'failed' || state === 'unavailable') && (
          <IconButton icon="close" label={links.remove(name)} onClick={() => uploader.cancel(id)} />
        )
      )}
    </li>
  )
}
