import { useEffect, useState } from 'preact/hooks'
import { Icon } from '../components/icon.tsx'
import { useGallery } from '../gallery-context.ts'
import { strings } from '../strings.ts'

/** Accepts files that are dropped or pasted anywhere on the page; shows a hint while files are dragged over it. */
export function DropZone() {
  const { tokenInfo, uploads } = useGallery()
  const [dragging, setDragging] = useState(false)
  useEffect(() => {
    // `dragenter` and `dragleave` fire for each element below the pointer; the page is left when they are in balance.
    let depth = 0
    const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes('Files') ?? false
    const onEnter = (event: DragEvent) => {
      if (!hasFiles(event)) return
      depth += 1
      setDragging(true)
    }
    const onLeave = (event: DragEvent) => {
      if (!hasFiles(event)) return
      depth = Math.max(0, depth - 1)
      if (depth === 0) setDragging(false)
    }
    const onOver = (event: DragEvent) => {
      // Otherwise the browser opens the dropped file in place of the page.
      if (hasFiles(event)) event.preventDefault()
    }
    const onDrop = (event: DragEvent) => {
      depth = 0
      setDragging(false)
      if (!hasFiles(event) || event.dataTransfer === null) return
      event.preventDefault()
      void uploads.addDropped(event.dataTransfer)
    }
    const onPaste = (event: ClipboardEvent) => {
      if (!event.clipboardData?.types.includes('Files')) return
      event.preventDefault()
      void uploads.addDropped(event.clipboardData)
    }
    addEventListener('dragenter', onEnter)
    addEventListener('dragleave', onLeave)
    addEventListener('dragover', onOver)
    addEventListener('drop', onDrop)
    addEventListener('paste', onPaste)
    return () => {
      removeEventListener('dragenter', onEnter)
      removeEventListener('dragleave', onLeave)
      removeEventListener('dragover', onOver)
      removeEventListener('drop', onDrop)
      removeEventListener('paste', onPaste)
    }
  }, [uploads])
  if (!dragging) return null
  return (
    <div class="drop-zone">
      <div class="drop-zone-card">
        <Icon name={uploads.allowed ? 'upload' : 'alert'} size={48} />
        <strong>{uploads.allowed ? strings.uploads.drop : strings.uploads.dropNotAllowed}</strong>
        <span>
          {uploads.allowed ? strings.uploads.dropHint(tokenInfo.bucket) : strings.uploads.dropNotAllowedHint}
        </span>
      </div>
    </div>
  )
}
