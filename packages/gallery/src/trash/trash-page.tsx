import { strings } from '../strings.ts'
import { useCode } from '../use-code.ts'

/** The trash, when its code is loaded. */
export function TrashPage() {
  const view = useCode(() => import('./trash-view.tsx'))
  if (view === 'loading') return <p role="status">{strings.trash.loading}</p>
  return view === 'failed' ? <p role="alert">{strings.notLoaded}</p> : <view.TrashView />
}
