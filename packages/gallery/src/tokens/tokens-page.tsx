import { strings } from '../strings.ts'
import { useCode } from '../use-code.ts'

/** The list of tokens, when its code is loaded. */
export function TokensPage() {
  const view = useCode(() => import('./tokens-view.tsx'))
  if (view === 'loading') return <p role="status">{strings.tokens.loading}</p>
  return view === 'failed' ? <p role="alert">{strings.notLoaded}</p> : <view.TokensView />
}
