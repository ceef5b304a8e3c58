import { useCallback } from 'preact/hooks'
import { Icon } from '../components/icon.tsx'
import { useGallery } from '../gallery-context.ts'
import { strings } from '../strings.ts'
import { useFileDrop } from './use-file-drop.ts'

/** Accepts files that are dropped or pasted anywhere on the page; shows a hint while files are dragged over it. */
export function DropZone() {
  const { tokenInfo, uploads } = useGallery()
  const onFiles = useCallback((transfer: DataTransfer) => void uploads.addDropped(transfer), [uploads])
  const dragging = useFileDrop(onFiles)
  if (!dragging) return null
  return (
    <div class="drop-zone">
      <div class="drop-zone-card">
        <Icon name={uploads.allowed ? 'upload' : 'alert'} size={48} />
        <strong>{uploads.allowed ? strings.adding.drop : strings.adding.dropNotAllowed}</strong>
        <span>
          {uploads.allowed ? strings.adding.dropHint(tokenInfo.bucket) : strings.adding.dropNotAllowedHint}
        </span>
      </div>
    </div>
  )
}
