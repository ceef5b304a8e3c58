import { strings } from '../strings.ts'
import { useCode } from '../use-code.ts'

/** The trash, when its code is loaded. */
export function TrashPage() {
  const view = useCode(() => import('./trash-view.tsx'))
  return view === null ? <p role="status">{strings.trash.loading}</p> : <view.TrashView />
}
