import { strings } from '../strings.ts'
import { useCode } from '../use-code.ts'

/** The list of tokens, when its code is loaded. */
export function TokensPage() {
  const view = useCode(() => import('./tokens-view.tsx'))
  return view === null ? <p role="status">{strings.tokens.loading}</p> : <view.TokensView />
}
