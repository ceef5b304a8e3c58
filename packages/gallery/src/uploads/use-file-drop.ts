import { pastesText } from '@mediabucket/client/dom'
import { useLayoutEffect, useState } from 'preact/hooks'

/** Accepts files that are dropped or pasted anywhere on the page. Returns whether files are dragged over it. */
export function useFileDrop(onFiles: (transfer: DataTransfer) => void): boolean {
  const [dragging, setDragging] = useState(false)
  // Before the page is painted: what is dropped or pasted then is not lost.
  useLayoutEffect(() => {
    const unmount = new AbortController()
    // `dragenter` and `dragleave` fire for each element below the pointer; the page is left when they are in balance.
    let depth = 0
    const onDrag = (event: DragEvent) => {
      const { type, dataTransfer } = event
      if (!dataTransfer?.types.includes('Files')) return
      // Otherwise the browser opens the dropped file in place of the page.
      event.preventDefault()
      if (type === 'dragenter') depth += 1
      if (type === 'dragleave') depth = Math.max(0, depth - 1)
      if (type === 'drop') depth = 0
      setDragging(depth > 0)
      if (type === 'drop') onFiles(dataTransfer)
    }
    const onPaste = (event: ClipboardEvent) => {
      if (!event.clipboardData?.types.includes('Files') || pastesText(event)) return
      event.preventDefault()
      onFiles(event.clipboardData)
    }
    for (const type of ['dragenter', 'dragleave', 'dragover', 'drop'] as const)
      addEventListener(type, onDrag, unmount)
    addEventListener('paste', onPaste, unmount)
    return () => unmount.abort()
  }, [onFiles])
  return dragging
}
