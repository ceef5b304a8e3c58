import { pastesText } from '@mediabucket/client/dom'
import { useLayoutEffect, useState } from 'preact/hooks'

/** Accepts files that are dropped or pasted anywhere on the page. Returns whether files are dragged over it. */
export function useFileDrop(onFiles: (transfer: DataTransfer) => void): boolean {
  const [dragging, setDragging] = useState(false)
  // Before the page is painted: what is dropped or pasted then is not lost.
  useLayoutEffect(() => {
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
      onFiles(event.dataTransfer)
    }
    const onPaste = (event: ClipboardEvent) => {
      if (!event.clipboardData?.types.includes('Files') || pastesText(event)) return
      event.preventDefault()
      onFiles(event.clipboardData)
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
  }, [onFiles])
  return dragging
}
