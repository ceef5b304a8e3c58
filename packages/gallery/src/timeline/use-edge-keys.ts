import { useEffect } from 'preact/hooks'
import { useGallery } from '../gallery.ts'
import { usesArrowKeys } from '../listing/keyboard-shortcuts.tsx'

/**
 * Home and End scroll to the start and the end of the list, wherever the focus is. The browser would scroll to the end of the page at
 * the moment of the key, which is not the end of the list while its items are loaded or its length is unknown.
 */
export function useEdgeKeys(): void {
  const { timeline } = useGallery()
  useEffect(() => {
    /** The key whose items are being loaded: a repeated key does not load them again. */
    let going: string | null = null
    const onKey = (event: KeyboardEvent) => {
      const { key, target } = event
      if ((key !== 'Home' && key !== 'End') || event.defaultPrevented || event.altKey || event.metaKey) return
      if (usesArrowKeys(target) || document.querySelector('dialog[open]')) return
      const part = timeline.loaded.peek()
      if (part === null || (target instanceof Element && target.closest('.tray'))) return
      event.preventDefault()
      const toEnd = key === 'End'
      // Home shows what is above the list too.
      scrollTo({ top: toEnd ? document.documentElement.scrollHeight : 0, behavior: 'instant' })
      if (going === key || (!timeline.loading.peek() && (toEnd ? part.after : part.before) === 0)) return
      going = key
      void (toEnd ? timeline.goToEnd() : timeline.goToStart()).finally(() => {
        if (going === key) going = null
      })
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [timeline])
}
