import { kindOf } from '../format/kind.ts'
import { formatSize } from '../format/size.ts'
import { Icon } from '../parts/icon.tsx'
import { IconButton } from '../parts/icon-button.tsx'
import { strings } from '../strings.ts'
import type { Engine } from './engine.ts'
import type { UploadRow } from './upload-row.ts'

interface TrayRowProps {
  readonly row: UploadRow
  readonly engine: Engine
  /** Whether the bucket is large enough for the file. */
  readonly mayFit: boolean
}

export function TrayRow({ row, engine, mayFit }: TrayRowProps) {
  const { id, name, state, size, sent } = row
  return (
    <li class={`tray-row ${state}`}>
      <Icon name={kindOf(row.contentType)} />
      <div class="tray-words">
        <span class="tray-name" title={name}>
          {name}
        </span>
        <span class="tray-state">{stateTextOf(row)}</span>
        {(state === 'sending' || state === 'paused') && (
          <progress
            class="progress"
            aria-label={strings.uploads.one(name)}
            max={Math.max(size, 1)}
            value={sent}
          />
        )}
      </div>
      {(state === 'sending' || state === 'waiting') && (
        <IconButton icon="pause" label={strings.uploads.pause(name)} onClick={() => engine.toggle(id)} />
      )}
      {state === 'paused' && (
        <IconButton icon="play" label={strings.uploads.resume(name)} onClick={() => engine.toggle(id)} />
      )}
      {state === 'failed' && mayFit && (
        <IconButton icon="retry" label={strings.uploads.retry(name)} onClick={() => engine.retry(id)} />
      )}
      {state === 'done' ? (
        <span class="tray-done">
          <Icon name="check" />
        </span>
      ) : (
        <IconButton icon="close" label={strings.uploads.cancel(name)} onClick={() => engine.cancel(id)} />
      )}
    </li>
  )
}

function stateTextOf({ state, sent, size, reason }: UploadRow): string {
  switch (state) {
    case 'waiting':
      return `${strings.uploads.waiting} · ${formatSize(size)}`
    case 'sending':
      return strings.uploads.progress(formatSize(sent), formatSize(size))
    case 'paused':
      return strings.uploads.pausedAt(formatSize(sent), formatSize(size))
    case 'done':
      return `${strings.uploads.done} · ${formatSize(size)}`
    case 'failed':
      return reason
    case 'needed':
      return strings.uploads.again
  }
}
