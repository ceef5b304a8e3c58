import { useGallery } from '../gallery-context.ts'
import { strings } from '../strings.ts'
import { useCode } from '../use-code.ts'

/** The number of selected items, and the actions for them. */
export function SelectionBar() {
  const { selection } = useGallery()
  const count = selection.count.value
  return (
    <section class="selection-place" aria-label={strings.selection.label}>
      <p class="off-screen" role="status">
        {count > 0 && strings.selection.count(count)}
      </p>
      {count > 0 && <Tools />}
    </section>
  )
}

/** The actions, when their code is loaded. */
function Tools() {
  const code = useCode(() => import('./selection-tools.tsx'), 'selected')
  if (code === 'loading') return null
  return code === 'failed' ? <p role="alert">{strings.notLoaded}</p> : <code.SelectionTools />
}
