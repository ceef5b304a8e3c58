import { Icon } from '../../components/icon.tsx'
import { IconButton } from '../../components/icon-button.tsx'
import { kindOf } from '../../format/kind.ts'
import { formatSize } from '../../format/size.ts'
import { strings } from '../../strings.ts'
import type { Uploader } from '../uploader/uploader.ts'
import type { UploadRow } from '../uploads-view.ts'

interface TrayRowProps {
  readonly row: UploadRow
  readonly uploader: Uploader
  /** Whether the file is within the bucket's limit. */
  readonly canFit: boolean
  readonly waitingForServer: boolean
}

export function TrayRow({ row, uploader, canFit, waitingForServer }: TrayRowProps) {
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
      {state === 'failed' && canFit && (
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
