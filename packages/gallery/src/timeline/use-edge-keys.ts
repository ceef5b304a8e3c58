import { useEffect } from 'preact/hooks'
import { useGallery } from '../gallery.ts'
import { takesKeys } from '../takes-keys.ts'

/**
 * Home and End scroll to the start and the end of the list, except in fields, dialogs and the list of uploads. The browser would scroll to
 * the end of the page at the moment of the key, which is not the end of the list while its items are loaded or its length is unknown.
 */
export function useEdgeKeys(): void {
  const { timeline } = useGallery()
  useEffect(() => {
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
