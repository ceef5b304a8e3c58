import { useEffect, useState } from 'preact/hooks'
import { useGallery } from '../gallery.ts'
import { strings } from '../strings.ts'

type View = typeof import('./tokens-view.tsx')

/** Loads the code of the list of tokens, which few people need. */
export function TokensPage() {
  const { connection } = useGallery()
  const [view, setView] = useState<View | null>(null)
  useEffect(() => {
    void connection
      .untilReached()
      .then(() => import('./tokens-view.tsx'))
      .then((loaded) => setView(loaded))
  }, [connection])
  return view === null ? <p role="status">{strings.tokens.loading}</p> : <view.TokensView />
}
