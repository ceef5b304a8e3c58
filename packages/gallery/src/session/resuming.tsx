import { useEffect } from 'preact/hooks'
import { Logo } from '../components/logo.tsx'
import { strings } from '../strings.ts'
import type { Session } from './session.ts'

/** Milliseconds between two looks for a service that is gone. */
const patience = 3000

/** While a kept token is shown again, after the page was loaded anew. */
export function Resuming({ session, unreachable }: { session: Session; unreachable: boolean }) {
  useEffect(() => {
    if (!unreachable) return
    const timer = setInterval(() => void session.resume(), patience)
    return () => clearInterval(timer)
  }, [unreachable, session])
  return (
    <main class="splash">
      <Logo size={48} />
      <h1 class="off-screen">{strings.product}</h1>
      <p role="status">
        {unreachable ? `${strings.connection.lost} ${strings.connection.retrying}` : strings.signIn.resuming}
      </p>
      {unreachable && (
        <div class="splash-actions">
          <button type="button" class="button primary" onClick={() => void session.resume()}>
            {strings.connection.now}
          </button>
          <button type="button" class="button" onClick={session.signOut}>
            {strings.header.signOut}
          </button>
        </div>
      )}
    </main>
  )
}
