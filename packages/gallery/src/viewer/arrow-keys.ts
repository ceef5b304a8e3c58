/** What uses arrow keys in the viewer itself. */
const fields = 'audio, video, input, select, textarea'

/**
 * What an arrow key does in the viewer: a step to another file, or a movement of the shown one. Null for every other key, and for one that belongs to the
 * browser, to a field, or to a dialog in front of the viewer.
 */
export function arrowOf(event: KeyboardEvent): 'step' | 'move' | null {
  const { key, target } = event
  const dialog = [...document.querySelectorAll('dialog[open]')].at(-1)
  if (!key.startsWith('Arrow') || !dialog?.matches('.viewer') || !(target instanceof Element)) return null
  // Alt+ArrowLeft goes back.
  if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return null
  // When a focused text leaves the view, the focus moves to the body.
  if (target.closest('dialog') !== dialog && target !== document.body) return null
  const isStep = key === 'ArrowLeft' || key === 'ArrowRight'
  if (target.closest(isStep ? fields : `${fields}, .text-scroll`)) return null
  return isStep ? 'step' : 'move'
}
