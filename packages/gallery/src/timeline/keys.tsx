import { useLayoutEffect } from 'preact/hooks'
import { useGallery } from '../gallery-context.ts'

/**
 * Home and End scroll to the start and the end of the list, except in fields, dialogs and the list of uploads. The browser would scroll to
 * the end of the page at the moment of the key, which is not the end of the list while its items are loaded or its length is unknown.
 */
export function useEdgeKeys(): void {
  const { timeline } = useGallery()
  useLayoutEffect(() => {
    /** The jump in progress: a repeated key does not start it again. */
    let jump: { readonly key: string } | null = null
    const onKey = (event: KeyboardEvent) => {
      const { key, target } = event
      if ((key !== 'Home' && key !== 'End') || event.defaultPrevented) return
      if (event.altKey || event.metaKey || event.shiftKey) return
      if (takesKeys(target) || document.querySelector('dialog[open]')) return
      const part = timeline.loaded.peek()
      if (part === null || (target instanceof Element && target.closest('.tray'))) return
      event.preventDefault()
      const toEnd = key === 'End'
      // Home shows what is above the list too.
      scrollTo({ top: toEnd ? document.documentElement.scrollHeight : 0, behavior: 'instant' })
      if (jump?.key === key || (!timeline.loading.peek() && (toEnd ? part.after : part.before) === 0)) return
      const own = { key }
      jump = own
      void (toEnd ? timeline.goToEnd() : timeline.goToStart()).finally(() => {
        if (jump === own) jump = null
      })
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [timeline])
}

/** Escape, Delete and Ctrl+A act on the selection, Ctrl+Z undoes a deletion. Inactive in text fields and below open dialogs. */
export function KeyboardShortcuts() {
  const { selection, selectMany, deletion, notices, canDelete } = useGallery()
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.altKey || event.shiftKey) return
      if (takesKeys(event.target) || document.querySelector('dialog[open]')) return
      if (event.ctrlKey || event.metaKey) {
        const key = event.key.toLowerCase()
        if (key === 'a') void selectMany.all()
        else if (key !== 'z' || !notices.actOnLast()) return
        event.preventDefault()
        return
      }
      if (event.key === 'Escape' && selection.count.value > 0) selectMany.clear()
      else if (event.key === 'Delete' && canDelete) void deletion.request([...selection.ids.value])
      else return
      event.preventDefault()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [selection, selectMany, deletion, notices, canDelete])
  return null
}

/** Whether the element takes the arrow keys, Home and End itself. */
const takesKeys = (target: EventTarget | null): boolean =>
  target instanceof Element && target.matches('input:not([type=checkbox]), textarea, select, audio, video')
