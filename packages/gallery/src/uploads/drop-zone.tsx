import { useEffect, useState } from 'preact/hooks'
import { Icon } from '../components/icon.tsx'
import { useGallery } from '../gallery.ts'
import { strings } from '../strings.ts'

/** Takes files that are dropped or pasted anywhere on the page, and shows that it will. */
export function DropZone() {
  const { about, uploads } = useGallery()
  const [over, setOver] = useState(false)
  useEffect(() => {
    // Enter and leave come for every element on the way; only the balance tells whether the files are over the page.
    let depth = 0
    const holdsFiles = (event: DragEvent) => event.dataTransfer?.types.includes('Files') ?? false
    const onEnter = (event: DragEvent) => {
      if (!holdsFiles(event)) return
      depth += 1
      setOver(true)
    }
    const onLeave = (event: DragEvent) => {
      if (!holdsFiles(event)) return
      depth = Math.max(0, depth - 1)
      if (depth === 0) setOver(false)
    }
    const onOver = (event: DragEvent) => {
      // Without this the browser would leave the page and open the file.
      if (holdsFiles(event)) event.preventDefault()
    }
    const onDrop = (event: DragEvent) => {
      depth = 0
      setOver(false)
      if (!holdsFiles(event) || event.dataTransfer === null) return
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
  if (!over) return null
  return (
    <div class="drop-zone">
      <div class="drop-zone-card">
        <Icon name={uploads.allowed ? 'upload' : 'alert'} size={48} />
        <strong>{uploads.allowed ? strings.uploads.drop : strings.uploads.dropMayNot}</strong>
        <span>
          {uploads.allowed ? strings.uploads.dropAbout(about.bucket) : strings.uploads.dropMayNotAbout}
        </span>
      </div>
    </div>
  )
}
